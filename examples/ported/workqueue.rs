//! client-go's `examples/workqueue`: a controller by hand, from an informer, a rate-limited queue and workers.
//!
//! Runs on the embedded server: a pod is created and deleted, and a pod whose processing fails is dropped after five retries.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use klient::{Api, Client, InformerFactory, Lister, ObjectKey, WorkQueue, workqueue::QueueOptions};
use klient_apiserver::ApiServer;
use serde_json::json;

const MAX_RETRIES: u32 = 5;

/// The business logic: everything else is machinery.
fn sync_to_stdout(lister: &Lister<Pod>, key: &ObjectKey) -> Result<(), String> {
    match lister.get(key) {
        None => println!("pod {key} does not exist any more"),
        Some(_) if key.name() == "broken" => return Err("cannot process this pod".to_owned()),
        Some(pod) => println!("sync of pod {}", pod.key()),
    }
    Ok(())
}

async fn run_worker(queue: WorkQueue<ObjectKey>, lister: Lister<Pod>) {
    while let Some(item) = queue.get().await {
        match sync_to_stdout(&lister, item.key()) {
            Ok(()) => item.forget(),
            Err(_) if item.failures() < MAX_RETRIES => item.retry(),
            Err(error) => {
                println!("dropping pod {}: {error}", item.key());
                item.forget();
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = Client::from_service(server.service());
    let informer = InformerFactory::new(client.clone()).namespace("default").core_v1().pods();
    let queue = WorkQueue::with_options(QueueOptions::default().name("pods"));
    let keys = queue.clone();
    let registration = informer.add_handler(move |event: &klient::informer::Event<Pod>| keys.add(event.key().clone()));
    informer.start();
    registration.wait_for_sync().await?;
    let worker = tokio::spawn(run_worker(queue.clone(), informer.lister()));

    let pods: Api<Pod> = Api::namespaced(client, "default");
    for name in ["web", "broken"] {
        let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
        pods.create(&serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?).await?;
    }
    let deleted = pods.delete("web").grace_period(Duration::ZERO).await?;
    println!("deleted: {}", matches!(deleted, klient::client::Deleted::Object(_)));
    informer.wait_until_deleted(&ObjectKey::namespaced("default", "web"), None).await?;
    // The failed key waits for its backoff: 5, 10, 20, 40 and 80 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    queue.shut_down();
    worker.await?;
    informer.stop().await;
    Ok(())
}
