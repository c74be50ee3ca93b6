//! Jobs that watch: past events, as fast as they arrive.

use anyhow::{Context as _, Result, bail};
use bench_jobs::{Answer, Arguments, Mark, Measured};
use k8s_openapi::api::core::v1::Pod;
use klient::Api;
use klient::WatchEvent;

/// Objects stay in wire form, and only their metadata is read.
pub(crate) async fn keys(arguments: &Arguments, fleet: &Api<Pod>) -> Result<(Measured, Answer)> {
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    let mut watch = fleet.watch().after(arguments.since.as_str()).await?;
    while answer.count() < arguments.count {
        match watch.next_raw().await.context("the watch has ended")?? {
            WatchEvent::Modified(object) => answer.add_key(&object.namespace().unwrap_or_default(), &object.name()),
            WatchEvent::Bookmark(_) => {}
            other => bail!("{other:?}"),
        }
    }
    Ok((mark.measured()?, answer))
}

pub(crate) async fn typed(arguments: &Arguments, fleet: &Api<Pod>) -> Result<(Measured, Answer)> {
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    let mut watch = fleet.watch().after(arguments.since.as_str()).await?;
    while answer.count() < arguments.count {
        match watch.next().await.context("the watch has ended")?? {
            WatchEvent::Modified(pod) => answer.add_pod(&pod),
            WatchEvent::Bookmark(_) => {}
            other => bail!("{other:?}"),
        }
    }
    Ok((mark.measured()?, answer))
}
