//! The state of a queue as a plain value: which keys are ready, delayed, in process and failing.
//!
//! There is one slot per known key, and one table from keys to slots: an operation looks a key up at most once. What must
//! hold: a key is ready or in process, never both; it has at most one delay; a slot without any state is free. Nothing here
//! locks or waits.
//!
//! The functions on the path of add, get and done are always inlined: passing a key through memory from one function to
//! the next costs more than the steps themselves.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use tokio::time::{Duration, Instant};

use super::order::{self, Order};

/// All keys of a queue, and their state.
#[derive(Debug)]
pub(super) struct QueueState<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Slots by the hash of their key.
    table: HashTable<u32>,
    order: Order,
    /// Delayed slots by deadline. Slots with the same deadline stay in the order in which they were delayed.
    delayed: BTreeSet<(Instant, u64, u32)>,
    sequence: u64,
    processing: usize,
    /// The number of keys in process that were added again.
    again: usize,
    shutting_down: bool,
    /// The slot where the next sweep for old failures begins.
    sweep_from: usize,
    clock: fn() -> Instant,
}

#[derive(Debug)]
struct Slot<T> {
    /// `None` while the slot is free.
    key: Option<T>,
    hash: u64,
    group: Option<u64>,
    /// Increases with every turn, so that entries of earlier turns can be recognised as stale.
    stamp: u32,
    failures: u32,
    /// The priority of the turn that is ready, or of the one after the turn in process.
    priority: i8,
    queued: bool,
    processing: bool,
    again: bool,
    delay: Option<ActiveDelay>,
    /// When the key became ready, or was added during the turn in process.
    added: Option<Instant>,
    /// When processing began; or when the key became idle with failures.
    since: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct ActiveDelay {
    deadline: Instant,
    sequence: u64,
    priority: i8,
    cause: DelayCause,
}

/// The cause of a delay, in the order in which causes outrank each other: the delay of two causes has the higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DelayCause {
    /// A turn failed. The next success makes the retry needless.
    Retry,
    /// The rate limiter delayed an add. It must be processed, whatever else succeeds.
    RateLimit,
    /// The caller asked for a turn at this time.
    Timer,
}

/// A request to make a key ready later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    pub(super) deadline: Instant,
    pub(super) priority: i8,
    pub(super) cause: DelayCause,
    /// Whether this deadline replaces an earlier one.
    pub(super) replace: bool,
}

/// A key that was handed out.
#[derive(Debug)]
pub(super) struct Handed<T> {
    pub(super) key: T,
    pub(super) slot: u32,
    pub(super) priority: i8,
    pub(super) failures: u32,
    pub(super) queued_for: Option<Duration>,
}

/// The outcome of an add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The key is ready now.
    Ready,
    /// The key will be ready after the turn in process.
    Again,
    /// The key was ready already, or the queue is shut down.
    Ignored,
}

/// The number of keys in each state, and ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The number of keys that can be handed out.
    pub ready: usize,
    /// The number of delayed keys.
    pub delayed: usize,
    /// The number of keys that were handed out and are not done.
    pub in_process: usize,
    /// The number of keys with failures.
    pub failing: usize,
    /// The longest time that a key has been ready. Measured only by queues with a name.
    pub oldest: Option<Duration>,
    /// The longest time that a key has been in process. Measured only by queues with a name.
    pub longest_in_process: Option<Duration>,
    /// The sum of the times that keys have been in process. Measured only by queues with a name.
    pub unfinished: Option<Duration>,
}

