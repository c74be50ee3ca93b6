//! Events of the replay server for a synced informer.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bench_jobs::{Answer, Arguments, Mark, Measured, replay_changes};
use k8s_openapi::api::core::v1::Pod;
use klient::Api;
use klient::{
    SharedInformer,
    informer::{CachedObject, Event},
};
use tokio::sync::Notify;

/// A handler that reads the key only.
pub(crate) fn take_key(answer: &mut Answer, pod: &CachedObject<Pod>) {
    answer.add_key(pod.key().namespace().unwrap_or_default(), pod.key().name());
}

/// A handler that decodes the object.
pub(crate) fn take_object(answer: &mut Answer, pod: &CachedObject<Pod>) {
    // An object that cannot be decoded is missing from the result.
    if let Ok(pod) = pod.decode() {
        answer.add_pod(&pod);
    }
}

/// Measures changes on their way through reflector, fifo and store to a handler.
pub(crate) async fn events(
    arguments: &Arguments,
    fleet: Api<Pod>,
    take: fn(&mut Answer, &CachedObject<Pod>),
) -> Result<(Measured, Answer)> {
    let (count, done) = (arguments.count, Arc::new(Notify::new()));
    let (taken, ended) = (Arc::new(Mutex::new(Answer::default())), Arc::clone(&done));
    let answer = Arc::clone(&taken);
    let informer = SharedInformer::new(fleet);
    let registration = informer.add_handler(move |event: &Event<Pod>| {
        let Event::Updated { new, .. } = event else { return };
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        take(&mut answer, new);
        if answer.count() == count {
            ended.notify_one();
        }
    });
    informer.start();
    registration.wait_for_sync().await?;
    let mark = Mark::now()?;
    replay_changes(arguments)?;
    done.notified().await;
    let measured = mark.measured()?;
    drop((registration, informer));
    let answer = std::mem::take(&mut *taken.lock().ok().context("the handler panicked")?);
    ensure!(answer.count() == count, "{} events", answer.count());
    Ok((measured, answer))
}
