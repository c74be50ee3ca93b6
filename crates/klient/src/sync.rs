//! The locks of informers and queues.
//!
//! `tests/schedules` compiles the files that use these locks with shuttle's instead, and explores how threads may interleave.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::Poll,
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
pub(crate) use spin::mutex::SpinMutexGuard as BriefGuard;

/// A value that one writer replaces while any number of readers use it. Neither side waits.
pub(crate) struct Published<T>(ArcSwap<T>);

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ArcSwap::from_pointee(value))
    }

    /// Calls a function with the newest value, without a new reference to it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.load())
    }

    /// Returns the newest value.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0.load_full()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

/// Lets other tasks of the thread run first.
///
/// An idle thread can take the task over in the meantime. After Tokio's `yield_now` it cannot: if one of the other tasks blocks
/// the thread, the task that yielded waits as well.
pub(crate) async fn yield_to_others() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A lock for critical sections of nanoseconds: its holder never waits.
///
/// Under contention, neither the work nor the waiting is expensive, but moving the cache lines behind the lock from one
/// processor to another. So a thread that finds the lock taken spins for a moment; after frequent contention it sleeps
/// instead, so that other threads get about a thousand turns undisturbed. No thread has to be woken, so that unlocking
/// is a plain store.
pub(crate) struct BriefLock<T> {
    inner: spin::mutex::SpinMutex<T>,
    /// Grows by [`CONTENDED`] with each contended lock, and falls by one with each other. Only the holder of the lock writes it.
    pressure: AtomicU32,
}

impl<T> BriefLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { inner: spin::mutex::SpinMutex::new(value), pressure: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
        let Some(guard) = self.inner.try_lock() else { return self.contend() };
        let pressure = self.pressure.load(Relaxed);
        if pressure > 0 {
            self.pressure.store(pressure - 1, Relaxed);
        }
        guard
    }

    #[cold]
    fn contend(&self) -> BriefGuard<'_, T> {
        let mut tries = if self.pressure.load(Relaxed) < PRESSED { TRIES } else { 0 };
        loop {
            if tries == 0 {
                thread::sleep(UNDISTURBED);
                tries = TRIES;
            }
            tries -= 1;
            for _ in 0..PAUSES {
                std::hint::spin_loop();
            }
            if let Some(guard) = self.inner.try_lock() {
                let pressure = self.pressure.load(Relaxed);
                self.pressure.store((pressure + CONTENDED).min(MOST_PRESSURE), Relaxed);
                return guard;
            }
        }
    }
}

impl<T> fmt::Debug for BriefLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BriefLock").finish_non_exhaustive()
    }
}

/// With this value, pressure grows if more than one lock in 17 is contended.
const CONTENDED: u32 = 16;
/// The pressure from which sleeping is better than spinning.
const PRESSED: u32 = 64;
const MOST_PRESSURE: u32 = 256;
/// The number of attempts after which the holder is probably not running: some microseconds.
const TRIES: u32 = 200;
const PAUSES: u32 = 4;
/// The operating system makes this about 70 microseconds.
const UNDISTURBED: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn brief_lock_is_exclusive() {
        let lock = BriefLock::new((0_u64, 0_u64));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let mut both = lock.lock();
                        both.0 += 1;
                        std::hint::black_box(&mut both);
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), (200_000, 200_000));
    }

    #[test]
    fn brief_lock_waits_for_a_slow_holder() {
        let lock = BriefLock::new(0);
        let held = lock.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| *lock.lock() += 1);
            // Longer than the waiter spins: it sleeps by now.
            thread::sleep(Duration::from_millis(5));
            assert!(!waiter.is_finished());
            drop(held);
        });
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn brief_lock_is_unlocked_by_a_panic() {
        let lock = BriefLock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("as a key's comparison may");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn pressure_grows_with_contention_and_falls_without() {
        let lock = BriefLock::new(());
        drop(lock.contend());
        for expected in (0..CONTENDED).rev() {
            drop(lock.lock());
            assert_eq!(lock.pressure.load(Relaxed), expected);
        }
        drop(lock.lock());
        assert_eq!(lock.pressure.load(Relaxed), 0);
    }
}
