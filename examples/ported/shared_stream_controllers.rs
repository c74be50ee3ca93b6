//! kube-rs's `shared_stream_controllers`: two controllers of pods that share one watch and one cache.
//!
//! Runs on the embedded server: one controller labels pods, the other one annotates them; one watch serves both.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use klient::{
    Api, Client, Controller, InformerFactory, Manager, Patch, ResourceExt, Result,
    controller::{Outcome, Request},
    wait::{Until, wait_for},
};
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

/// Sets metadata of a pod, unless it is set.
async fn mark(request: Request<Pod>, client: Client, is_set: fn(&Pod) -> bool, metadata: Value) -> Result<Outcome> {
    if let Some(pod) = request.object()?
        && !is_set(&pod)
    {
        let pods: Api<Pod> = Api::namespaced(client, request.namespace());
        pods.patch(request.name(), Patch::merge(json!({"metadata": metadata}))).await?;
    }
    Ok(Outcome::Done)
}

fn is_labelled(pod: &Pod) -> bool {
    pod.label("klient.dev/label").is_some()
}

fn is_annotated(pod: &Pod) -> bool {
    pod.annotation("klient.dev/annotation").is_some()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let pods = InformerFactory::new(client.clone()).core_v1().pods();
    let (first, second) = (client.clone(), client.clone());
    let labels = Controller::builder("labels", pods.clone()).reconcile(move |request| {
        mark(request, first.clone(), is_labelled, json!({"labels": {"klient.dev/label": "yes"}}))
    });
    let annotations = Controller::builder("annotations", pods).reconcile(move |request| {
        mark(request, second.clone(), is_annotated, json!({"annotations": {"klient.dev/annotation": "yes"}}))
    });
    let manager = Manager::builder().controller(labels).controller(annotations).build().await?;
    manager
        .run_until(async move {
            if let Err(error) = exercise(client).await {
                println!("failed: {error:#}");
                std::process::exit(1);
            }
        })
        .await?;
    let watches = server.requests();
    let lists = watches.iter().filter(|((method, path), _)| method == "GET" && path == "/api/v1/pods");
    println!("{} list or watch requests for both controllers", lists.map(|(_, count)| count).sum::<u64>());
    Ok(())
}

/// Creates what the controllers work on.
async fn exercise(client: Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut pod = Pod::default();
    pod.metadata.name = Some("web".to_owned());
    pod.spec = serde_json::from_value(json!({"containers": [{"name": "web", "image": "nginx"}]})).ok();
    pods.create(&pod).await?;
    let marked = Until::is(is_labelled).and(Until::is(is_annotated));
    wait_for(&pods, "web", &marked, Duration::from_secs(10)).await?;
    println!("the pod was labelled and annotated");
    Ok(())
}
