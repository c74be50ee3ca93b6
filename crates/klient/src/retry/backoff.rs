//! Delays between attempts: growing, with jitter, and limited in number.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The delays between attempts.
///
/// The default suits conflicts, which pass quickly: five attempts, about 10 ms apart. [`Backoff::growing`] suits a server that
/// needs time to recover.
///
/// ```
/// use std::time::Duration;
/// use klient::retry::Backoff;
///
/// let delays: Vec<_> = Backoff::growing().jitter(0.0).delays().collect();
/// assert_eq!(delays, [10, 50, 250].map(Duration::from_millis));
/// ```
#[doc(alias = "DefaultRetry")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// The first delay.
    pub first: Duration,
    /// The factor by which each delay is longer than the one before.
    pub factor: f64,
    /// The largest fraction by which a delay is extended at random, so that clients do not retry all at once.
    pub jitter: f64,
    /// The number of attempts: one more than the number of delays.
    pub steps: u32,
    /// The longest delay, before jitter.
    pub max: Duration,
}

/// An iterator over the delays of a [`Backoff`].
#[derive(Clone, Debug)]
pub struct Delays {
    backoff: Backoff,
    next: Duration,
    left: u32,
}

impl Backoff {
    /// Creates a backoff of four attempts: 10, 50 and 250 ms apart.
    #[doc(alias = "DefaultBackoff")]
    pub fn growing() -> Self {
        Self { factor: 5.0, steps: 4, ..Self::default() }
    }

    /// Sets the first delay.
    #[must_use]
    pub fn first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// Sets the factor by which each delay is longer than the one before.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets the largest fraction by which a delay is extended at random.
    #[must_use]
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets the number of attempts.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the longest delay, before jitter.
    #[doc(alias = "Cap")]
    #[must_use]
    pub fn max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// Returns the delays, one after the other.
    pub fn delays(&self) -> Delays {
        Delays { next: self.first.min(self.max), left: self.steps.saturating_sub(1), backoff: self.clone() }
    }
}

/// Five attempts, about 10 ms apart.
impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(10), factor: 1.0, jitter: 0.1, steps: 5, max: DAY }
    }
}

impl Iterator for Delays {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let delay = self.next;
        self.next = scaled(delay, self.backoff.factor).min(self.backoff.max);
        Some(scaled(delay, 1.0 + self.backoff.jitter.max(0.0) * random()))
    }
}

/// Multiplies a duration. A result that is not a valid `Duration` becomes one day.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(DAY)
}

/// Returns a random number from 0 up to 1: good enough for jitter, and without another dependency.
pub(crate) fn random() -> f64 {
    // An `f64` holds integers of 53 bits exactly.
    (RandomState::new().hash_one(()) >> 11) as f64 / (1u64 << 53) as f64
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_grow_up_to_the_maximum() {
        let backoff = Backoff::default().first(Duration::from_secs(1)).factor(2.0).jitter(0.0).steps(6);
        let delays: Vec<_> = backoff.max(Duration::from_secs(5)).delays().map(|delay| delay.as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
    }

    #[test]
    fn jitter_extends_delays_at_random() {
        let delays: Vec<_> = Backoff::default().jitter(0.5).steps(200).delays().collect();
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(10) && *most <= Duration::from_millis(15), "{least:?} {most:?}");
        assert_ne!(least, most);
    }

    proptest! {
        #[test]
        fn delays_never_panic(factor: f64, jitter: f64, first in 0u64.., steps in 0u32..40) {
            let backoff = Backoff::default().first(Duration::from_secs(first)).factor(factor).jitter(jitter);
            let count = backoff.steps(steps).delays().count();
            prop_assert_eq!(count, steps.saturating_sub(1) as usize);
        }
    }
}
