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
use tracing::{Instrument, Span};

use super::{
    ControllerInner,
    history::{EndedTurn, PastResult},
    key_queue::TakenReasons,
    own_writes,
    permit::Permit,
    reason::{Reason, ReasonKind, Reasons},
    reconcile::{Outcome, Reconciler, Request, Retry, Terminal, Turn},
    stepper::TurnReport,
};
use crate::{
    BoxError, Error, ErrorKind,
    recording::{TurnEnd, TurnMark},
    workqueue::{AddOptions, WorkItem},
    writes::{StoredState, Write, WriteEffect, WriteLog},
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
    /// This process does not lead any more, or not own the key: another one may be about to reconcile the same key.
    PermitLost,
}

/// The decision about a key at the end of its turn.
#[derive(Clone, Copy)]
enum Next {
    /// The turn succeeded, or is not retried.
    Forget,
    RequeueAfter(Duration),
    RetryAfter(Duration),
    /// The key is reconciled again if it was added during the turn.
    Drop,
}

impl TurnResult {
    /// Returns the result as recordings have it.
    fn end(&self) -> TurnEnd {
        match self {
            Self::Succeeded(Outcome::Done) => TurnEnd::Done,
            Self::Succeeded(Outcome::RequeueAfter(delay)) => {
                TurnEnd::RequeueAfter { milliseconds: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX) }
            }
            Self::Failed(error) => TurnEnd::Failed { error: error.to_string() },
            Self::Panicked(message) => TurnEnd::Panicked { message: message.clone() },
            Self::TimedOut => TurnEnd::TimedOut,
            Self::PermitLost => TurnEnd::NotPermitted,
        }
    }
}

/// Reconciles keys until the queue is shut down and empty.
pub(super) async fn work<K: Resource>(controller: Arc<ControllerInner<K>>, permit: Permit) {
    while let Some(item) = controller.keys.queue.get().await {
        // The slot of a sharded key is in use until this is dropped.
        let Some(admission) = controller.keys.gate.admit(item.key()) else {
            tracing::trace!(controller = &*controller.name, key = %item.key(), "key belongs to another replica, dropping it");
            controller.keys.take_reasons(item.key());
            item.forget();
            continue;
        };
        let permit = admission.permit(&permit);
        let active = ActiveWorker::new(&controller);
        let _retry = RetryIfPanicking { controller: &controller, key: item.key().clone() };
        let (result, facts) = turn(&controller, item.key(), item.failures(), None, &permit, None).await;
        finish(&controller, item, &result, facts);
        drop((active, admission));
        // Reconciles that are always ready must not starve other tasks on this thread.
        tokio::task::consume_budget().await;
    }
}

/// Reconciles a key that was taken from the queue by hand, and returns what was decided about it.
pub(super) async fn step<K: Resource>(
    controller: Arc<ControllerInner<K>>,
    item: Item,
    failures: Option<u32>,
    id: u64,
) -> TurnReport {
    let _retry = RetryIfPanicking { controller: &controller, key: item.key().clone() };
    let (key, failures) = (item.key().clone(), failures.unwrap_or_else(|| item.failures()));
    let own_writes = controller.options.own_writes;
    let is_current = controller.own_writes.wait(&key, controller.caches(), own_writes).await;
    let reasons = controller.keys.take_reasons(&key).reasons;
    let mark = TurnMark { id, recorder: None };
    let (result, facts) =
        turn(&controller, &key, failures, Some(reasons.clone()), &Permit::default(), Some(mark)).await;
    let end = result.end();
    finish(&controller, item, &result, facts);
    TurnReport { key, reasons, failures, is_current, end }
}

