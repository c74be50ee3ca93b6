//! The queue as a value: what is ready, delayed, in process, and failing.
//!
//! One slot per key that anything is known of, and one table from keys to slots: an operation looks a key up at most once.
//! What must hold: a key is ready or in process, never both; it is delayed at most once; a slot of which nothing is left to
//! know is free. Nothing here locks or waits.
//!
//! What an add, a get and a done go through is inlined whatever its size: handing a key from one function to the next through
//! memory costs more than the steps themselves.

use std::collections::BTreeSet;

use tokio::time::{Duration, Instant};

use super::{
    order::{self, Order},
    table::Table,
};

/// All keys, and what is known of them.
#[derive(Debug)]
pub(super) struct State<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    table: Table,
    order: Order,
    /// By deadline; those of one deadline in the order in which they came.
    waiting: BTreeSet<(Instant, u64, u32)>,
    sequence: u64,
    processing: usize,
    /// How many of those in process were added again.
    again: usize,
    shutting_down: bool,
    /// Where the next look for forgotten failures begins.
    hand: usize,
    clock: fn() -> Instant,
}

#[derive(Debug)]
struct Slot<T> {
    /// Absent while the slot is free.
    key: Option<T>,
    group: Option<u64>,
    /// Grows with every turn, so that entries of earlier ones are known as stale.
    stamp: u32,
    failures: u32,
    /// Of the turn that is ready or comes after the one in process.
    priority: i8,
    queued: bool,
    processing: bool,
    again: bool,
    wait: Option<Wait>,
    /// Since when it is ready, or should be after the turn in process.
    added: Option<Instant>,
    /// Since when it is in process; since when only its failures are left of it.
    since: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    deadline: Instant,
    sequence: u64,
    priority: i8,
    /// Whether a failure is why it waits.
    backoff: bool,
}

/// When a key becomes ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    pub(super) deadline: Instant,
    pub(super) priority: i8,
    pub(super) backoff: bool,
    /// Whether an earlier deadline is given up for this one.
    pub(super) replace: bool,
}

/// A key that is handed out.
#[derive(Debug)]
pub(super) struct Handed<T> {
    pub(super) key: T,
    pub(super) slot: u32,
    pub(super) priority: i8,
    pub(super) failures: u32,
    pub(super) queued_for: Option<Duration>,
}

/// What an add came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is ready now.
    Ready,
    /// It is ready after the turn that is in process.
    Again,
    /// It was to be processed already, or the queue shuts down.
    Nothing,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Keys that can be handed out.
    pub ready: usize,
    /// Keys that wait for their time.
    pub delayed: usize,
    /// Keys that were handed out and are not done.
    pub in_process: usize,
    /// Keys of which failures are remembered.
    pub failing: usize,
    /// How long the key has been ready that has been so for longest. Only a queue with a name knows.
    pub oldest: Option<Duration>,
    /// How long the key has been in process that has been so for longest. Only a queue with a name knows.
    pub longest_in_process: Option<Duration>,
    /// How long all keys in process have been so, together. Only a queue with a name knows.
    pub unfinished: Option<Duration>,
}

