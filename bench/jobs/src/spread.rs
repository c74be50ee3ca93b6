//! Spreads requests over workers, each of which sends one at a time.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use tokio::task::JoinSet;

use crate::Arguments;

/// Runs one task per worker. Returns the last pod that each one received.
///
/// A single worker runs in a task as well, because the code of controllers does.
pub async fn spread<F>(arguments: &Arguments, work: impl Fn(Vec<usize>) -> F) -> Result<Vec<Pod>>
where
    F: Future<Output = Result<Option<Pod>>> + Send + 'static,
{
    let mut workers = JoinSet::new();
    for numbers in arguments.shares() {
        workers.spawn(work(numbers));
    }
    let mut last = Vec::new();
    while let Some(ended) = workers.join_next().await {
        last.push(ended??.context("a worker had nothing to do")?);
    }
    Ok(last)
}
