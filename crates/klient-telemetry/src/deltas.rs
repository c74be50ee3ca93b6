//! The changes of a registry since the last look.

use klient::metrics::{Histogram, MetricView};

use crate::publisher::{ByIdentity, identity};

/// The counts at the last look.
#[derive(Default)]
pub(crate) struct Deltas {
    counters: ByIdentity<u64>,
    histograms: ByIdentity<Seen>,
}

/// A histogram at the last look.
#[derive(Default)]
struct Seen {
    counts: Vec<u64>,
    sum: f64,
}

/// The values that a histogram observed since the last look.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    /// The finite upper bounds.
    pub(crate) bounds: Vec<f64>,
    /// Values, and how often each was observed.
    pub(crate) values: Vec<(f64, u64)>,
}

impl Deltas {
    /// Returns how much a counter grew.
    pub(crate) fn growth(&mut self, metric: &MetricView<'_>, total: u64) -> u64 {
        let before = self.counters.insert(identity(metric), total).unwrap_or_default();
        total.saturating_sub(before)
    }

    /// Returns values that bring another histogram with the same bounds to the same counts and the same sum.
    pub(crate) fn values(&mut self, metric: &MetricView<'_>, histogram: &Histogram) -> Change {
        let buckets: Vec<(f64, u64)> = histogram.buckets().collect();
        let sum = histogram.sum();
        let seen = self.histograms.entry(identity(metric)).or_default();
        let mut counts: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
        // From counts up to a bound to counts between two bounds.
        for index in (1..counts.len()).rev() {
            counts[index] = counts[index].saturating_sub(counts[index - 1]);
        }
        let new: Vec<u64> = counts
            .iter()
            .enumerate()
            .map(|(index, count)| count.saturating_sub(seen.counts.get(index).copied().unwrap_or_default()))
            .collect();
        let bounds: Vec<f64> = buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect();
        let values = spread(&bounds, &new, sum - seen.sum);
        *seen = Seen { counts, sum };
        Change { bounds, values }
    }
}

/// Chooses one value for each bucket, so that their sum is the given one if that is possible.
fn spread(bounds: &[f64], counts: &[u64], sum: f64) -> Vec<(f64, u64)> {
    let range = |index: usize| {
        let low = if index == 0 { 0.0 } else { bounds[index - 1] };
        (low, bounds.get(index).copied())
    };
    let used = || counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let over = counts.get(bounds.len()).copied().unwrap_or_default();
    // At which fraction of its bucket each value lies: the same in all of them.
    let (mut lows, mut widths) = (0.0, 0.0);
    for (index, count) in used() {
        let (low, high) = range(index);
        lows += low * *count as f64;
        widths += (high.unwrap_or(low) - low) * *count as f64;
    }
    let fraction = if widths > 0.0 { ((sum - lows) / widths).clamp(SMALLEST, 1.0) } else { 1.0 };
    // Values above all bounds take the rest of the sum.
    let fraction = if over > 0 { fraction.min(0.5) } else { fraction };
    let mut rest = sum;
    let mut values = Vec::new();
    for (index, count) in used() {
        let (low, high) = range(index);
        let value = match high {
            Some(high) => low + (high - low) * fraction,
            None => (rest / *count as f64).max(low * (1.0 + SMALLEST)),
        };
        rest -= value * *count as f64;
        values.push((value, *count));
    }
    values
}

/// A bucket does not contain its lower bound.
const SMALLEST: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use klient::metrics::{MetricValue, Registry};

    use super::*;

    fn changes(registry: &Registry, deltas: &mut Deltas) -> Vec<(f64, u64)> {
        let mut values = Vec::new();
        registry.visit(|metric| {
            if let MetricValue::Histogram(histogram) = metric.value {
                values.extend(deltas.values(&metric, histogram).values);
            }
        });
        values
    }

    #[test]
    fn values_have_the_counts_and_the_sum_of_the_histogram() {
        let registry = Registry::new();
        let histogram = registry.histogram("wait_seconds", "Wait.", &[], &[0.1, 1.0, 10.0]);
        let mut deltas = Deltas::default();
        for observed in [vec![0.05, 0.5, 0.6, 2.0], vec![0.9; 7], vec![30.0, 50.0, 0.01], vec![], vec![10.0]] {
            observed.iter().for_each(|value| histogram.observe(*value));
            let values = changes(&registry, &mut deltas);
            let copy = Registry::new().histogram("copy", "Copy.", &[], &[0.1, 1.0, 10.0]);
            let original = Registry::new().histogram("original", "Original.", &[], &[0.1, 1.0, 10.0]);
            observed.iter().for_each(|value| original.observe(*value));
            for (value, count) in values {
                (0..count).for_each(|_| copy.observe(value));
            }
            assert_eq!(copy.buckets().collect::<Vec<_>>(), original.buckets().collect::<Vec<_>>(), "{observed:?}");
            assert!((copy.sum() - original.sum()).abs() < 1e-6, "{} {}", copy.sum(), original.sum());
        }
    }

    #[test]
    fn counters_grow_by_what_was_added() {
        let registry = Registry::new();
        let counter = registry.counter("fed_total", "Fed.", &[]);
        let mut deltas = Deltas::default();
        let mut growth = Vec::new();
        for added in [3, 0, 2] {
            counter.add(added);
            registry.visit(|metric| growth.push(deltas.growth(&metric, counter.value())));
        }
        assert_eq!(growth, [3, 0, 2]);
    }
}
