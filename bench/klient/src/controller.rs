//! A whole controller: an informer, a queue that its events fill, and workers that read the objects of their keys.

use std::sync::Arc;

use anyhow::Result;
use bench_jobs::{Answer, Arguments, Mark, Measured, Reconciles, replay_changes};
use k8s_openapi::api::core::v1::Pod;
use klient::Api;
use klient::SharedInformer;
use klient::{
    Controller,
    controller::{HistoryLimits, Outcome, Request},
};

pub(crate) async fn run(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let reconciles = Arc::new(Reconciles::new(arguments));
    let told = Arc::clone(&reconciles);
    let mut builder = Controller::builder("fleet", SharedInformer::new(fleet)).workers(arguments.concurrency);
    // To compare: with a history of turns, as a manager with a debug page has it.
    if std::env::var_os("KLIENT_BENCH_HISTORY").is_some() {
        builder = builder.history(HistoryLimits::default());
    }
    let controller = builder.reconcile(move |request: Request<Pod>| {
        let told = Arc::clone(&told);
        async move {
            // A deleted object needs no work. An object that cannot be decoded is missing from the result.
            if let Some(pod) = request.object()? {
                told.add(&pod);
            }
            Ok::<_, klient::Error>(Outcome::Done)
        }
    });
    let running = tokio::spawn(async move { controller.run_until(std::future::pending()).await });
    reconciles.initial(arguments.count).await;
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    let (latency, answer) = reconciles.changed().await?;
    let mut measured = mark.measured()?;
    measured.latency = Some(latency);
    running.abort();
    Ok((measured, answer))
}