/// The state of one key in a queue. A key can be in process and wait for a later turn at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStatus {
    /// Whether the key can be handed out.
    pub is_ready: bool,
    /// Whether the key was handed out and is not done.
    pub is_in_process: bool,
    /// Whether the key was added again while it was in process.
    pub is_added_again: bool,
    /// When the key became ready, or was added again while in process. Measured only by queues with a name.
    pub ready_since: Option<Instant>,
    /// When processing began. Measured only by queues with a name.
    pub in_process_since: Option<Instant>,
    /// When the delay of the key ends, if the key is delayed.
    pub delayed_until: Option<Instant>,
    /// Whether the delay is that of a failed turn.
    pub is_retry: bool,
    /// The number of failures since the key was last forgotten.
    pub failures: u32,
    /// The priority of the turn that is ready, or of the delayed one.
    pub priority: i8,
    /// The number of keys that are handed out before this one, if the key is ready and no other key is added.
    pub ahead: usize,
}

impl<T> QueueState<T> {
    pub(super) fn new(clock: fn() -> Instant) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
            order: Order::default(),
            delayed: BTreeSet::new(),
            sequence: 0,
            processing: 0,
            again: 0,
            shutting_down: false,
            sweep_from: 0,
            clock,
        }
    }

    pub(super) fn ready(&self) -> usize {
        self.order.len()
    }

    pub(super) fn delayed(&self) -> usize {
        self.delayed.len()
    }

    pub(super) fn in_process(&self) -> usize {
        self.processing
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Returns whether no key will ever be ready again.
    pub(super) fn is_over(&self) -> bool {
        self.shutting_down && self.order.len() == 0 && self.again == 0
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.delayed.first().map(|(deadline, ..)| *deadline)
    }

    /// Ignores adds from now on, and drops delayed keys.
    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
        for (_, _, id) in std::mem::take(&mut self.delayed) {
            self.slots[id as usize].delay = None;
            self.free_if_idle(id);
        }
    }

    /// Makes the slot's key ready, now or after the turn in process.
    #[inline(always)]
    fn enqueue(&mut self, id: u32, priority: i8, now: Option<Instant>) -> Added {
        let slot = &mut self.slots[id as usize];
        if slot.processing {
            if slot.again {
                slot.priority = slot.priority.max(priority);
                return Added::Ignored;
            }
            (slot.again, slot.priority) = (true, priority);
            slot.note_added(now);
            self.again += 1;
            return Added::Again;
        }
        if !slot.queued {
            slot.note_added(now);
            self.push(id, priority);
            return Added::Ready;
        }
        if priority > slot.priority {
            let old = slot.priority;
            self.push(id, priority);
            let slots = &self.slots;
            self.order.mark_stale(old, |entry| is_live(slots, entry));
        }
        Added::Ignored
    }

    #[inline(always)]
    fn push(&mut self, id: u32, priority: i8) {
        let slot = &mut self.slots[id as usize];
        slot.stamp = slot.stamp.wrapping_add(1);
        (slot.queued, slot.priority) = (true, priority);
        self.order.push(priority, slot.group, order::Entry { slot: id, stamp: slot.stamp });
    }

    /// Delays the slot's key. Returns whether it is now the next delayed key.
    pub(super) fn delay(&mut self, id: u32, delay: Delay) -> bool {
        let slot = &mut self.slots[id as usize];
        let mut new = ActiveDelay {
            deadline: delay.deadline,
            sequence: self.sequence,
            priority: delay.priority,
            cause: delay.cause,
        };
        if let Some(old) = &mut slot.delay {
            new.priority = new.priority.max(old.priority);
            if !delay.replace {
                new.cause = new.cause.max(old.cause);
            }
            if !delay.replace && old.deadline <= delay.deadline {
                (old.priority, old.cause) = (new.priority, new.cause);
                return false;
            }
            self.delayed.remove(&(old.deadline, old.sequence, id));
        }
        slot.delay = Some(new);
        self.sequence += 1;
        self.delayed.insert((new.deadline, new.sequence, id));
        self.delayed.first().is_some_and(|(_, _, first)| *first == id)
    }

    fn cancel_delay(&mut self, id: u32) -> bool {
        let Some(delay) = self.slots[id as usize].delay.take() else { return false };
        self.delayed.remove(&(delay.deadline, delay.sequence, id))
    }

    /// Makes delayed keys ready whose deadline has passed. Returns their number.
    pub(super) fn promote(&mut self, now: Instant, stamp: Option<Instant>) -> usize {
        let mut promoted = 0;
        while let Some(&(deadline, _, id)) = self.delayed.first() {
            if deadline > now {
                break;
            }
            self.delayed.pop_first();
            let delay = self.slots[id as usize].delay.take();
            let added = self.enqueue(id, delay.map_or(0, |delay| delay.priority), stamp);
            promoted += usize::from(added != Added::Ignored);
        }
        promoted
    }

    /// Ends a turn. Returns whether the key is ready for another one.
    #[inline]
    pub(super) fn done(&mut self, id: u32) -> bool {
        let slot = &mut self.slots[id as usize];
        slot.processing = false;
        slot.since = None;
        self.processing -= 1;
        if slot.again {
            slot.again = false;
            self.again -= 1;
            let priority = slot.priority;
            self.push(id, priority);
            return true;
        }
        self.free_if_idle(id);
        false
    }

    /// Counts a failure, unless the key is in process and still waits for an earlier retry.
    pub(super) fn fail(&mut self, id: u32) {
        if self.pending_retry(id).is_some() {
            return;
        }
        let slot = &mut self.slots[id as usize];
        slot.failures = slot.failures.saturating_add(1);
        if slot.processing && slot.delay.is_some_and(|delay| delay.cause == DelayCause::Retry) {
            // The turn took so long that it was the retry.
            self.cancel_delay(id);
        }
    }

    /// Returns the time of a retry that is still to come while the key is in process.
    pub(super) fn pending_retry(&self, id: u32) -> Option<Instant> {
        let slot = &self.slots[id as usize];
        let delay = slot.delay.filter(|delay| slot.processing && delay.cause < DelayCause::Timer)?;
        Some(delay.deadline).filter(|deadline| *deadline > (self.clock)())
    }

    pub(super) fn failures_of(&self, id: u32) -> u32 {
        self.slots[id as usize].failures
    }

    /// Forgets failures.
    pub(super) fn forgive(&mut self, id: u32) {
        self.slots[id as usize].failures = 0;
        self.free_if_idle(id);
    }

    /// Forgets failures, and cancels the retry of an earlier turn.
    pub(super) fn succeed(&mut self, id: u32) {
        if self.slots[id as usize].delay.is_some_and(|delay| delay.cause == DelayCause::Retry) {
            self.cancel_delay(id);
        }
        self.forgive(id);
    }

    /// Returns when processing of the slot's key began.
    pub(super) fn started(&self, id: u32) -> Option<Instant> {
        self.slots[id as usize].since
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

    /// Frees the slot if it has no state left. Failures alone are kept for a while.
    #[inline]
    fn free_if_idle(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        if slot.queued || slot.processing || slot.delay.is_some() || slot.key.is_none() {
            return;
        }
        if slot.failures > 0 && !self.shutting_down {
            slot.since = Some((self.clock)());
            self.sweep();
            return;
        }
        self.release(id);
    }

    #[inline]
    fn release(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        (slot.key, slot.failures) = (None, 0);
        if let Ok(entry) = self.table.find_entry(slot.hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
        if self.table.is_empty() && self.slots.len() > KEPT_SLOTS {
            self.release_memory();
        }
    }

    /// Releases all memory. The queue is empty, so that stale entries need not be kept either.
    #[cold]
    fn release_memory(&mut self) {
        *self = Self { shutting_down: self.shutting_down, sequence: self.sequence, ..Self::new(self.clock) };
    }

    /// Checks a few slots, and forgets failures of keys that have been idle for long.
    pub(super) fn sweep(&mut self) {
        let now = (self.clock)();
        for _ in 0..SWEPT.min(self.slots.len()) {
            self.sweep_from = if self.sweep_from + 1 < self.slots.len() { self.sweep_from + 1 } else { 0 };
            let Some(slot) = self.slots.get(self.sweep_from) else { return };
            let idle = !slot.queued && !slot.processing && slot.delay.is_none() && slot.key.is_some();
            let old = slot.since.is_some_and(|since| now.saturating_duration_since(since) > FAILURES_KEPT);
            if idle && old {
                self.release(self.sweep_from as u32);
            }
        }
    }
}

impl<T: Clone> QueueState<T> {
    /// Hands out the next key.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Option<Instant>) -> Option<Handed<T>> {
        let slots = &self.slots;
        let entry = self.order.pop(|entry| is_live(slots, entry))?;
        let popped = Popped { state: self, slot: entry.slot };
        let key = popped.state.slots[entry.slot as usize].key.clone()?;
        std::mem::forget(popped);
        let slot = &mut self.slots[entry.slot as usize];
        (slot.queued, slot.processing) = (false, true);
        let queued_for = now.and_then(|now| slot.note_started(now));
        self.processing += 1;
        let (priority, failures) = (slot.priority, slot.failures);
        Some(Handed { key, slot: entry.slot, priority, failures, queued_for })
    }

    /// Returns the keys in process, and since when, in no particular order.
    pub(super) fn in_process_keys(&self, limit: usize) -> Vec<(T, Option<Instant>)> {
        let processing = self.slots.iter().filter(|slot| slot.processing).take(limit.min(self.processing));
        processing.filter_map(|slot| Some((slot.key.clone()?, slot.since))).collect()
    }

    /// Returns the delayed key that becomes ready first, and when.
    pub(super) fn next_delayed(&self) -> Option<(T, Instant)> {
        let (deadline, _, id) = self.delayed.first()?;
        Some((self.slots[*id as usize].key.clone()?, *deadline))
    }
}

