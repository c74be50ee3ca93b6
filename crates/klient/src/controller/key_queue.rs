//! The queue of a controller: keys, and the reasons to reconcile them.
//!
//! The work queue holds keys only, so that the reasons are stored beside it: added before the key is, and taken when its turn
//! begins. An event that arrives while a turn is about to begin may so be among the reasons of that turn, and the next
//! turn has none. The reason of a delayed add is used when its delay has passed, and not by a turn before that.
//!
//! If spans are enabled, those of the events are stored as well, so that a reconcile belongs to the trace of the change that led to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use klient_core::ObjectKey;
use tokio::time::{Duration, Instant};
use tracing::Span;

use super::{
    gate::Gate,
    history::{History, HistoryLimits},
    reason::{Reason, ReasonKind, Reasons},
};
use crate::{
    deadline,
    recording::Recorder,
    workqueue::{AddOptions, WorkQueue},
};

/// A work queue of keys with reasons.
pub(super) struct KeyQueue {
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) gate: Gate,
    pending: Mutex<HashMap<ObjectKey, Pending, foldhash::fast::RandomState>>,
    /// Recent turns and ignored events, if they are recorded.
    history: OnceLock<History>,
    /// The recorder or replay of keys that events add, if there is one.
    pub(super) tap: OnceLock<Tap>,
}

/// A recorder or a replay of added keys.
pub(super) enum Tap {
    /// Adds are recorded.
    Record(Recorder, Arc<str>),
    /// Adds wait until they are released, and delays until they are ended.
    Hold(Arc<Mutex<Held>>),
}

/// The adds that wait, oldest first.
#[derive(Default)]
pub(super) struct Held {
    pub(super) adds: Vec<HeldAdd>,
    /// The mark of adds that arrive now.
    pub(super) mark: u64,
}

/// An add that waits.
pub(super) struct HeldAdd {
    pub(super) mark: u64,
    pub(super) key: ObjectKey,
    pub(super) reason: Reason,
    pub(super) options: AddOptions,
}

/// The reasons of a key that is queued.
#[derive(Default)]
struct Pending {
    /// The reasons of the next turn.
    reasons: Reasons,
    /// When the first of these reasons was added. Measured only with a history.
    since: Option<Instant>,
    /// The spans of the events, if spans are enabled.
    causes: Vec<Cause>,
    /// The reason of a delayed add. A queue has one delay per key, the earliest.
    delayed: Option<Box<DelayedReason>>,
}

/// The span of an event, and that of the wait in the queue.
struct Cause {
    event: Span,
    _queue: Span,
}

/// The reasons of a turn that begins.
#[derive(Default)]
pub(super) struct TakenReasons {
    pub(super) reasons: Reasons,
    /// When the first of them was added. Measured only with a history.
    pub(super) since: Option<Instant>,
    /// The spans of the events, the oldest first. The spans of the wait in the queue have ended.
    pub(super) events: Vec<Span>,
}

struct DelayedReason {
    due: Instant,
    reason: Reason,
}

impl Cause {
    /// Returns the current span and a span of the wait in the queue, if spans are enabled.
    fn of(key: &ObjectKey) -> Option<Self> {
        let queue = tracing::debug_span!("queue", %key);
        if queue.is_disabled() { None } else { Some(Self { event: Span::current(), _queue: queue }) }
    }
}

impl KeyQueue {
    pub(super) fn new(queue: WorkQueue<ObjectKey>) -> Self {
        Self { queue, gate: Gate::default(), pending: Mutex::default(), tap: OnceLock::new(), history: OnceLock::new() }
    }

    /// Records turns and ignored events from now on.
    pub(super) fn record(&self, limits: HistoryLimits) {
        self.history.get_or_init(|| History::new(limits));
    }

    #[inline]
    pub(super) fn history(&self) -> Option<&History> {
        self.history.get()
    }

