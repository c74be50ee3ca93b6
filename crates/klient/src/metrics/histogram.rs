//! Counts of values by size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How often values of each size were seen.
#[derive(Clone, Debug)]
pub struct Histogram {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bounds: &'static [f64],
    /// One more than there are bounds, for what is above them all.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl Histogram {
    /// With these upper bounds, in growing order.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { inner: Arc::new(Inner { bounds, counts, sum: AtomicU64::new(0) }) }
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let slot = self.inner.bounds.partition_point(|bound| *bound < value);
        self.inner.counts[slot].fetch_add(1, Ordering::Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure always gives a value, so that this cannot fail.
        let _ = self.inner.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Counts a time, in seconds.
    pub fn observe_duration(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.inner.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// All values together.
    pub fn sum(&self) -> f64 {
        f64::from_bits(self.inner.sum.load(Ordering::Relaxed))
    }

    /// Each upper bound with how many values were not above it.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.inner.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.inner.counts).scan(0, |below, (bound, count)| {
            *below += count.load(Ordering::Relaxed);
            Some((bound, *below))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_its_bucket_and_in_all_above() {
        let histogram = Histogram::new(&[1.0, 10.0]);
        for value in [0.5, 1.0, 5.0, 100.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(1.0, 2), (10.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 106.5));
    }
}