/// Reconciles one key outside the queue.
pub(super) async fn reconcile_once<K: Resource>(
    controller: &ControllerInner<K>,
    key: &ObjectKey,
) -> Result<Outcome, BoxError> {
    let reasons = Reasons::from(Reason::new(ReasonKind::Requested));
    let (result, facts) = turn(controller, key, 0, Some(reasons), &Permit::default(), None).await;
    record(controller, key, &result, Next::Drop, facts);
    match result {
        TurnResult::Succeeded(outcome) => Ok(outcome),
        TurnResult::Failed(error) => Err(error),
        TurnResult::Panicked(message) => {
            Err(Error::new(ErrorKind::Canceled, format!("reconcile of {key} panicked: {message}")).into())
        }
        TurnResult::TimedOut => {
            let limit = controller.options.timeout.unwrap_or_default();
            Err(Error::new(ErrorKind::Timeout, format!("reconcile of {key} did not end within {limit:?}")).into())
        }
        TurnResult::PermitLost => Err(Error::new(ErrorKind::Canceled, "this process does not lead").into()),
    }
}

/// Reconciles a key. Without `reasons`, those of the queue are used. Returns the facts about the turn if they are recorded.
async fn turn<K: Resource>(
    controller: &ControllerInner<K>,
    key: &ObjectKey,
    failures: u32,
    reasons: Option<Reasons>,
    permit: &Permit,
    mark: Option<TurnMark>,
) -> (TurnResult, Option<Box<EndedTurn>>) {
    let (name, own_writes) = (&*controller.name, controller.options.own_writes);
    let taken = controller.keys.history().map(|_| Instant::now());
    if !controller.own_writes.wait(key, controller.caches(), own_writes).await {
        controller.metrics.stale.increment();
        tracing::warn!(controller = name, %key, "cache does not show the last write of this key, reconciling anyway");
    }
    // As late as possible, so that all events until now are reasons of this turn.
    let TakenReasons { reasons, since, events } = match reasons {
        Some(reasons) => TakenReasons { reasons, ..TakenReasons::default() },
        None => controller.keys.take_reasons(key),
    };
    tracing::debug!(controller = name, %key, %reasons, failures, "reconciling");
    let span = reconcile_span(name, key, &reasons, &events);
    let started = Instant::now();
    let mut facts = taken.map(|taken| {
        let cached = controller.lister.get(key);
        Box::new(EndedTurn {
            queued: since.map(|since| taken.saturating_duration_since(since)),
            waited: started.saturating_duration_since(taken),
            reasons: reasons.clone(),
            is_absent: cached.is_none(),
            seen: cached.and_then(|object| object.version_number()),
            ..EndedTurn::default()
        })
    });
    let recorder = controller.recorder.get();
    let mark = mark.or_else(|| {
        let seen = || controller.lister.get(key).map(|object| object.resource_version().to_string());
        recorder.map(|recorder| recorder.started(name, key, &reasons, failures, seen()))
    });
    let recorded = mark.as_ref().filter(|mark| mark.recorder.is_some()).map(|mark| mark.id);
    let log = WriteLog::of_turn(mark);
    let turn = Turn {
        key: key.clone(),
        reasons,
        failures,
        cluster: controller.cluster.clone(),
        #[cfg(feature = "client")]
        permit: permit.clone(),
    };
    let request = Request::new(turn, controller.lister.clone(), log.clone());
    let result = log.scope(attempt(controller, request, permit)).instrument(span.clone()).await;
    if !span.is_disabled() && !matches!(result, TurnResult::Succeeded(_)) {
        span.record("otel.status_code", "ERROR");
    }
    let took = started.elapsed();
    // In the span, so that an exemplar names its trace.
    span.in_scope(|| controller.metrics.time.observe_duration(took));
    drop((span, events));
    if let TurnResult::Succeeded(outcome) = &result {
        tracing::debug!(controller = name, %key, ?outcome, ?took, "reconciled");
    }
    if let Some(facts) = &mut facts {
        (facts.took, facts.writes) = (took, log.copy());
        facts.own_version = own_version(controller, key, &facts.writes);
    }
    let writes = log.take();
    if permit.is_revocable() {
        tell_successor(controller, &writes, permit);
    }
    if let (Some(recorder), Some(turn)) = (recorder, recorded) {
        recorder.ended(turn, result.end());
    }
    if !own_writes.is_zero() {
        controller.own_writes.store(key, writes, controller.caches());
    }
    (result, facts)
}

