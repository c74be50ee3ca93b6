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
    Api, Client,
    options::{DeleteOptions, PropagationPolicy},
    retry::{Backoff, retry_on_conflict},
};

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(Client::infer()?);
    let made = deployments.create(&demo()).await?;
    println!("made {NAME}, version {}", made.metadata.resource_version.unwrap_or_default());

    // Somebody else may write in between: then it is read and changed once more.
    let scaled = retry_on_conflict(Backoff::default(), async || {
        let mut deployment = deployments.get(NAME).await?;
        deployment.spec.replicas = Some(1);
        deployments.update(&deployment).await
    })
    .await?;
    println!("scaled {NAME} to {}", scaled.spec.replicas.context("no replicas")?);

    for deployment in &deployments.list().labels("app=demo").await? {
        let image = deployment.spec.template.spec.as_ref().and_then(|spec| spec.containers[0].image.as_deref());
        println!(
            "there is {} with {}",
            deployment.metadata.name.as_deref().unwrap_or_default(),
            image.unwrap_or_default()
        );
    }

    let options = DeleteOptions::default().propagation_policy(PropagationPolicy::Background);
    deployments.delete(NAME).options(options.clone()).await?;
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
