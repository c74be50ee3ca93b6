//! The workers: each takes a key, reconciles it, and decides when the key is reconciled again. Step 7 of an object's way.
//!
//! A turn always ends: the queue's guard marks the key as done, a panic counts as a failure, and a reconcile that takes too
//! long is dropped.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use klient_core::{ObjectKey, Resource};
use tokio::time::{Duration, Instant};
use tracing::Instrument;

use super::{
    ControllerInner,
    permit::Permit,
    reason::{Reason, ReasonKind, Reasons},
    reconcile::{Outcome, Reconciler, Request, Retry, Terminal, Turn},
};
use crate::{
    BoxError, Error, ErrorKind,
    workqueue::{AddOptions, WorkItem},
    writes::WriteLog,
};

/// A key in process.
type Item = WorkItem<ObjectKey>;

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

/// The result of a turn.
enum TurnResult {
    Succeeded(Outcome),
    Failed(BoxError),
    Panicked(String),
    TimedOut,
    /// This process does not lead any more: another one may be about to reconcile the same key.
    LeadershipLost,
}

/// Reconciles keys until the queue is shut down and empty.
pub(super) async fn work<K: Resource>(controller: Arc<ControllerInner<K>>, permit: Permit) {
    while let Some(item) = controller.keys.queue.get().await {
        let active = ActiveWorker::new(&controller);
        let _retry = RetryIfPanicking { controller: &controller, key: item.key().clone() };
        let result = turn(&controller, item.key(), item.failures(), None, &permit).await;
        finish(&controller, item, result);
        drop(active);
        // Reconciles that are always ready must not starve other tasks on this thread.
        tokio::task::consume_budget().await;
    }
}

/// Reconciles one key outside the queue.
pub(super) async fn reconcile_once<K: Resource>(
    controller: &ControllerInner<K>,
    key: &ObjectKey,
) -> Result<Outcome, BoxError> {
    let reasons = Reasons::from(Reason::new(ReasonKind::Requested));
    match turn(controller, key, 0, Some(reasons), &Permit::default()).await {
        TurnResult::Succeeded(outcome) => Ok(outcome),
        TurnResult::Failed(error) => Err(error),
        TurnResult::Panicked(message) => {
            Err(Error::new(ErrorKind::Canceled, format!("reconcile of {key} panicked: {message}")).into())
        }
        TurnResult::TimedOut => {
            let limit = controller.options.timeout.unwrap_or_default();
            Err(Error::new(ErrorKind::Timeout, format!("reconcile of {key} did not end within {limit:?}")).into())
        }
        TurnResult::LeadershipLost => Err(Error::new(ErrorKind::Canceled, "this process does not lead").into()),
    }
}

/// Reconciles a key. Without `reasons`, those of the queue are used.
async fn turn<K: Resource>(
    controller: &ControllerInner<K>,
    key: &ObjectKey,
    failures: u32,
    reasons: Option<Reasons>,
    permit: &Permit,
) -> TurnResult {
    let (name, own_writes) = (&*controller.name, controller.options.own_writes);
    if !controller.own_writes.wait(key, &controller.sources, own_writes).await {
        controller.metrics.stale.increment();
        tracing::warn!(controller = name, %key, "cache does not show the last write of this key, reconciling anyway");
    }
    // As late as possible, so that all events until now are reasons of this turn.
    let reasons = reasons.unwrap_or_else(|| controller.keys.take_reasons(key));
    tracing::debug!(controller = name, %key, %reasons, failures, "reconciling");
    let span = tracing::debug_span!("reconcile", controller = name, %key, %reasons);
    let started = Instant::now();
    let log = WriteLog::default();
    let turn = Turn {
        key: key.clone(),
        reasons,
        failures,
        #[cfg(feature = "client")]
        permit: permit.clone(),
    };
    let request = Request::new(turn, controller.lister.clone(), log.clone());
    let result = log.scope(attempt(controller, request, permit)).instrument(span).await;
    controller.metrics.time.observe_duration(started.elapsed());
    if let TurnResult::Succeeded(outcome) = &result {
        tracing::debug!(controller = name, %key, ?outcome, took = ?started.elapsed(), "reconciled");
    }
    if !own_writes.is_zero() {
        controller.own_writes.store(key, log.take(), &controller.sources);
    }
    result
}

/// Calls the reconciler. Catches panics, and stops at the timeout and when leadership is lost.
async fn attempt<K: Resource>(controller: &ControllerInner<K>, request: Request<K>, permit: &Permit) -> TurnResult {
    if !permit.is_valid() {
        return TurnResult::LeadershipLost;
    }
    // A function may panic before it returns a future.
    let future = match catch_unwind(AssertUnwindSafe(|| controller.reconciler.call(request))) {
        Ok(future) => future,
        Err(panic) => return TurnResult::Panicked(message_of(&*panic)),
    };
    let mut future = pin!(future);
    let caught = poll_fn(|context| {
        if !permit.is_valid() {
            return Poll::Ready(TurnResult::LeadershipLost);
        }
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(|result| result.map_or_else(TurnResult::Failed, TurnResult::Succeeded)),
            // A future that panicked is not polled again.
            Err(panic) => Poll::Ready(TurnResult::Panicked(message_of(&*panic))),
        }
    });
    match controller.options.timeout {
        Some(limit) => tokio::time::timeout(limit, caught).await.unwrap_or(TurnResult::TimedOut),
        None => caught.await,
    }
}

