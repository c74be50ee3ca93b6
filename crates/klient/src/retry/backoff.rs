//! How long to wait between attempts: longer each time, a little at random, and not for ever.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Waits between the attempts at something.
///
/// The default suits conflicts, which pass as soon as the other writer is done: five attempts, about 10 ms apart.
/// [`Backoff::growing`] suits a server that needs time.
///
/// ```
/// use std::time::Duration;
/// use klient::retry::Backoff;
///
/// let waits: Vec<_> = Backoff::growing().jitter(0.0).delays().collect();
/// assert_eq!(waits, [10, 50, 250].map(Duration::from_millis));
/// ```
#[doc(alias = "DefaultRetry")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// How many times longer each wait is than the one before.
    pub factor: f64,
    /// Up to which part of itself a wait is made longer at random, so that many clients do not come back at once.
    pub jitter: f64,
    /// How many attempts there are: one more than there are waits.
    pub steps: u32,
    /// No wait is longer, before jitter.
    pub max: Duration,
}

/// The waits of a [`Backoff`], one after the other.
#[derive(Clone, Debug)]
pub struct Delays {
    backoff: Backoff,
    next: Duration,
    left: u32,
}

impl Backoff {
    /// Four attempts: 10, 50 and 250 ms apart.
    #[doc(alias = "DefaultBackoff")]
    pub fn growing() -> Self {
        Self { factor: 5.0, steps: 4, ..Self::default() }
    }

    /// Sets the first wait.
    #[must_use]
    pub fn first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// Sets how many times longer each wait is than the one before.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets up to which part of itself a wait is made longer at random.
    #[must_use]
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets how many attempts there are.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the longest wait, before jitter.
    #[must_use]
    pub fn max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// The waits.
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

/// Any factor gives some duration: nonsense and what no duration can hold give the longest one.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(DAY)
}

/// A number from 0 up to 1. Good enough to spread clients out, and needs no other crate.
pub(crate) fn random() -> f64 {
    // 53 bits are what a float holds exactly.
    (RandomState::new().hash_one(()) >> 11) as f64 / (1u64 << 53) as f64
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest() {
        let backoff = Backoff::default().first(Duration::from_secs(1)).factor(2.0).jitter(0.0).steps(6);
        let waits: Vec<_> = backoff.max(Duration::from_secs(5)).delays().map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5]);
    }

    #[test]
    fn jitter_makes_waits_longer_and_different() {
        let waits: Vec<_> = Backoff::default().jitter(0.5).steps(200).delays().collect();
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(10) && *most <= Duration::from_millis(15), "{least:?} {most:?}");
        assert_ne!(least, most);
    }

    proptest! {
        #[test]
        fn nonsense_never_panics(factor: f64, jitter: f64, first in 0u64.., steps in 0u32..40) {
            let backoff = Backoff::default().first(Duration::from_secs(first)).factor(factor).jitter(jitter);
            let count = backoff.steps(steps).delays().count();
            prop_assert_eq!(count, steps.saturating_sub(1) as usize);
        }
    }
}
