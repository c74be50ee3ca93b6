//! Time that counts while the machine is suspended, where the platform has such a clock.
//!
//! `Instant` stops on a suspended machine, and so does a lease that is measured with it. Other machines' clocks go on.

use std::{fmt, sync::Arc};

use tokio::time::{Duration, Instant};

/// A clock that counts time in which the machine is suspended, on Linux and Android. On other platforms, it is the same
/// as `Instant`.
#[derive(Clone)]
pub(crate) struct Clock {
    /// Returns the time since the machine was started, suspension included.
    since_boot: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// A moment of a [`Clock`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    since_boot: Duration,
}

impl Clock {
    /// Creates a clock from a function that returns the time since the machine was started.
    #[cfg(test)]
    pub(crate) fn new(since_boot: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { since_boot: Arc::new(since_boot) }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { since_boot: (self.since_boot)(), at: Instant::now() }
    }

    /// Returns the time since a moment, by the clock that has counted more.
    pub(crate) fn since(&self, moment: Moment) -> Duration {
        moment.at.elapsed().max((self.since_boot)().saturating_sub(moment.since_boot))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self { since_boot: Arc::new(since_boot) }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn clock_of_the_machine_runs() {
        let clock = Clock::default();
        let before = clock.now();
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        let after = clock.now();
        assert!(after.since_boot - before.since_boot >= Duration::from_millis(1));
    }

    #[tokio::test(start_paused = true)]
    async fn clock_counts_the_longer_time() {
        let suspended = Arc::new(std::sync::Mutex::new(Duration::ZERO));
        let read = Arc::clone(&suspended);
        let clock = Clock::new(move || *read.lock().unwrap());
        let start = clock.now();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.since(start), Duration::from_secs(3));
        *suspended.lock().unwrap() = Duration::from_secs(60);
        assert_eq!(clock.since(start), Duration::from_secs(60));
    }
}
