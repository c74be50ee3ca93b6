//! The queue's one lock, and who is woken when.
//!
//! `tests/schedules` compiles this file and those it uses against other locks, to try how threads may interleave. What must
//! hold: nothing is woken, called or waited for while the lock is held, and no wake-up is lost (see [`super::waiters`]).

use std::{
    hash::{BuildHasher, Hash},
    task::{Context, Poll, Waker},
};

use tokio::time::{Duration, Instant};

use super::{
    state::{Added, Delay, Handed, QueueStats, State},
    waiters::{Id, Waiters},
};
use crate::sync::{BriefGuard, BriefLock};

/// What handles of a queue share.
#[derive(Debug)]
pub(super) struct Core<T> {
    inner: BriefLock<Inner<T>>,
    hasher: foldhash::fast::RandomState,
    clock: fn() -> Instant,
    /// Whether it is noted how long keys are ready and in process.
    timed: bool,
}

#[derive(Debug)]
struct Inner<T> {
    state: State<T>,
    getters: Waiters,
    drainers: Waiters,
    /// How often those who wait for the end were told to wait no longer.
    releases: u64,
}

/// One who waits for a key.
#[derive(Debug, Default)]
pub(super) struct Getter {
    id: Option<Id>,
}

/// One who waits for the end.
#[derive(Debug, Default)]
pub(super) struct Drainer {
    id: Option<Id>,
    releases: u64,
}

impl<T> Core<T> {
    pub(super) fn new(timed: bool, clock: fn() -> Instant) -> Self {
        let inner =
            Inner { state: State::new(clock), getters: Waiters::default(), drainers: Waiters::default(), releases: 0 };
        Self { inner: BriefLock::new(inner), hasher: foldhash::fast::RandomState::default(), clock, timed }
    }