    /// Adds a key for a reason, unless it belongs to another replica.
    pub(super) fn add(&self, key: ObjectKey, reason: Reason, options: AddOptions) {
        if self.queue.is_shutting_down() || !self.gate.is_open(&key) {
            return;
        }
        match self.tap.get() {
            None => {}
            Some(Tap::Record(recorder, controller)) => recorder.queued(controller, &key, &reason),
            Some(Tap::Hold(held)) => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                let mark = held.mark;
                return held.adds.push(HeldAdd { mark, key, reason, options });
            }
        }
        self.add_untapped(key, reason, options);
    }

    /// Adds a key that is recorded or released already.
    pub(super) fn add_untapped(&self, key: ObjectKey, reason: Reason, options: AddOptions) {
        tracing::trace!(%key, %reason, ready = self.queue.len(), "queued key");
        match options.after {
            Some(delay) => self.add_delayed_reason(key.clone(), reason, delay),
            None => {
                let now = self.history().map(|_| Instant::now());
                let cause = Cause::of(&key);
                let mut pending = self.lock();
                let pending = pending.entry(key.clone()).or_default();
                pending.since = pending.since.or(now);
                pending.reasons.add(reason);
                // A span that is not stored ends here.
                if pending.causes.len() < Reasons::LIMIT {
                    pending.causes.extend(cause);
                }
            }
        }
        self.queue.add_with(key, options);
    }

    /// Stores the reason of a key that the caller adds to the queue after a delay.
    pub(super) fn add_delayed_reason(&self, key: ObjectKey, reason: Reason, delay: Duration) {
        let due = deadline::after(Instant::now(), delay);
        let mut pending = self.lock();
        let delayed = &mut pending.entry(key).or_default().delayed;
        // As in the queue, the earlier of two delays replaces the later one.
        if delayed.as_ref().is_none_or(|known| due < known.due) {
            *delayed = Some(Box::new(DelayedReason { due, reason }));
        }
    }

    /// Returns the delay of a retry or requeue: the given one, unless delays wait until they are ended.
    pub(super) fn delay_of(&self, delay: Duration) -> Duration {
        match self.tap.get() {
            Some(Tap::Hold(_)) => HELD_DELAY,
            _ => delay,
        }
    }

    /// Ends the delay of a key. Returns whether it was delayed.
    pub(super) fn end_delay(&self, key: &ObjectKey) -> bool {
        if self.queue.delayed_until(key).is_none() {
            return false;
        }
        if let Some(delayed) = self.lock().get_mut(key).and_then(|pending| pending.delayed.as_mut()) {
            delayed.due = Instant::now();
        }
        self.queue.reschedule(key.clone(), Duration::ZERO);
        true
    }

    /// Removes the reason of a retry that the queue has cancelled, after a success.
    pub(super) fn cancel_retry(&self, key: &ObjectKey) {
        let mut pending = self.lock();
        let Some(known) = pending.get_mut(key) else { return };
        if known.delayed.as_ref().is_some_and(|delayed| delayed.reason.kind == ReasonKind::Retry) {
            known.delayed = None;
            if known.reasons.is_empty() {
                pending.remove(key);
            }
        }
    }

    /// Takes the reasons of a key whose turn begins.
    pub(super) fn take_reasons(&self, key: &ObjectKey) -> TakenReasons {
        let mut pending = self.lock();
        let Some((key, Pending { mut reasons, mut since, causes, delayed })) = pending.remove_entry(key) else {
            return TakenReasons::default();
        };
        match delayed {
            Some(delayed) if delayed.due > Instant::now() => {
                pending.insert(key, Pending { delayed: Some(delayed), ..Pending::default() });
            }
            Some(delayed) => {
                since = since.or_else(|| self.history().map(|_| delayed.due));
                reasons.add(delayed.reason);
            }
            None => {}
        }
        drop(pending);
        TakenReasons { reasons, since, events: causes.into_iter().map(|cause| cause.event).collect() }
    }

    /// Returns the reasons of a key's next turn, the delayed one included.
    pub(super) fn pending_reasons(&self, key: &ObjectKey) -> Reasons {
        let pending = self.lock();
        let Some(known) = pending.get(key) else { return Reasons::default() };
        let mut reasons = known.reasons.clone();
        if let Some(delayed) = &known.delayed {
            reasons.add(delayed.reason.clone());
        }
        reasons
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pending, foldhash::fast::RandomState>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A delay that waits until it is ended: longer than any replay.
const HELD_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
