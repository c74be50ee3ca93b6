//! A collector for a registry of `prometheus-client`.

use std::fmt;

use klient::metrics::{MetricValue, Registry};
use prometheus_client::{
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// A collector that shows the metrics of a klient registry in one of `prometheus-client`.
///
/// ```
/// use klient_telemetry::Collector;
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let metrics = klient::metrics::Registry::new();
/// metrics.counter("cats_fed_total", "Cats that were fed.", &[("name", "Tom")]).add(2);
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(Collector::new(metrics)));
/// let mut page = String::new();
/// encode(&mut page, &registry)?;
/// assert!(page.contains("cats_fed_total{name=\"Tom\"} 2"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Debug)]
pub struct Collector {
    registry: Registry,
}

impl Collector {
    /// Creates a collector of the metrics of a registry.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }
}

/// A metric, copied out of the registry.
struct Copied {
    name: &'static str,
    help: &'static str,
    labels: Vec<(&'static str, String)>,
    value: Value,
}

enum Value {
    Counter(u64),
    Gauge(f64),
    /// Sum, count, and the counts between two bounds.
    Histogram(f64, u64, Vec<(f64, u64)>),
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let metrics = self.copied();
        let mut rest = metrics.as_slice();
        while let Some(first) = rest.first() {
            let (family, others) = rest.split_at(rest.partition_point(|metric| metric.name == first.name));
            rest = others;
            let kind = match first.value {
                Value::Counter(_) => MetricType::Counter,
                Value::Gauge(_) => MetricType::Gauge,
                Value::Histogram(..) => MetricType::Histogram,
            };
            // The encoder adds the suffix of counters, and the full stop of the help text.
            let name =
                if matches!(kind, MetricType::Counter) { first.name.trim_end_matches("_total") } else { first.name };
            let mut family_encoder = encoder.encode_descriptor(name, first.help, None, kind)?;
            for metric in family {
                if metric.labels.is_empty() {
                    metric.value.encode(&mut family_encoder)?;
                } else {
                    metric.value.encode(&mut family_encoder.encode_family(&metric.labels)?)?;
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Counter(value) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Gauge(value) => encoder.encode_gauge(value),
            Self::Histogram(sum, count, buckets) => encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None),
        }
    }
}

impl Collector {
    /// Copies the metrics, in the order of their names, so that the registry is not locked while they are encoded.
    fn copied(&self) -> Vec<Copied> {
        let mut metrics = Vec::new();
        self.registry.visit(|metric| {
            let value = match metric.value {
                MetricValue::Counter(value) => Value::Counter(value),
                MetricValue::Gauge(value) => Value::Gauge(value),
                MetricValue::Histogram(histogram) => {
                    let mut below = 0;
                    let buckets = histogram.buckets().map(|(bound, count)| {
                        let between = count.saturating_sub(below);
                        below = count;
                        (bound, between)
                    });
                    let buckets = buckets.collect();
                    Value::Histogram(histogram.sum(), histogram.count(), buckets)
                }
                _ => return,
            };
            metrics.push(Copied { name: metric.name, help: metric.help, labels: metric.labels.to_vec(), value });
        });
        metrics
    }
}