impl<T> State<T> {
    pub(super) fn new(clock: fn() -> Instant) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            table: Table::default(),
            order: Order::default(),
            waiting: BTreeSet::new(),
            sequence: 0,
            processing: 0,
            again: 0,
            shutting_down: false,
            hand: 0,
            clock,
        }
    }

    pub(super) fn ready(&self) -> usize {
        self.order.len()
    }

    pub(super) fn delayed(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn in_process(&self) -> usize {
        self.processing
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Whether nothing will ever be ready again.
    pub(super) fn is_over(&self) -> bool {
        self.shutting_down && self.order.len() == 0 && self.again == 0
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.first().map(|(deadline, ..)| *deadline)
    }

    /// Nothing is added from now on, and what is delayed never comes.
    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
        for (_, _, place) in std::mem::take(&mut self.waiting) {
            self.slots[place as usize].wait = None;
            self.settle(place);
        }
    }

    /// Makes the slot's key ready, now or after the turn in process.
    #[inline(always)]
    fn enqueue(&mut self, place: u32, priority: i8, now: Option<Instant>) -> Added {
        let slot = &mut self.slots[place as usize];
        if slot.processing {
            if slot.again {
                slot.priority = slot.priority.max(priority);
                return Added::Nothing;
            }
            (slot.again, slot.priority) = (true, priority);
            slot.note_added(now);
            self.again += 1;
            return Added::Again;
        }
        if !slot.queued {
            slot.note_added(now);
            self.push(place, priority);
            return Added::Ready;
        }
        if priority > slot.priority {
            let old = slot.priority;
            self.push(place, priority);
            let slots = &self.slots;
            self.order.leave(old, |entry| is_live(slots, entry));
        }
        Added::Nothing
    }

    #[inline(always)]
    fn push(&mut self, place: u32, priority: i8) {
        let slot = &mut self.slots[place as usize];
        slot.stamp = slot.stamp.wrapping_add(1);
        (slot.queued, slot.priority) = (true, priority);
        self.order.push(priority, slot.group, order::Entry { slot: place, stamp: slot.stamp });
    }

    /// Delays the slot's key; says whether it is the first now.
    pub(super) fn delay(&mut self, place: u32, delay: Delay) -> bool {
        let slot = &mut self.slots[place as usize];
        let mut wait = Wait {
            deadline: delay.deadline,
            sequence: self.sequence,
            priority: delay.priority,
            backoff: delay.backoff,
        };
        if let Some(old) = &mut slot.wait {
            wait.priority = wait.priority.max(old.priority);
            if !delay.replace && old.deadline <= delay.deadline {
                old.priority = wait.priority;
                return false;
            }
            self.waiting.remove(&(old.deadline, old.sequence, place));
        }
        slot.wait = Some(wait);
        self.sequence += 1;
        self.waiting.insert((wait.deadline, wait.sequence, place));
        self.waiting.first().is_some_and(|(_, _, first)| *first == place)
    }

    fn stop_waiting(&mut self, place: u32) -> bool {
        let Some(wait) = self.slots[place as usize].wait.take() else { return false };
        self.waiting.remove(&(wait.deadline, wait.sequence, place))
    }

    /// Makes ready what has waited long enough; says how many that are.
    pub(super) fn promote(&mut self, now: Instant, stamp: Option<Instant>) -> usize {
        let mut promoted = 0;
        while let Some(&(deadline, _, place)) = self.waiting.first() {
            if deadline > now {
                break;
            }
            self.waiting.pop_first();
            let wait = self.slots[place as usize].wait.take();
            let added = self.enqueue(place, wait.map_or(0, |wait| wait.priority), stamp);
            promoted += usize::from(added != Added::Nothing);
        }
        promoted
    }

    /// Ends a turn; says whether the key is ready for another one.
    #[inline]
    pub(super) fn done(&mut self, place: u32) -> bool {
        let slot = &mut self.slots[place as usize];
        slot.processing = false;
        slot.since = None;
        self.processing -= 1;
        if slot.again {
            slot.again = false;
            self.again -= 1;
            let priority = slot.priority;
            self.push(place, priority);
            return true;
        }
        self.settle(place);
        false
    }

    /// Counts a failure; says how many there were before.
    pub(super) fn fail(&mut self, place: u32) -> u32 {
        let slot = &mut self.slots[place as usize];
        let before = slot.failures;
        slot.failures = before.saturating_add(1);
        before
    }

    /// Forgets failures, and the delay that is due to one.
    pub(super) fn forgive(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        slot.failures = 0;
        if slot.wait.is_some_and(|wait| wait.backoff) {
            self.stop_waiting(place);
        }
        self.settle(place);
    }

    /// Since when the slot's key is in process.
    pub(super) fn started(&self, place: u32) -> Option<Instant> {
        self.slots[place as usize].since
    }

    pub(super) fn stats(&self, now: Instant) -> QueueStats {
        let used = || self.slots.iter().filter(|slot| slot.key.is_some());
        let age = |since: Option<Instant>| since.map(|since| now.saturating_duration_since(since));
        let running = || used().filter(|slot| slot.processing).filter_map(|slot| age(slot.since));
        QueueStats {
            ready: self.ready(),
            delayed: self.delayed(),
            in_process: self.processing,
            failing: used().filter(|slot| slot.failures > 0).count(),
            oldest: used().filter(|slot| slot.queued).filter_map(|slot| age(slot.added)).max(),
            longest_in_process: running().max(),
            unfinished: running().reduce(|all, one| all + one),
        }
    }

    /// Frees the slot if nothing is left to know; failures alone are kept for a while.
    #[inline]
    fn settle(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        if slot.queued || slot.processing || slot.wait.is_some() || slot.key.is_none() {
            return;
        }
        if slot.failures > 0 && !self.shutting_down {
            slot.since = Some((self.clock)());
            return;
        }
        self.release(place);
    }

    #[inline]
    fn release(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        (slot.key, slot.failures) = (None, 0);
        self.table.remove(place);
        self.free.push(place);
        if self.table.is_empty() && self.slots.len() > KEPT_SLOTS {
            self.start_over();
        }
    }

    /// Gives the memory back. Entries of earlier turns are gone as well: nothing is ready.
    #[cold]
    fn start_over(&mut self) {
        *self = Self { shutting_down: self.shutting_down, sequence: self.sequence, ..Self::new(self.clock) };
    }

    /// Looks at a few slots, and forgets failures of keys that were not heard of for long.
    pub(super) fn sweep(&mut self) {
        let now = (self.clock)();
        for _ in 0..SWEPT.min(self.slots.len()) {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let Some(slot) = self.slots.get(self.hand) else { return };
            let idle = !slot.queued && !slot.processing && slot.wait.is_none() && slot.key.is_some();
            let old = slot.since.is_some_and(|since| now.saturating_duration_since(since) > FAILURES_KEPT);
            if idle && old {
                self.release(self.hand as u32);
            }
        }
    }
}

