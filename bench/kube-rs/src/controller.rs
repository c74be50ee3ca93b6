//! A whole controller.

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Result;
use bench_jobs::{Answer, Arguments, Mark, Measured, Reconciles, replay_changes};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};

pub(crate) async fn run(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let reconciles = Arc::new(Reconciles::new(arguments));
    let workers = Config::default().concurrency(u16::try_from(arguments.concurrency)?);
    let controller = Controller::new(fleet, watcher::Config::default()).with_config(workers);
    tokio::spawn(
        controller.run(reconcile, |_, _, _| Action::requeue(RETRY), Arc::clone(&reconciles)).for_each(|_| async {}),
    );
    reconciles.initial(arguments.count).await;
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    let (latency, answer) = reconciles.changed().await?;
    let mut measured = mark.measured()?;
    measured.latency = Some(latency);
    Ok((measured, answer))
}

async fn reconcile(pod: Arc<Pod>, reconciles: Arc<Reconciles>) -> Result<Action, Infallible> {
    reconciles.add(&pod);
    Ok(Action::await_change())
}

const RETRY: Duration = Duration::from_secs(1);
