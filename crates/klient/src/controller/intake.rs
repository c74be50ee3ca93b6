//! The way into the queue: a key, and why.
//!
//! The queue knows keys alone, so the reasons are kept beside it: added before the key is, taken when its turn begins. What happens
//! to a key while its turn is about to begin may so be told to that turn, and the next one has no reason to show.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use klient_core::ObjectKey;

use super::reason::{Reason, Reasons};
use crate::{
    metrics::Counter,
    workqueue::{AddOptions, WorkQueue},
};

/// Where sources put what has to be reconciled.
pub(super) struct Intake {
    pub(super) queue: WorkQueue<ObjectKey>,
    reasons: Mutex<HashMap<ObjectKey, Reasons, foldhash::fast::RandomState>>,
    /// Events that predicates kept out.
    filtered: Counter,
}

impl Intake {
    pub(super) fn new(queue: WorkQueue<ObjectKey>, filtered: Counter) -> Self {
        Self { queue, reasons: Mutex::default(), filtered }
    }

    pub(super) fn add(&self, key: ObjectKey, reason: Reason, priority: i8) {
        self.add_with(key, reason, AddOptions::default().priority(priority));
    }

    pub(super) fn add_with(&self, key: ObjectKey, reason: Reason, options: AddOptions) {
        if self.queue.is_shutting_down() {
            return;
        }
        tracing::trace!(%key, %reason, ready = self.queue.len(), "a key is queued");
        self.note(key.clone(), reason);
        self.queue.add_with(key, options);
    }

    /// Notes a reason for a key that is added in another way.
    pub(super) fn note(&self, key: ObjectKey, reason: Reason) {
        self.lock().entry(key).or_default().add(reason);
    }

    /// The reasons of a key whose turn begins.
    pub(super) fn take(&self, key: &ObjectKey) -> Reasons {
        self.lock().remove(key).unwrap_or_default()
    }

    /// Notes that a predicate kept an event out.
    pub(super) fn dropped(&self) {
        self.filtered.increment();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Reasons, foldhash::fast::RandomState>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
