//! A whole controller: an informer, a queue that its handler fills, and workers that read what they are told to reconcile.

use std::sync::Arc;

use anyhow::Result;
use bench_jobs::{Answer, Arguments, Mark, Measured, Reconciles, replay_changes};
use k8s_openapi::api::core::v1::Pod;
use klient::ObjectKey;
use klient::client::Api;
use klient::informer::{Event, SharedInformer};
use klient::workqueue::WorkQueue;

pub(crate) async fn run(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let reconciles = Arc::new(Reconciles::new(arguments));
    let queue: WorkQueue<ObjectKey> = WorkQueue::new();
    let informer = SharedInformer::new(fleet);
    let filled = queue.clone();
    let _registration = informer.add_handler(move |event: Event<Pod>| filled.add(event.key().clone()));
    informer.start();
    for _ in 0..arguments.concurrency {
        let (queue, lister, reconciles) = (queue.clone(), informer.lister(), Arc::clone(&reconciles));
        tokio::spawn(async move {
            while let Some(item) = queue.get().await {
                // What is gone needs nothing; what cannot be decoded is missing from the answer.
                if let Some(Ok(pod)) = lister.get(item.key()).map(|pod| pod.decode()) {
                    reconciles.add(&pod);
                }
            }
        });
    }
    reconciles.initial(arguments.count).await;
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    let (latency, answer) = reconciles.changed().await?;
    let mut measured = mark.measured()?;
    measured.latency = Some(latency);
    Ok((measured, answer))
}