impl<T: Eq> QueueState<T> {
    /// Makes a key ready.
    #[inline(always)]
    pub(super) fn add(&mut self, key: T, hash: u64, group: Option<u64>, priority: i8, now: Option<Instant>) -> Added {
        if self.shutting_down {
            return Added::Ignored;
        }
        let id = self.slot_for(key, hash, group);
        self.enqueue(id, priority, now)
    }

    /// Returns the slot of a key. Creates it if necessary.
    #[inline(always)]
    pub(super) fn slot_for(&mut self, key: T, hash: u64, group: Option<u64>) -> u32 {
        if let Some(id) = self.find(&key, hash) {
            return id;
        }
        let id = self.free.pop().unwrap_or(self.slots.len() as u32);
        if id as usize == self.slots.len() {
            self.slots.push(Slot::empty());
        }
        let slot = &mut self.slots[id as usize];
        (slot.key, slot.hash, slot.group) = (Some(key), hash, group);
        let slots = &self.slots;
        self.table.insert_unique(hash, id, |id| slots[*id as usize].hash);
        id
    }

    #[inline]
    fn find(&self, key: &T, hash: u64) -> Option<u32> {
        self.table.find(hash, |id| self.slots[*id as usize].key.as_ref() == Some(key)).copied()
    }

    /// Hands out this key if it is ready, whatever its place in the order.
    pub(super) fn take_key(&mut self, key: &T, hash: u64, now: Option<Instant>) -> Option<Handed<T>>
    where
        T: Clone,
    {
        let id = self.find(key, hash)?;
        let slot = &mut self.slots[id as usize];
        if !slot.queued {
            return None;
        }
        let key = slot.key.clone()?;
        (slot.queued, slot.processing) = (false, true);
        let queued_for = now.and_then(|now| slot.note_started(now));
        let (priority, failures) = (slot.priority, slot.failures);
        self.processing += 1;
        // The entry stays behind, as that of a key that moves to another level.
        let slots = &self.slots;
        self.order.mark_stale(priority, |entry| is_live(slots, entry));
        Some(Handed { key, slot: id, priority, failures, queued_for })
    }

