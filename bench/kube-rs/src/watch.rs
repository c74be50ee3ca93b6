//! Jobs that watch: past events, as fast as they arrive.

use anyhow::{Context as _, Result, bail};
use bench_jobs::{Answer, Arguments, Job, Mark, Measured};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};

pub(crate) async fn watch(arguments: &Arguments, fleet: &Api<Pod>) -> Result<(Measured, Answer)> {
    let mut answer = Answer::default();
    let mark = Mark::now()?;
    let mut watch = std::pin::pin!(fleet.watch(&WatchParams::default(), &arguments.since).await?);
    while answer.count() < arguments.count {
        match watch.next().await.context("the watch has ended")?? {
            WatchEvent::Modified(pod) if arguments.job == Job::WatchKeys => {
                let metadata = &pod.metadata;
                let text = |field: &Option<String>| field.clone().unwrap_or_default();
                answer.add_key(&text(&metadata.namespace), &text(&metadata.name));
            }
            WatchEvent::Modified(pod) => answer.add_pod(&pod),
            // kube requests bookmarks by default.
            WatchEvent::Bookmark(_) => {}
            other => bail!("{other:?}"),
        }
    }
    Ok((mark.measured()?, answer))
}
