//! A look at all metrics of a registry, for exporters.

use std::sync::PoisonError;

use super::{Histogram, Metric, Registry};

/// One metric, as [`Registry::visit`] shows it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricView<'a> {
    /// The name, which other metrics with other labels share.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The labels, in the order in which the metric was created.
    pub labels: &'a [(&'static str, String)],
    /// The value.
    pub value: MetricValue<'a>,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MetricValue<'a> {
    /// A number that only increases.
    Counter(u64),
    /// A number that increases and decreases.
    Gauge(f64),
    /// Counts of observed values.
    Histogram(&'a Histogram),
}

impl Registry {
    /// Calls a function with each metric, in the order of names and labels. The registry is locked meanwhile.
    ///
    /// This is how exporters read a registry: see the crate `klient-telemetry`.
    ///
    /// ```
    /// use klient::metrics::{MetricValue, Registry};
    ///
    /// let registry = Registry::new();
    /// registry.counter("cats_fed_total", "Cats that were fed.", &[]).add(2);
    /// registry.visit(|metric| assert!(matches!(metric.value, MetricValue::Counter(2))));
    /// ```
    pub fn visit(&self, mut visitor: impl FnMut(MetricView<'_>)) {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, family) in families.iter() {
            for (labels, metric) in &family.metrics {
                let value = match metric {
                    Metric::Counter(counter) => MetricValue::Counter(counter.value()),
                    Metric::Gauge(gauge) => MetricValue::Gauge(gauge.value() as f64),
                    Metric::Histogram(histogram) => MetricValue::Histogram(histogram),
                    Metric::Observed(observe) => match observe() {
                        Some(value) => MetricValue::Gauge(value),
                        None => continue,
                    },
                };
                visitor(MetricView { name, help: family.help, labels, value });
            }
        }
    }
}

impl MetricView<'_> {
    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visit_shows_every_metric_with_its_labels() {
        let registry = Registry::new();
        registry.counter("b_total", "B.", &[("x", "1")]).add(2);
        registry.gauge("a", "A.", &[]).set(-3);
        registry.histogram("c_seconds", "C.", &[], &[1.0]).observe(0.5);
        registry.observed_gauge("d", "D.", &[], || None);
        let mut seen = Vec::new();
        registry.visit(|metric| {
            let value = match metric.value {
                MetricValue::Counter(value) => value as f64,
                MetricValue::Gauge(value) => value,
                MetricValue::Histogram(histogram) => histogram.sum(),
            };
            seen.push((metric.name, metric.label("x").map(str::to_owned), value));
        });
        assert_eq!(seen, [("a", None, -3.0), ("b_total", Some("1".to_owned()), 2.0), ("c_seconds", None, 0.5)]);
    }
}