impl<T: Clone> State<T> {
    /// Hands out the next key.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Option<Instant>) -> Option<Handed<T>> {
        let slots = &self.slots;
        let entry = self.order.pop(|entry| is_live(slots, entry))?;
        let slot = &mut self.slots[entry.slot as usize];
        (slot.queued, slot.processing) = (false, true);
        let queued_for = now.and_then(|now| slot.note_started(now));
        self.processing += 1;
        let (priority, failures) = (slot.priority, slot.failures);
        Some(Handed { key: slot.key.clone()?, slot: entry.slot, priority, failures, queued_for })
    }

    /// The key that is ready next of those that are delayed, and when.
    pub(super) fn next_delayed(&self) -> Option<(T, Instant)> {
        let (deadline, _, place) = self.waiting.first()?;
        Some((self.slots[*place as usize].key.clone()?, *deadline))
    }
}

impl<T: Eq> State<T> {
    /// Makes a key ready.
    #[inline(always)]
    pub(super) fn add(&mut self, key: T, hash: u64, group: Option<u64>, priority: i8, now: Option<Instant>) -> Added {
        if self.shutting_down {
            return Added::Nothing;
        }
        let place = self.place(key, hash, group);
        self.enqueue(place, priority, now)
    }

    /// The slot of a key, a new one if need be.
    #[inline(always)]
    pub(super) fn place(&mut self, key: T, hash: u64, group: Option<u64>) -> u32 {
        if let Some(place) = self.find(&key, hash) {
            return place;
        }
        let place = self.free.pop().unwrap_or(self.slots.len() as u32);
        self.table.insert(hash, place);
        if place as usize == self.slots.len() {
            self.slots.push(Slot::empty());
        }
        let slot = &mut self.slots[place as usize];
        (slot.key, slot.group) = (Some(key), group);
        place
    }

    #[inline]
    fn find(&self, key: &T, hash: u64) -> Option<u32> {
        self.table.find(hash, |place| self.slots[place as usize].key.as_ref() == Some(key))
    }

    /// Takes back a delay; says whether there was one.
    pub(super) fn cancel(&mut self, key: &T, hash: u64) -> bool {
        let Some(place) = self.find(key, hash) else { return false };
        let waited = self.stop_waiting(place);
        self.settle(place);
        waited
    }

    pub(super) fn forget(&mut self, key: &T, hash: u64) {
        if let Some(place) = self.find(key, hash) {
            self.forgive(place);
        }
    }

    pub(super) fn failures(&self, key: &T, hash: u64) -> u32 {
        self.find(key, hash).map_or(0, |place| self.slots[place as usize].failures)
    }
}

impl<T> Slot<T> {
    /// Only a queue that keeps the time has anything to write here.
    #[inline]
    fn note_added(&mut self, now: Option<Instant>) {
        if now.is_some() {
            self.added = now;
        }
    }

    /// Begins a turn; says how long the key was ready.
    fn note_started(&mut self, now: Instant) -> Option<Duration> {
        self.since = Some(now);
        self.added.take().map(|added| now.saturating_duration_since(added))
    }

    fn empty() -> Self {
        Self {
            key: None,
            group: None,
            stamp: 0,
            failures: 0,
            priority: 0,
            queued: false,
            processing: false,
            again: false,
            wait: None,
            added: None,
            since: None,
        }
    }
}

#[inline]
fn is_live<T>(slots: &[Slot<T>], entry: order::Entry) -> bool {
    slots.get(entry.slot as usize).is_some_and(|slot| slot.queued && slot.stamp == entry.stamp)
}

/// Failures of a key that is neither ready, delayed nor in process are remembered for so long.
pub(super) const FAILURES_KEPT: Duration = Duration::from_secs(30 * 60);
/// How many slots a look for forgotten failures takes in.
const SWEPT: usize = 4;
/// An empty queue gives back its memory if it has had more slots than this.
const KEPT_SLOTS: usize = 4096;
