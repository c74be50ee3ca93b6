//! A cluster without a cluster: the embedded API server and klient's client in one process.
//!
//! Creates objects, follows their changes, and injects a fault.

#![allow(clippy::print_stdout)]

use std::error::Error;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use klient::{Api, Client, Clientset, Patch, ResourceExt, WatchEvent};
use klient_apiserver::{ApiServer, Fault};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = std::time::Instant::now();
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let namespaces = Clientset::new(client.clone()).core_v1().namespaces().list().await?;
    println!("a server with {} namespaces, {:?} after its start", namespaces.items.len(), start.elapsed());

    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let mut watch = deployments.watch().after(namespaces.resource_version()).await?;
    let web: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    }))?;
    deployments.create(&web).await?;
    deployments.patch("web", Patch::merge(json!({"spec": {"replicas": 2}}))).await?;
    deployments.delete("web").await?;
    for _ in 0..3 {
        match watch.next().await.ok_or("the watch ended")?? {
            WatchEvent::Added(object) => println!("added, {:?} replicas by default", object.spec.replicas),
            WatchEvent::Modified(object) => println!("changed, {:?} replicas now", object.spec.replicas),
            WatchEvent::Deleted(object) => println!("deleted at version {:?}", object.metadata.resource_version),
            other => println!("{}", other.type_name()),
        }
    }

    server.inject(Fault::conflict().on_path("/api/v1/namespaces/default/configmaps").times(1));
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "settings-"}}))?;
    if let Err(error) = maps.create(&map).await {
        println!("failed on purpose: {error}");
    }
    let created = maps.create(&map).await?;
    println!("created {}", created.name());
    Ok(())
}