/// Ends the turn of a key in the queue.
fn finish<K: Resource>(controller: &ControllerInner<K>, item: Item, result: TurnResult) {
    let (metrics, name, key) = (&controller.metrics, &*controller.name, item.key().clone());
    match result {
        TurnResult::Succeeded(Outcome::Done) => {
            metrics.success.increment();
            succeed(controller, &item);
            item.forget();
        }
        TurnResult::Succeeded(Outcome::RequeueAfter(delay)) => {
            metrics.requeue_after.increment();
            succeed(controller, &item);
            controller.keys.add_delayed_reason(key, Reason::new(ReasonKind::Requeued), delay);
            item.requeue_after(delay);
        }
        TurnResult::Failed(error) => {
            metrics.errors.increment();
            let failures = item.failures().saturating_add(1);
            match decide(controller, &*error, failures) {
                Retry::Never => {
                    metrics.terminal.increment();
                    tracing::error!(controller = name, %key, error = &*error, "reconcile failed, waiting for a change");
                    succeed(controller, &item);
                    item.forget();
                }
                Retry::Backoff => {
                    let delay = retry(controller, item, None);
                    tracing::warn!(controller = name, %key, failures, ?delay, error = &*error, "reconcile failed, retrying");
                }
                Retry::After(delay) => {
                    retry(controller, item, Some(delay));
                    tracing::warn!(controller = name, %key, failures, ?delay, error = &*error, "reconcile failed, retrying");
                }
            }
        }
        TurnResult::Panicked(panic) => {
            metrics.errors.increment();
            metrics.panics.increment();
            let delay = retry(controller, item, None);
            tracing::error!(controller = name, %key, panic, ?delay, "reconcile panicked, retrying");
        }
        TurnResult::TimedOut => {
            metrics.errors.increment();
            metrics.timeouts.increment();
            let limit = controller.options.timeout.unwrap_or_default();
            let delay = retry(controller, item, None);
            tracing::error!(controller = name, %key, ?limit, ?delay, "reconcile timed out, retrying");
        }
        TurnResult::LeadershipLost => {
            tracing::warn!(controller = name, %key, "reconcile dropped, this process does not lead any more");
            drop(item);
        }
    }
}

/// Decides whether a failed key is retried.
fn decide<K: Resource>(
    controller: &ControllerInner<K>,
    error: &(dyn std::error::Error + Send + Sync + 'static),
    failures: u32,
) -> Retry {
    if Terminal::is_in(error) {
        return Retry::Never;
    }
    controller.on_error.as_ref().map_or(Retry::Backoff, |on_error| on_error(error, failures))
}

/// Removes the reason of a retry that the end of this turn cancels.
fn succeed<K: Resource>(controller: &ControllerInner<K>, item: &Item) {
    if item.failures() > 0 {
        controller.keys.cancel_retry(item.key());
    }
}

/// Retries a key after `delay`, or after the rate limiter's delay. Returns the delay.
fn retry<K: Resource>(controller: &ControllerInner<K>, item: Item, delay: Option<Duration>) -> Duration {
    controller.metrics.error.increment();
    let delay = delay.unwrap_or_else(|| item.limiter_delay());
    controller.keys.add_delayed_reason(item.key().clone(), Reason::new(ReasonKind::Retry), delay);
    item.retry_after(delay);
    delay
}

/// Retries a key if its worker panics outside of the reconciler: in an error's `Display`, a rate limiter or `on_error`.
struct RetryIfPanicking<'a, K: Resource> {
    controller: &'a ControllerInner<K>,
    key: ObjectKey,
}

impl<K: Resource> Drop for RetryIfPanicking<'_, K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without the rate limiter, which may be what panicked.
            let options = AddOptions::default().after(PANIC_DELAY);
            self.controller.keys.add(self.key.clone(), Reason::new(ReasonKind::Retry), options);
        }
    }
}

/// Returns the message of a panic, if it has one.
pub(super) fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The delay before a key is retried whose worker panicked outside of the reconciler.
const PANIC_DELAY: Duration = Duration::from_secs(1);

/// Counts a worker as active until it is dropped.
struct ActiveWorker<'a, K: Resource>(&'a ControllerInner<K>);

impl<'a, K: Resource> ActiveWorker<'a, K> {
    fn new(controller: &'a ControllerInner<K>) -> Self {
        controller.metrics.active.add(1);
        Self(controller)
    }
}

impl<K: Resource> Drop for ActiveWorker<'_, K> {
    fn drop(&mut self) {
        self.0.metrics.active.add(-1);
    }
}
