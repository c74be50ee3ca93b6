//! What time it is, which tests decide.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// What time it is.
    fn now(&self) -> Timestamp;
}

/// The machine's time.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A time that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
}

impl ManualClock {
    /// Starts at this time.
    pub fn new(now: Timestamp) -> Self {
        Self { now: Mutex::new(now) }
    }

    /// Moves on, or back.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(*now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