    /// Returns when a delayed key becomes ready.
    pub(super) fn delayed_until(&self, key: &T, hash: u64) -> Option<Instant> {
        let id = self.find(key, hash)?;
        self.slots[id as usize].delay.map(|delay| delay.deadline)
    }

    /// Cancels a delay. Returns whether there was one.
    pub(super) fn cancel(&mut self, key: &T, hash: u64) -> bool {
        let Some(id) = self.find(key, hash) else { return false };
        let was_delayed = self.cancel_delay(id);
        self.free_if_idle(id);
        was_delayed
    }

    /// Returns the state of a key, if the queue has one.
    pub(super) fn status(&self, key: &T, hash: u64) -> Option<KeyStatus> {
        let id = self.find(key, hash)?;
        let slot = &self.slots[id as usize];
        let entry = order::Entry { slot: id, stamp: slot.stamp };
        let slots = &self.slots;
        let ahead =
            slot.queued.then(|| self.order.ahead_of(slot.priority, slot.group, entry, |other| is_live(slots, other)));
        Some(KeyStatus {
            is_ready: slot.queued,
            is_in_process: slot.processing,
            is_added_again: slot.again,
            ready_since: slot.added.filter(|_| slot.queued || slot.again),
            in_process_since: slot.since.filter(|_| slot.processing),
            delayed_until: slot.delay.map(|delay| delay.deadline),
            is_retry: slot.delay.is_some_and(|delay| delay.cause < DelayCause::Timer),
            failures: slot.failures,
            priority: slot
                .delay
                .map_or(slot.priority, |delay| if slot.queued { slot.priority } else { delay.priority }),
            ahead: ahead.unwrap_or_default(),
        })
    }

