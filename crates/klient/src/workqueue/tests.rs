//! The queue's contract, rule by rule, on a paused clock.

mod delays;
mod failures;
mod model;
mod order;
mod shutdown;
mod turns;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;

use super::*;

fn queue() -> WorkQueue<u32> {
    WorkQueue::new()
}

/// Takes all ready keys in order. Each one is done at once.
fn taken<T: Clone>(queue: &WorkQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.try_get().map(|item| item.key().clone())).collect()
}

/// Polls a future once.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
