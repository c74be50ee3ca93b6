//! The locks of the runtime half.
//!
//! `tests/schedules` compiles files that use these with shuttle's in their place, and explores how threads may interleave.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
pub(crate) use spin::mutex::SpinMutexGuard as BriefGuard;

/// A value that one writer replaces whole while any number of readers look at it. Nobody waits for anybody.
pub(crate) struct Published<T>(ArcSwap<T>);

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ArcSwap::from_pointee(value))
    }

    /// Looks at the newest value, without counting a reference to it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.load())
    }

    /// The newest value, for as long as the caller wants.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0.load_full()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

/// A lock for what takes nanoseconds: nothing is waited for while it is held.
///
/// What costs under contention is neither the work nor the waiting but that everything behind the lock travels from one
/// processor to the other each time. So whoever finds it taken tries again for a moment, and if that has happened often lately,
/// sleeps instead, for long enough that others get a thousand turns undisturbed. Nobody needs to be woken, and so unlocking is
/// a plain store.
pub(crate) struct BriefLock<T> {
    inner: spin::mutex::SpinMutex<T>,
    /// Grows by [`CONTENDED`] with each turn that had to be waited for, and falls by one with each other. Only the holder of
    /// the lock writes it.
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

/// With this, more than one turn in 17 that had to be waited for adds up.
const CONTENDED: u32 = 16;
/// From here on, it is better to sleep.
const PRESSED: u32 = 64;
const MOST_PRESSURE: u32 = 256;
/// How often to try before it is clear that the holder does not run: some microseconds.
const TRIES: u32 = 200;
const PAUSES: u32 = 4;
/// The system makes some 70 microseconds of it.
const UNDISTURBED: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_brief_lock_lets_one_in_at_a_time() {
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
    fn a_brief_lock_that_is_held_for_long_is_waited_for() {
        let lock = BriefLock::new(0);
        let held = lock.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| *lock.lock() += 1);
            // Longer than the waiter tries: it sleeps by now.
            thread::sleep(Duration::from_millis(5));
            assert!(!waiter.is_finished());
            drop(held);
        });
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn a_panic_opens_a_brief_lock() {
        let lock = BriefLock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("as a key's comparison may");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn pressure_grows_with_waiting_and_falls_without() {
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
