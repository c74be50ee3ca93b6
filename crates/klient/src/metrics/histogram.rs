//! Histograms: counts of values in buckets.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::exemplar::{self, Exemplar, Exemplars};

/// Counts of observed values, by upper bound.
#[derive(Clone, Debug)]
pub struct Histogram {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bounds: &'static [f64],
    /// One count per bound, and one for values above all bounds.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
    exemplars: OnceLock<Exemplars>,
}

impl Histogram {
    /// Creates a histogram with these upper bounds, in increasing order.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { inner: Arc::new(Inner { bounds, counts, sum: AtomicU64::new(0), exemplars: OnceLock::new() }) }
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let bucket = self.inner.bounds.partition_point(|bound| *bound < value);
        self.inner.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure always returns a value, so that this cannot fail.
        let _ = self.inner.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        exemplar::observed(&self.inner.exemplars, self.inner.counts.len(), bucket, value);
    }

    /// Counts a duration, in seconds.
    pub fn observe_duration(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.inner.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> f64 {
        f64::from_bits(self.inner.sum.load(Ordering::Relaxed))
    }

    /// Returns the exemplar of a bucket, counted from the lowest bound, if there is one.
    pub fn exemplar(&self, bucket: usize) -> Option<Exemplar> {
        self.inner.exemplars.get()?.get(bucket)
    }

    /// Returns each upper bound with the number of values up to it. The last bound is infinite.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
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
    fn histogram_counts_a_value_in_all_higher_buckets() {
        let histogram = Histogram::new(&[1.0, 10.0]);
        for value in [0.5, 1.0, 5.0, 100.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(1.0, 2), (10.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 106.5));
    }
}
