//! Jobs of reflectors and stores.

use anyhow::{Context as _, Result};
use bench_jobs::{Answer, Arguments, Job, Mark, Measured, replay_changes, resident};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, reflector, watcher},
};

/// A store from nothing to complete. Objects are always decoded.
pub(crate) async fn sync(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let mark = Mark::now()?;
    let (store, writer) = reflector::store();
    let mut events = std::pin::pin!(reflector(writer, watcher(fleet, watcher::Config::default())).default_backoff());
    loop {
        match events.next().await.context("the watch has ended")?? {
            watcher::Event::InitDone => break,
            _ => {}
        }
    }
    let mut measured = mark.measured()?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    measured.rss_bytes = Some(resident()?);
    let _ = arguments;
    let mut answer = Answer::default();
    for pod in store.state() {
        add_key(&mut answer, &pod);
    }
    Ok((measured, answer))
}

/// Changes that the server tells a complete store of.
pub(crate) async fn events(arguments: &Arguments, fleet: Api<Pod>) -> Result<(Measured, Answer)> {
    let (_store, writer) = reflector::store();
    let mut events = std::pin::pin!(reflector(writer, watcher(fleet, watcher::Config::default())).default_backoff());
    while !matches!(events.next().await.context("the watch has ended")??, watcher::Event::InitDone) {}
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    while answer.count() < arguments.count {
        let watcher::Event::Apply(pod) = events.next().await.context("the watch has ended")?? else { continue };
        match arguments.job {
            Job::EventsTyped => answer.add_pod(&pod),
            _ => add_key(&mut answer, &pod),
        }
    }
    Ok((mark.measured()?, answer))
}

fn add_key(answer: &mut Answer, pod: &Pod) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    answer.add_key(&text(&pod.metadata.namespace), &text(&pod.metadata.name));
}
