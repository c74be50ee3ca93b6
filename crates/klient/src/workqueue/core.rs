//! The queue's one lock, and which waiters are woken when.
//!
//! `tests/schedules` compiles this file and those it uses with other locks, to explore how threads may interleave. What must
//! hold: no waker and no user code is called while the lock is held, and no wake-up is lost (see [`super::waiters`]).

use std::{
    hash::{BuildHasher, Hash},
    sync::TryLockError,
    task::{Context, Poll, Waker},
};

use tokio::time::{Duration, Instant};

use super::{
    state::{Added, Delay, DelayCause, Handed, KeyStatus, QueueState, QueueStats},
    waiters::{Id, Waiters},
};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a queue behind its lock.
#[derive(Debug)]
pub(super) struct Core<T> {
    locked: Mutex<Locked<T>>,
    hasher: foldhash::fast::RandomState,
    clock: fn() -> Instant,
    /// Whether the queue measures how long keys are ready and in process.
    timed: bool,
}

/// The number of pauses before a thread sleeps until the lock is free, each twice as long as the one before: 10 to 50 us in all.
const ROUNDS: u32 = 10;

#[derive(Debug)]
struct Locked<T> {
    state: QueueState<T>,
    getters: Waiters,
    drainers: Waiters,
    /// How often waiting drainers were released by another shutdown.
    releases: u64,
}

/// A waiter for a key.
#[derive(Debug, Default)]
pub(super) struct Getter {
    id: Option<Id>,
}

/// A waiter for the end of the queue.
#[derive(Debug, Default)]
pub(super) struct Drainer {
    id: Option<Id>,
    releases: u64,
}

