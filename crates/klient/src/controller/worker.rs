//! The workers: each takes a key, has it reconciled, and says what becomes of it. Step 7 of an object's way.
//!
//! A turn always ends: "done" is the guard's, a panic is an error like others, and what takes too long is dropped.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use klient_core::{ObjectKey, Resource};
use tokio::time::Instant;
use tracing::Instrument;

use super::{
    Shared,
    permit::Permit,
    reason::{Cause, Reason, Reasons},
    reconcile::{Outcome, Reconciler, Request, Terminal, Turn},
};
use crate::{
    BoxError,
    workqueue::{WorkItem, WorkQueue},
    writes::WriteLog,
};

/// A key whose turn it is.
type Item<'q> = WorkItem<ObjectKey, &'q WorkQueue<ObjectKey>>;

/// A reconciler of any type.
pub(super) trait AnyReconciler<K: Resource>: Send + Sync {
    fn call(&self, request: Request<K>) -> Reconciling<'_>;
}

type Reconciling<'a> = Pin<Box<dyn Future<Output = Result<Outcome, BoxError>> + Send + 'a>>;

impl<K: Resource, R: Reconciler<K>> AnyReconciler<K> for R {
    fn call(&self, request: Request<K>) -> Reconciling<'_> {
        Box::pin(async move { self.reconcile(request).await.map_err(Into::into) })
    }
}

/// How a turn ended.
enum Ended {
    Well(Outcome),
    Failed(BoxError),
    Panicked(String),
    TookTooLong,
    /// This process leads no more: another one may be about to reconcile the same key.
    NotAllowed,
}

/// Reconciles keys until the queue is shut down and nothing is left.
pub(super) async fn work<K: Resource>(shared: Arc<Shared<K>>, permit: Permit) {
    while let Some(item) = shared.intake.queue.get().await {
        let active = Active::new(&shared);
        turn(&shared, item, &permit).await;
        drop(active);
        // Reconciles that are always ready must not keep the thread from others.
        tokio::task::consume_budget().await;
    }
}

async fn turn<K: Resource>(shared: &Shared<K>, item: Item<'_>, permit: &Permit) {
    let key = item.key().clone();
    if !shared.own_writes.shown(&key, &shared.sources, shared.options.own_writes).await {
        shared.metrics.stale.increment();
        tracing::warn!(controller = &*shared.name, %key, "reconciles although the cache does not show the last write");
    }
    // As late as possible: whatever has happened until now is a reason of this turn.
    let reasons = shared.intake.take(&key);
    tracing::debug!(controller = &*shared.name, %key, %reasons, failures = item.failures(), "reconciles");
    let span = tracing::debug_span!("reconcile", controller = &*shared.name, %key, %reasons);
    let started = Instant::now();
    let log = WriteLog::default();
    let ended = log.scope(attempt(shared, &item, reasons, log.clone(), permit)).instrument(span).await;
    shared.metrics.time.observe_duration(started.elapsed());
    if let Ended::Well(outcome) = &ended {
        tracing::debug!(controller = &*shared.name, %key, ?outcome, took = ?started.elapsed(), "reconciled");
    }
    if !shared.options.own_writes.is_zero() {
        shared.own_writes.keep(&key, log.take(), &shared.sources);
    }
    settle(shared, item, ended);
}

async fn attempt<K: Resource>(
    shared: &Shared<K>,
    item: &Item<'_>,
    reasons: Reasons,
    log: WriteLog,
    permit: &Permit,
) -> Ended {
    if !permit.holds() {
        return Ended::NotAllowed;
    }
    let turn = Turn {
        key: item.key().clone(),
        reasons,
        failures: item.failures(),
        #[cfg(feature = "client")]
        permit: permit.clone(),
    };
    let request = Request::new(turn, shared.lister.clone(), log);
    // A function may panic before there is a future.
    let future = match catch_unwind(AssertUnwindSafe(|| shared.reconciler.call(request))) {
        Ok(future) => future,
        Err(panic) => return Ended::Panicked(text_of(&*panic)),
    };
    let mut future = pin!(future);
    let caught = poll_fn(|context| {
        if !permit.holds() {
            return Poll::Ready(Ended::NotAllowed);
        }
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(|result| result.map_or_else(Ended::Failed, Ended::Well)),
            // It is not polled again.
            Err(panic) => Poll::Ready(Ended::Panicked(text_of(&*panic))),
        }
    });
    match shared.options.timeout {
        Some(limit) => tokio::time::timeout(limit, caught).await.unwrap_or(Ended::TookTooLong),
        None => caught.await,
    }
}

fn settle<K: Resource>(shared: &Shared<K>, item: Item<'_>, ended: Ended) {
    let (metrics, controller, key) = (&shared.metrics, &*shared.name, item.key().clone());
    let retry = |item: Item<'_>| {
        metrics.errors.increment();
        metrics.error.increment();
        shared.intake.note(key.clone(), Reason::of(Cause::Retry));
        item.retry();
    };
    match ended {
        Ended::Well(Outcome::Done) => {
            metrics.success.increment();
            item.forget();
        }
        Ended::Well(Outcome::RequeueAfter(delay)) => {
            metrics.requeue_after.increment();
            shared.intake.note(key.clone(), Reason::of(Cause::Requeued));
            item.retry_after(delay);
        }
        Ended::Failed(error) if Terminal::is_in(&*error) => {
            metrics.errors.increment();
            metrics.terminal.increment();
            tracing::error!(controller, %key, error = &*error, "reconcile failed for good: it waits for a change");
            item.forget();
        }
        Ended::Failed(error) => {
            let failures = item.failures() + 1;
            tracing::warn!(controller, %key, failures, error = &*error, "reconcile failed: it will be tried again");
            retry(item);
        }
        Ended::Panicked(text) => {
            metrics.panics.increment();
            tracing::error!(controller, %key, panic = text, "reconcile panicked: it will be tried again");
            retry(item);
        }
        Ended::TookTooLong => {
            metrics.timeouts.increment();
            let limit = shared.options.timeout.unwrap_or_default();
            tracing::error!(controller, %key, ?limit, "reconcile took too long: it was dropped and will be tried again");
            retry(item);
        }
        Ended::NotAllowed => {
            tracing::warn!(controller, %key, "reconcile was dropped: this process does not lead any more");
            drop(item);
        }
    }
}

/// What a panic says, if it says it in words.
fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

/// Counts a worker as busy while it lives, however that ends.
struct Active<'a, K: Resource>(&'a Shared<K>);

impl<'a, K: Resource> Active<'a, K> {
    fn new(shared: &'a Shared<K>) -> Self {
        shared.metrics.active.add(1);
        Self(shared)
    }
}

impl<K: Resource> Drop for Active<'_, K> {
    fn drop(&mut self) {
        self.0.metrics.active.add(-1);
    }
}