/// Returns the span of a reconcile: in the trace of the first event that led to it, with links to the others.
fn reconcile_span(controller: &str, key: &ObjectKey, reasons: &Reasons, events: &[Span]) -> Span {
    let parent = events.first().and_then(Span::id).or_else(|| Span::current().id());
    let span = tracing::debug_span!(
        parent: parent,
        "reconcile",
        controller,
        %key,
        %reasons,
        otel.status_code = tracing::field::Empty,
    );
    for event in events.iter().skip(1) {
        span.follows_from(event);
    }
    span
}

/// Returns the version of the key's own object after the turn's writes, if the turn wrote it.
fn own_version<K: Resource>(controller: &ControllerInner<K>, key: &ObjectKey, writes: &[Write]) -> Option<u64> {
    let own = controller.sources.first()?.resource();
    let write = writes.iter().find(|write| write.key == *key && write.resource.to_string() == own)?;
    match &write.effect {
        WriteEffect::Stored(state) => state.version.as_str().parse().ok(),
        WriteEffect::Deleted { .. } => None,
    }
}

/// Notes the versions that this reconcile wrote, and that a cache of this controller will show, for the next owner of the key.
fn tell_successor<K: Resource>(controller: &ControllerInner<K>, writes: &[Write], permit: &Permit) {
    for write in writes {
        let WriteEffect::Stored(StoredState { version, .. }) = &write.effect else { continue };
        if let Ok(version) = version.as_str().parse()
            && let Some(source) = own_writes::sources_of(&controller.sources, write).next()
        {
            permit.wrote(source.resource(), version);
        }
    }
}

/// Calls the reconciler. Catches panics, and stops at the timeout and when leadership is lost.
async fn attempt<K: Resource>(controller: &ControllerInner<K>, request: Request<K>, permit: &Permit) -> TurnResult {
    if !permit.is_valid() {
        return TurnResult::PermitLost;
    }
    // A function may panic before it returns a future.
    let future = match catch_unwind(AssertUnwindSafe(|| controller.reconciler.call(request))) {
        Ok(future) => future,
        Err(panic) => return TurnResult::Panicked(message_of(&*panic)),
    };
    let mut future = pin!(future);
    let caught = poll_fn(|context| {
        if !permit.is_valid() {
            return Poll::Ready(TurnResult::PermitLost);
        }
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(|result| result.map_or_else(TurnResult::Failed, TurnResult::Succeeded)),
            // A future that panicked is not polled again.
            Err(panic) => Poll::Ready(TurnResult::Panicked(message_of(&*panic))),
        }
    });
    let limited = async {
        match controller.options.timeout {
            Some(limit) => tokio::time::timeout(limit, caught).await.unwrap_or(TurnResult::TimedOut),
            None => caught.await,
        }
    };
    if !permit.is_revocable() {
        return limited.await;
    }
    tokio::select! {
        biased;
        () = permit.revoked() => TurnResult::PermitLost,
        result = limited => result,
    }
}

/// Ends the turn of a key in the queue.
fn finish<K: Resource>(
    controller: &ControllerInner<K>,
    item: Item,
    result: &TurnResult,
    facts: Option<Box<EndedTurn>>,
) {
    let next = next_of(controller, &item, result);
    report(controller, &item, result, next);
    // Before the end of the turn, so that turns of one key are recorded in their order.
    record(controller, item.key(), result, next, facts);
    match next {
        Next::Forget => {
            controller.keys.gate.succeeded(item.key());
            succeed(controller, &item);
            item.forget();
        }
        Next::RequeueAfter(delay) => {
            succeed(controller, &item);
            let delay = controller.keys.delay_of(delay);
            controller.keys.add_delayed_reason(item.key().clone(), Reason::new(ReasonKind::Requeued), delay);
            item.requeue_after(delay);
        }
        Next::RetryAfter(delay) => {
            let delay = controller.keys.delay_of(delay);
            controller.keys.add_delayed_reason(item.key().clone(), Reason::new(ReasonKind::Retry), delay);
            item.retry_after(delay);
        }
        Next::Drop => drop(item),
    }
}