    #[inline]
    fn lock(&self) -> BriefGuard<'_, Inner<T>> {
        // A key's `Eq` or `Clone` may panic while this is held: before anything is changed, and the lock is open then.
        self.inner.lock()
    }

    #[inline]
    fn now_if_timed(&self) -> Option<Instant> {
        self.timed.then(self.clock)
    }

    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Ends the turn of a slot; says how long it took.
    #[inline]
    pub(super) fn done(&self, slot: u32) -> Option<Duration> {
        self.end_turn(slot, |_| false)
    }

    /// Ends the turn of a slot and forgets its failures, in one step.
    pub(super) fn done_and_forgive(&self, slot: u32) -> Option<Duration> {
        self.end_turn(slot, |state| {
            state.forgive(slot);
            false
        })
    }

    /// Ends the turn of a slot and makes its key ready later, in one step. Failures are forgotten unless this is due to one.
    pub(super) fn done_and_delay(&self, slot: u32, delay: Delay) -> Option<Duration> {
        self.end_turn(slot, |state| {
            if !delay.backoff {
                state.forgive(slot);
            }
            !state.is_shutting_down() && state.delay(slot, delay)
        })
    }

    #[inline]
    fn end_turn(&self, slot: u32, before: impl FnOnce(&mut State<T>) -> bool) -> Option<Duration> {
        let now = self.now_if_timed();
        let mut inner = self.lock();
        let took = now.and_then(|now| inner.state.started(slot).map(|started| now.saturating_duration_since(started)));
        let is_first = before(&mut inner.state);
        let is_ready = inner.state.done(slot);
        if is_first || inner.state.is_shutting_down() {
            wake_many(inner, is_ready);
        } else {
            wake_next(inner, is_ready);
        }
        took
    }

    /// Counts a failure of the slot that is in process; says how many there were before.
    pub(super) fn fail(&self, slot: u32) -> u32 {
        self.lock().state.fail(slot)
    }

    /// Takes back that somebody waits for a key. A wake-up that was meant for it goes to another one.
    #[inline]
    pub(super) fn stop_getting(&self, getter: &mut Getter) {
        if getter.id.is_some() {
            let mut inner = self.lock();
            inner.getters.leave(&mut getter.id);
            let is_ready = inner.state.ready() > 0;
            wake_next(inner, is_ready);
        }
    }

    /// Ends the intake.
    pub(super) fn shut_down(&self) {
        let mut inner = self.lock();
        inner.state.shut_down();
        inner.releases += 1;
        let drainers: Vec<_> = inner.drainers.all().collect();
        let getters: Vec<_> = inner.getters.all().collect();
        drop(inner);
        wake_all(drainers);
        wake_all(getters);
    }

    /// Ends the intake, and begins to wait for the end.
    pub(super) fn start_draining(&self) -> Drainer {
        let mut inner = self.lock();
        inner.state.shut_down();
        let drainer = Drainer { id: None, releases: inner.releases };
        let getters: Vec<_> = inner.getters.all().collect();
        drop(inner);
        wake_all(getters);
        drainer
    }

    /// Ready when nothing is ready nor in process, or when another shutdown ends the waiting.
    pub(super) fn poll_drained(&self, drainer: &mut Drainer, context: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.releases != drainer.releases || inner.is_drained() {
            return Poll::Ready(());
        }
        inner.drainers.join(&mut drainer.id, context.waker());
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

    /// How many keys are ready, those included that have just waited long enough; and how many of those there are.
    pub(super) fn ready(&self) -> (usize, usize) {
        let mut inner = self.lock();
        let promoted = inner.promote(self);
        let ready = inner.state.ready();
        wake_next(inner, promoted > 0);
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
    /// Looks for a key; none when the queue is shut down and nothing is left. Whoever finds none stands in line if there is
    /// somebody to wake, and `wait` is told the time at which to look again in any case, if there is one. Both functions are
    /// told how many keys have become ready by waiting.
    ///
    /// `hand_out` makes what is returned, in its place: a key that is passed on from one enum to another is copied each time,
    /// which costs more than the work itself.
    #[inline(always)]
    pub(super) fn look<R>(
        &self,
        getter: &mut Getter,
        waker: Option<&Waker>,
        hand_out: impl FnOnce(Handed<T>, usize) -> R,
        wait: impl FnOnce(Option<Instant>, usize),
    ) -> Poll<Option<R>> {
        let mut inner = self.lock();
        let promoted = if inner.state.delayed() > 0 { inner.promote(self) } else { 0 };
        let now = if inner.state.ready() > 0 { self.now_if_timed() } else { None };
        if let Some(item) = inner.state.take(now) {
            inner.getters.leave(&mut getter.id);
            // More than one may have become ready at once, and only one of those who wait has been told.
            let is_ready = inner.state.ready() > 0;
            wake_next(inner, is_ready);
            return Poll::Ready(Some(hand_out(item, promoted)));
        }
        let deadline = inner.stand_in_line(getter, waker);
        drop(inner);
        let Some(deadline) = deadline else { return Poll::Ready(None) };
        wait(deadline, promoted);
        Poll::Pending
    }

    pub(super) fn next_delayed(&self) -> Option<(T, Instant)> {
        self.lock().state.next_delayed()
    }
}

impl<T: Eq + Hash> Core<T> {
    /// Makes a key ready; says whether that is news.
    #[inline]
    pub(super) fn add(&self, key: T, group: Option<u64>, priority: i8) -> bool {
        let hash = self.hasher.hash_one(&key);
        let now = self.now_if_timed();
        let mut inner = self.lock();
        let added = inner.state.add(key, hash, group, priority, now);
        wake_next(inner, added == Added::Ready);
        added != Added::Nothing
    }

    /// Makes a key ready later.
    pub(super) fn delay(&self, key: T, group: Option<u64>, delay: Delay) {
        self.delay_and(key, group, delay, |_, _| {});
    }

    /// Counts a failure of a key, and makes it ready later.
    pub(super) fn fail_and_delay(&self, key: T, group: Option<u64>, delay: Delay) {
        self.delay_and(key, group, delay, |state, place| {
            state.fail(place);
        });
    }

    fn delay_and(&self, key: T, group: Option<u64>, delay: Delay, note: impl FnOnce(&mut State<T>, u32)) {
        let hash = self.hasher.hash_one(&key);
        let mut inner = self.lock();
        if inner.state.is_shutting_down() {
            return;
        }
        inner.state.sweep();
        let place = inner.state.place(key, hash, group);
        note(&mut inner.state, place);
        let is_first = inner.state.delay(place, delay);
        if is_first {
            wake_many(inner, false);
        }
    }

    pub(super) fn cancel(&self, key: &T) -> bool {
        let hash = self.hasher.hash_one(key);
        self.lock().state.cancel(key, hash)
    }

    pub(super) fn forget(&self, key: &T) {
        let hash = self.hasher.hash_one(key);
        self.lock().state.forget(key, hash);
    }

    pub(super) fn failures(&self, key: &T) -> u32 {
        let hash = self.hasher.hash_one(key);
        self.lock().state.failures(key, hash)
    }
}

impl<T> Inner<T> {
    fn promote(&mut self, core: &Core<T>) -> usize {
        let now = core.now();
        self.state.promote(now, core.timed.then_some(now))
    }

    /// What becomes of a getter for whom there is no key: the time at which to look again if there is one, or nothing if
    /// there is nothing to wait for.
    fn stand_in_line(&mut self, getter: &mut Getter, waker: Option<&Waker>) -> Option<Option<Instant>> {
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

    /// Everybody, if what just happened was the last thing to happen.
    fn over(&mut self) -> Vec<Waker> {
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

/// Lets go of the lock, and wakes whoever is next in line if there is something to find.
#[inline]
fn wake_next<T>(mut inner: BriefGuard<'_, Inner<T>>, is_ready: bool) {
    let waker = if is_ready { inner.getters.next() } else { None };
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Lets go of the lock, and wakes whoever has to know that there is an earlier deadline, or that the end has come.
#[cold]
fn wake_many<T>(mut inner: BriefGuard<'_, Inner<T>>, is_ready: bool) {
    let getter = if is_ready { inner.getters.next() } else { None };
    let others = if inner.state.is_shutting_down() { inner.over() } else { inner.getters.look_at_time() };
    drop(inner);
    wake_all(getter);
    wake_all(others);
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
