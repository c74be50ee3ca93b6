//! A seeded source of numbers (splitmix64): one seed is one plan.

use std::time::Duration;

/// A seeded generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// Returns the generator of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns a generator that does not depend on how often this one is used later.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `low` to `high - 1`.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    /// Returns true in this percentage of calls.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.range(0, 100) < chance
    }

    /// Returns a duration between two numbers of milliseconds.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.range(low, high))
    }

    /// Returns one of several values.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.range(0, of.len() as u64)).unwrap_or(0)]
    }
}