/// Decides what becomes of a key. The rate limiter may count a failure.
fn next_of<K: Resource>(controller: &ControllerInner<K>, item: &Item, result: &TurnResult) -> Next {
    match result {
        TurnResult::Succeeded(Outcome::Done) => Next::Forget,
        TurnResult::Succeeded(Outcome::RequeueAfter(delay)) => Next::RequeueAfter(*delay),
        TurnResult::Failed(error) => match decide(controller, &**error, item.failures().saturating_add(1)) {
            Retry::Never => Next::Forget,
            Retry::Backoff => Next::RetryAfter(item.limiter_delay()),
            Retry::After(delay) => Next::RetryAfter(delay),
        },
        TurnResult::Panicked(_) | TurnResult::TimedOut => Next::RetryAfter(item.limiter_delay()),
        TurnResult::PermitLost => Next::Drop,
    }
}

/// Counts and logs the result of a turn.
fn report<K: Resource>(controller: &ControllerInner<K>, item: &Item, result: &TurnResult, next: Next) {
    let (metrics, name, key) = (&controller.metrics, &*controller.name, item.key());
    let delay = match next {
        Next::RequeueAfter(delay) | Next::RetryAfter(delay) => delay,
        Next::Forget | Next::Drop => Duration::ZERO,
    };
    if matches!(next, Next::RetryAfter(_)) {
        metrics.error.increment();
    }
    match result {
        TurnResult::Succeeded(Outcome::Done) => metrics.success.increment(),
        TurnResult::Succeeded(Outcome::RequeueAfter(_)) => metrics.requeue_after.increment(),
        TurnResult::Failed(error) => {
            metrics.errors.increment();
            let failures = item.failures().saturating_add(1);
            if matches!(next, Next::Forget) {
                metrics.terminal.increment();
                tracing::error!(controller = name, %key, error = &**error, "reconcile failed, waiting for a change");
            } else {
                tracing::warn!(controller = name, %key, failures, ?delay, error = &**error, "reconcile failed, retrying");
            }
        }
        TurnResult::Panicked(panic) => {
            metrics.errors.increment();
            metrics.panics.increment();
            tracing::error!(controller = name, %key, panic, ?delay, "reconcile panicked, retrying");
        }
        TurnResult::TimedOut => {
            metrics.errors.increment();
            metrics.timeouts.increment();
            let limit = controller.options.timeout.unwrap_or_default();
            tracing::error!(controller = name, %key, ?limit, ?delay, "reconcile timed out, retrying");
        }
        TurnResult::PermitLost => {
            tracing::warn!(controller = name, %key, "reconcile dropped, its key may belong to another process");
        }
    }
}

/// Adds a turn to the history, if there is one.
fn record<K: Resource>(
    controller: &ControllerInner<K>,
    key: &ObjectKey,
    result: &TurnResult,
    next: Next,
    facts: Option<Box<EndedTurn>>,
) {
    let (Some(history), Some(mut facts)) = (controller.keys.history(), facts) else { return };
    facts.result = match result {
        TurnResult::Succeeded(_) => PastResult::Succeeded,
        TurnResult::Failed(error) if matches!(next, Next::Forget) => {
            PastResult::Terminal(with_sources(&**error).into())
        }
        TurnResult::Failed(error) => PastResult::Failed(with_sources(&**error).into()),
        TurnResult::Panicked(message) => PastResult::Panicked(message.as_str().into()),
        TurnResult::TimedOut => PastResult::TimedOut,
        TurnResult::PermitLost => PastResult::LeadershipLost,
    };
    facts.next = match next {
        Next::RequeueAfter(delay) | Next::RetryAfter(delay) => Some(delay),
        Next::Forget | Next::Drop => None,
    };
    history.ended(key, *facts);
}

/// Returns the message of an error, with those of its sources that it does not contain.
fn with_sources(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for source in std::iter::successors(error.source(), |error| error.source()) {
        let below = source.to_string();
        if !text.contains(&below) {
            text = format!("{text}: {below}");
        }
    }
    text
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