impl<T> Core<T> {
    pub(super) fn new(timed: bool, clock: fn() -> Instant) -> Self {
        let locked = Locked {
            state: QueueState::new(clock),
            getters: Waiters::default(),
            drainers: Waiters::default(),
            releases: 0,
        };
        Self { locked: Mutex::new(locked), hasher: foldhash::fast::RandomState::default(), clock, timed }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Locked<T>> {
        // The lock is held for some 20 ns. Threads that look at it all the time slow its holder down, and a thread that sleeps costs
        // two system calls: with two threads, a key takes 160 ns of CPU with these pauses, and 570 ns without them.
        for round in 0..ROUNDS {
            match self.locked.try_lock() {
                Ok(locked) => return locked,
                // A key's `Eq` or `Clone` may panic while the lock is held. It does so before any change.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            for _ in 0..1 << round {
                std::hint::spin_loop();
            }
        }
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn now_if_timed(&self) -> Option<Instant> {
        self.timed.then(self.clock)
    }

    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Ends the turn of a slot. Returns how long it took.
    #[inline]
    pub(super) fn done(&self, slot: u32) -> Option<Duration> {
        self.end_turn(slot, |_| false)
    }

    /// Ends the turn of a slot as a success, in one step.
    pub(super) fn done_and_succeed(&self, slot: u32) -> Option<Duration> {
        self.end_turn(slot, |state| {
            state.succeed(slot);
            false
        })
    }

    /// Ends the turn of a slot and delays its key, in one step. The turn failed if the delay is that of a retry.
    pub(super) fn done_and_delay(&self, slot: u32, delay: Delay) -> Option<Duration> {
        self.end_turn(slot, |state| {
            state.sweep();
            match delay.cause {
                DelayCause::Retry => state.fail(slot),
                _ => state.succeed(slot),
            }
            !state.is_shutting_down() && state.delay(slot, delay)
        })
    }

    #[inline]
    fn end_turn(&self, slot: u32, before: impl FnOnce(&mut QueueState<T>) -> bool) -> Option<Duration> {
        let now = self.now_if_timed();
        let mut locked = self.lock();
        let took = now.and_then(|now| locked.state.started(slot).map(|started| now.saturating_duration_since(started)));
        let is_first = before(&mut locked.state);
        let is_ready = locked.state.done(slot);
        if is_first || locked.state.is_shutting_down() {
            wake_many(locked, is_ready);
        } else {
            wake_next(locked, is_ready);
        }
        took
    }

    /// Returns the failures of a slot in process, and the time of a retry that is still to come.
    pub(super) fn failures_in_process(&self, slot: u32) -> (u32, Option<Instant>) {
        let locked = self.lock();
        (locked.state.failures_of(slot), locked.state.pending_retry(slot))
    }

    /// Removes a waiter for a key. A wake-up that was meant for it is passed on.
    #[inline]
    pub(super) fn stop_getting(&self, getter: &mut Getter) {
        if getter.id.is_some() {
            let mut locked = self.lock();
            locked.getters.leave(&mut getter.id);
            let is_ready = locked.state.ready() > 0;
            wake_next(locked, is_ready);
        }
    }

    /// Shuts the queue down, and releases all waiters.
    pub(super) fn shut_down(&self) {
        let mut locked = self.lock();
        locked.state.shut_down();
        locked.releases += 1;
        let drainers: Vec<_> = locked.drainers.all().collect();
        let getters: Vec<_> = locked.getters.all().collect();
        drop(locked);
        wake_all(drainers);
        wake_all(getters);
    }

    /// Shuts the queue down, and begins to wait for its end.
    pub(super) fn start_draining(&self) -> Drainer {
        let mut locked = self.lock();
        locked.state.shut_down();
        let drainer = Drainer { id: None, releases: locked.releases };
        let getters: Vec<_> = locked.getters.all().collect();
        drop(locked);
        wake_all(getters);
        drainer
    }

    /// Returns `Ready` when no key is ready or in process, or when another shutdown ends the wait.
    pub(super) fn poll_drained(&self, drainer: &mut Drainer, context: &Context<'_>) -> Poll<()> {
        let mut locked = self.lock();
        if locked.releases != drainer.releases || locked.is_drained() {
            return Poll::Ready(());
        }
        locked.drainers.join(&mut drainer.id, context.waker());
        Poll::Pending
    }

    pub(super) fn stop_draining(&self, drainer: &mut Drainer) {
        if drainer.id.is_some() {
            self.lock().drainers.leave(&mut drainer.id);
        }
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.lock().state.is_shutting_down()
    }

    /// Returns the number of ready keys after promoting delayed ones, and how many were promoted.
    pub(super) fn ready(&self) -> (usize, usize) {
        let mut locked = self.lock();
        let promoted = locked.promote(self);
        let ready = locked.state.ready();
        wake_next(locked, promoted > 0);
        (ready, promoted)
    }

    pub(super) fn delayed(&self) -> usize {
        self.lock().state.delayed()
    }

    pub(super) fn in_process(&self) -> usize {
        self.lock().state.in_process()
    }

    pub(super) fn stats(&self) -> QueueStats {
        let now = self.now();
        self.lock().state.stats(now)
    }
}

impl<T: Clone> Core<T> {
    /// Takes the next key; `None` when the queue is shut down and no key is left. If no key is ready, the caller joins the
    /// waiters if it has a waker, and `wait` is called with the time of the next delayed key, if any. Both functions
    /// receive the number of promoted keys.
    ///
    /// `hand_out` constructs the output in place: moving a key from one enum to another copies it each time, which costs more
    /// than the rest of this function.
    #[inline(always)]
    pub(super) fn look<R>(
        &self,
        getter: &mut Getter,
        waker: Option<&Waker>,
        hand_out: impl FnOnce(Handed<T>, usize) -> R,
        wait: impl FnOnce(Option<Instant>, usize),
    ) -> Poll<Option<R>> {
        let mut locked = self.lock();
        let promoted = if locked.state.delayed() > 0 { locked.promote(self) } else { 0 };
        let now = if locked.state.ready() > 0 { self.now_if_timed() } else { None };
        if let Some(item) = locked.state.take(now) {
            locked.getters.leave(&mut getter.id);
            // Several keys may have become ready at once, and only one waiter was woken.
            let is_ready = locked.state.ready() > 0;
            wake_next(locked, is_ready);
            return Poll::Ready(Some(hand_out(item, promoted)));
        }
        let deadline = locked.wait_for_key(getter, waker);
        drop(locked);
        let Some(deadline) = deadline else { return Poll::Ready(None) };
        wait(deadline, promoted);
        Poll::Pending
    }

    pub(super) fn in_process_keys(&self, limit: usize) -> Vec<(T, Option<Instant>)> {
        self.lock().state.in_process_keys(limit)
    }

    pub(super) fn next_delayed(&self) -> Option<(T, Instant)> {
        self.lock().state.next_delayed()
    }
}

impl<T: Eq + Hash> Core<T> {
    /// Makes a key ready. Returns whether it was not ready before.
    #[inline]
    pub(super) fn add(&self, key: T, group: Option<u64>, priority: i8) -> bool {
        let hash = self.hasher.hash_one(&key);
        let now = self.now_if_timed();
        let mut locked = self.lock();
        let added = locked.state.add(key, hash, group, priority, now);
        wake_next(locked, added == Added::Ready);
        added != Added::Ignored
    }

    /// Makes a key ready later. Counts a failure if the rate limiter chose the delay.
    pub(super) fn delay(&self, key: T, group: Option<u64>, delay: Delay) {
        let hash = self.hasher.hash_one(&key);
        let mut locked = self.lock();
        if locked.state.is_shutting_down() {
            return;
        }
        locked.state.sweep();
        let slot = locked.state.slot_for(key, hash, group);
        if delay.cause == DelayCause::RateLimit {
            locked.state.fail(slot);
        }
        let is_first = locked.state.delay(slot, delay);
        if is_first {
            wake_many(locked, false);
        }
    }

    /// Takes this key if it is ready. Returns the number of promoted keys as well.
    pub(super) fn take_key(&self, key: &T) -> (Option<Handed<T>>, usize)
    where
        T: Clone,
    {
        let hash = self.hasher.hash_one(key);
        let mut locked = self.lock();
        let promoted = locked.promote(self);
        let now = self.now_if_timed();
        let taken = locked.state.take_key(key, hash, now);
        wake_next(locked, promoted > 0);
        (taken, promoted)
    }

    pub(super) fn delayed_until(&self, key: &T) -> Option<Instant> {
        let hash = self.hasher.hash_one(key);
        self.lock().state.delayed_until(key, hash)
    }

    pub(super) fn cancel(&self, key: &T) -> bool {
        let hash = self.hasher.hash_one(key);
        self.lock().state.cancel(key, hash)
    }

    pub(super) fn forget(&self, key: &T) {
        let hash = self.hasher.hash_one(key);
        self.lock().state.forget(key, hash);
    }

    /// Returns the time of a retry that is still to come although the key is in process.
    pub(super) fn pending_retry_of(&self, key: &T) -> Option<Instant> {
        let hash = self.hasher.hash_one(key);
        self.lock().state.pending_retry_of(key, hash)
    }

    pub(super) fn status(&self, key: &T) -> Option<KeyStatus> {
        let hash = self.hasher.hash_one(key);
        self.lock().state.status(key, hash)
    }

    pub(super) fn failures(&self, key: &T) -> u32 {
        let hash = self.hasher.hash_one(key);
        self.lock().state.failures(key, hash)
    }
}

impl<T> Locked<T> {
    fn promote(&mut self, core: &Core<T>) -> usize {
        let now = core.now();
        self.state.promote(now, core.timed.then_some(now))
    }

    /// Makes a getter wait. Returns the time at which it has to look again, if any; `None` if there is nothing to wait for.
    fn wait_for_key(&mut self, getter: &mut Getter, waker: Option<&Waker>) -> Option<Option<Instant>> {
        if self.state.is_over() {
            self.getters.leave(&mut getter.id);
            return None;
        }
        if let Some(waker) = waker {
            self.getters.join(&mut getter.id, waker);
        }
        Some(self.state.next_deadline())
    }

    fn is_drained(&self) -> bool {
        self.state.is_over() && self.state.in_process() == 0
    }

    /// Returns the wakers of all waiters whose wait has ended.
    fn released(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.state.is_over() {
            woken.extend(self.getters.all());
        }
        if self.is_drained() {
            woken.extend(self.drainers.all());
        }
        woken
    }
}

/// Unlocks, and wakes the next getter if a key is ready.
#[inline]
fn wake_next<T>(mut locked: MutexGuard<'_, Locked<T>>, is_ready: bool) {
    let waker = if is_ready { locked.getters.next() } else { None };
    drop(locked);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Unlocks, and wakes all waiters that have to see an earlier deadline or the end of the queue.
#[cold]
fn wake_many<T>(mut locked: MutexGuard<'_, Locked<T>>, is_ready: bool) {
    let getter = if is_ready { locked.getters.next() } else { None };
    let others = if locked.state.is_shutting_down() { locked.released() } else { locked.getters.all_wakers() };
    drop(locked);
    wake_all(getter);
    wake_all(others);
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
