//! Makes, scales and deletes a Deployment with types of `k8s-openapi`.
//!
//! Needs a cluster: the one of your kubeconfig, or the one that it runs in.
//!
//! ```text
//! cargo run -p klient-examples --example deployment_typed
//! ```

#![allow(clippy::print_stdout)]

use anyhow::Context as _;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use klient::{
    Api, Client, ResourceExt,
    retry::{Backoff, retry_on_conflict},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(Client::infer()?);
    let created = deployments.create(&demo()).await?;
    println!("created {NAME}, version {}", created.resource_version().unwrap_or_default());

    // If another client writes in between, the Deployment is read and changed again.
    let scaled = retry_on_conflict(Backoff::default(), async || {
        let mut deployment = deployments.get(NAME).await?;
        deployment.spec.replicas = Some(1);
        deployments.update(&deployment).await
    })
    .await?;
    println!("scaled {NAME} to {}", scaled.spec.replicas.context("no replicas")?);

    for deployment in &deployments.list().labels("app=demo").await? {
        let image = deployment.spec.template.spec.as_ref().and_then(|spec| spec.containers[0].image.as_deref());
        println!("{} runs {}", deployment.name(), image.unwrap_or_default());
    }

    deployments.delete(NAME).background().await?;
    println!("deleted {NAME}");
    Ok(())
}

fn demo() -> Deployment {
    let labels = || Some([("app".to_owned(), "demo".to_owned())].into());
    let container = Container { name: "web".to_owned(), image: Some("nginx:1.29".to_owned()), ..Container::default() };
    Deployment {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), labels: labels(), ..ObjectMeta::default() },
        spec: DeploymentSpec {
            replicas: Some(2),
            selector: LabelSelector { match_labels: labels(), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: labels(), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

const NAME: &str = "demo-typed";