    pub(super) fn forget(&mut self, key: &T, hash: u64) {
        if let Some(id) = self.find(key, hash) {
            self.forgive(id);
        }
    }

    pub(super) fn pending_retry_of(&self, key: &T, hash: u64) -> Option<Instant> {
        self.find(key, hash).and_then(|id| self.pending_retry(id))
    }

    pub(super) fn failures(&self, key: &T, hash: u64) -> u32 {
        self.find(key, hash).map_or(0, |id| self.slots[id as usize].failures)
    }
}

/// A key that left the order, and returns to it if its `Clone` panics.
struct Popped<'a, T> {
    state: &'a mut QueueState<T>,
    slot: u32,
}

impl<T> Drop for Popped<'_, T> {
    fn drop(&mut self) {
        let priority = self.state.slots[self.slot as usize].priority;
        self.state.push(self.slot, priority);
    }
}

impl<T> Slot<T> {
    /// Notes when the key became ready, if the queue measures times.
    #[inline]
    fn note_added(&mut self, now: Option<Instant>) {
        if now.is_some() {
            self.added = now;
        }
    }

    /// Notes the begin of a turn. Returns how long the key was ready.
    fn note_started(&mut self, now: Instant) -> Option<Duration> {
        self.since = Some(now);
        self.added.take().map(|added| now.saturating_duration_since(added))
    }

    fn empty() -> Self {
        Self {
            key: None,
            hash: 0,
            group: None,
            stamp: 0,
            failures: 0,
            priority: 0,
            queued: false,
            processing: false,
            again: false,
            delay: None,
            added: None,
            since: None,
        }
    }
}

#[inline]
fn is_live<T>(slots: &[Slot<T>], entry: order::Entry) -> bool {
    slots.get(entry.slot as usize).is_some_and(|slot| slot.queued && slot.stamp == entry.stamp)
}

/// How long failures of an idle key are kept.
pub(super) const FAILURES_KEPT: Duration = Duration::from_secs(30 * 60);
/// The number of slots that a sweep for old failures checks.
const SWEPT: usize = 4;
/// An empty queue with more slots than this releases its memory.
const KEPT_SLOTS: usize = 4096;
