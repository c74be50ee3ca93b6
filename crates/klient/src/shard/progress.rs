//! The state of this process in its group, as its tasks report it: for status, metrics and each other.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch;

use super::{slot::Slot, table::Table};
use crate::metrics::{Counter, Gauge, Registry};

/// The state of this process in its group.
pub(super) struct Progress {
    leaving: AtomicBool,
    coordinating: AtomicBool,
    lost: AtomicBool,
    state: Mutex<State>,
    /// Sent after each change, for callers that wait for a status.
    changed: watch::Sender<u64>,
    metrics: Metrics,
}

/// The part of the state that changes together.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The id of this process as a member. Empty before it has joined.
    pub(super) member: String,
    pub(super) table: Option<std::sync::Arc<Table>>,
    /// The slots that wait for caches, or for the end of older work.
    pub(super) opening: usize,
    pub(super) open: usize,
    /// The slots that were taken away, and on which reconciles still run.
    pub(super) draining: usize,
    /// The list that slots that are about to open wait for, in words.
    pub(super) awaited: Option<String>,
    /// The last problem, until it is over.
    pub(super) problem: Option<String>,
}

struct Metrics {
    owned: Gauge,
    draining: Gauge,
    generation: Gauge,
    coordinating: Gauge,
    gained: Counter,
    released: Counter,
    fenced: Counter,
    rejoined: Counter,
}

impl Progress {
    pub(super) fn new(registry: &Registry, group: &str) -> Self {
        let labels = &[("group", group)];
        let gauge = |name, help| registry.gauge(name, help, labels);
        let counter = |name, help| registry.counter(name, help, labels);
        let metrics = Metrics {
            owned: gauge("klient_shard_owned_slots", "Slots that this process works on."),
            draining: gauge(
                "klient_shard_draining_slots",
                "Slots that were taken away and still have running reconciles.",
            ),
            generation: gauge(
                "klient_shard_table_generation",
                "Generation of the newest table that this process obeys.",
            ),
            coordinating: gauge("klient_shard_coordinator", "1 if this process coordinates the group."),
            gained: counter("klient_shard_gained_slots_total", "Slots that this process began to work on."),
            released: counter("klient_shard_released_slots_total", "Slots that this process stopped working on."),
            fenced: counter("klient_shard_fenced_members_total", "Silent members that this process fenced."),
            rejoined: counter("klient_shard_rejoins_total", "Times that this process lost its Lease and joined again."),
        };
        Self {
            leaving: AtomicBool::new(false),
            coordinating: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            metrics,
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    pub(super) fn set_leaving(&self) {
        self.leaving.store(true, Ordering::Release);
        self.notify();
    }

    pub(super) fn is_coordinating(&self) -> bool {
        self.coordinating.load(Ordering::Acquire)
    }

    pub(super) fn set_coordinating(&self, coordinating: bool) {
        if self.coordinating.swap(coordinating, Ordering::AcqRel) != coordinating {
            self.metrics.coordinating.set(i64::from(coordinating));
            self.notify();
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(super) fn set_lost(&self, lost: bool) {
        if self.lost.swap(lost, Ordering::AcqRel) != lost {
            self.notify();
        }
    }

    pub(super) fn fenced(&self) {
        self.metrics.fenced.increment();
    }

    pub(super) fn rejoined(&self) {
        self.metrics.rejoined.increment();
    }

    pub(super) fn gained(&self, slots: &[Slot]) {
        self.metrics.gained.add(slots.len() as u64);
    }

    pub(super) fn released(&self, slots: usize) {
        self.metrics.released.add(slots as u64);
    }

    /// Changes the state, and tells callers that wait for a change.
    pub(super) fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let (open, draining) = (as_gauge(state.open), as_gauge(state.draining));
        let generation = state.table.as_ref().map_or(0, |table| table.generation);
        drop(state);
        self.metrics.owned.set(open);
        self.metrics.draining.set(draining);
        self.metrics.generation.set(i64::try_from(generation).unwrap_or(i64::MAX));
        self.notify();
    }

    pub(super) fn state(&self) -> State {
        self.lock().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn notify(&self) {
        self.changed.send_modify(|number| *number = number.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
