//! The queue of a controller: keys, and the reasons to reconcile them.
//!
//! The work queue holds keys only, so that the reasons are stored beside it: added before the key is, and taken when its turn
//! begins. An event that arrives while a turn is about to begin may so be among the reasons of that turn, and the next
//! turn has none. The reason of a delayed add is used when its delay has passed, and not by a turn before that.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use klient_core::ObjectKey;
use tokio::time::{Duration, Instant};

use super::reason::{Reason, ReasonKind, Reasons};
use crate::{
    deadline,
    workqueue::{AddOptions, WorkQueue},
};

/// A work queue of keys with reasons.
pub(super) struct KeyQueue {
    pub(super) queue: WorkQueue<ObjectKey>,
    pending: Mutex<HashMap<ObjectKey, Pending, foldhash::fast::RandomState>>,
}

/// The reasons of a key that is queued.
#[derive(Default)]
struct Pending {
    /// The reasons of the next turn.
    reasons: Reasons,
    /// The reason of a delayed add. A queue has one delay per key, the earliest.
    delayed: Option<Box<DelayedReason>>,
}

struct DelayedReason {
    due: Instant,
    reason: Reason,
}

impl KeyQueue {
    pub(super) fn new(queue: WorkQueue<ObjectKey>) -> Self {
        Self { queue, pending: Mutex::default() }
    }

    /// Adds a key for a reason.
    pub(super) fn add(&self, key: ObjectKey, reason: Reason, options: AddOptions) {
        if self.queue.is_shutting_down() {
            return;
        }
        tracing::trace!(%key, %reason, ready = self.queue.len(), "queued key");
        match options.after {
            Some(delay) => self.add_delayed_reason(key.clone(), reason, delay),
            None => self.lock().entry(key.clone()).or_default().reasons.add(reason),
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
    pub(super) fn take_reasons(&self, key: &ObjectKey) -> Reasons {
        let mut pending = self.lock();
        let Some((key, Pending { mut reasons, delayed })) = pending.remove_entry(key) else {
            return Reasons::default();
        };
        match delayed {
            Some(delayed) if delayed.due > Instant::now() => {
                pending.insert(key, Pending { reasons: Reasons::default(), delayed: Some(delayed) });
            }
            Some(delayed) => reasons.add(delayed.reason),
            None => {}
        }
        reasons
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pending, foldhash::fast::RandomState>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
