//! OpenTelemetry's metrics.

use std::collections::HashMap;

use klient::metrics::{MetricView, Registry};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, Meter},
};

use crate::{Publisher, publisher::Sink};

impl Publisher {
    /// Creates a publisher for the instruments of an OpenTelemetry meter. Names of counters lose their suffix `_total`, which exporters
    /// for Prometheus add.
    pub fn opentelemetry(registry: Registry, meter: Meter) -> Self {
        Self::new(
            registry,
            Instruments { meter, counters: HashMap::new(), gauges: HashMap::new(), histograms: HashMap::new() },
        )
    }
}

/// The instruments of a meter, by name.
struct Instruments {
    meter: Meter,
    counters: HashMap<&'static str, Counter<u64>>,
    gauges: HashMap<&'static str, Gauge<f64>>,
    histograms: HashMap<&'static str, Histogram<f64>>,
}

impl Sink for Instruments {
    fn counter(&mut self, metric: &MetricView<'_>, _: u64, growth: u64) {
        let meter = &self.meter;
        let counter = self.counters.entry(metric.name).or_insert_with(|| {
            meter.u64_counter(metric.name.trim_end_matches("_total")).with_description(metric.help).build()
        });
        counter.add(growth, &attributes(metric));
    }

    fn gauge(&mut self, metric: &MetricView<'_>, value: f64) {
        let meter = &self.meter;
        let gauge = self
            .gauges
            .entry(metric.name)
            .or_insert_with(|| meter.f64_gauge(metric.name).with_description(metric.help).build());
        gauge.record(value, &attributes(metric));
    }

    fn histogram(&mut self, metric: &MetricView<'_>, bounds: &[f64], values: &[(f64, u64)]) {
        let meter = &self.meter;
        let histogram = self.histograms.entry(metric.name).or_insert_with(|| {
            let builder = meter.f64_histogram(metric.name).with_description(metric.help);
            builder.with_boundaries(bounds.to_vec()).build()
        });
        let attributes = attributes(metric);
        for (value, count) in values {
            (0..*count).for_each(|_| histogram.record(*value, &attributes));
        }
    }
}

fn attributes(metric: &MetricView<'_>) -> Vec<KeyValue> {
    metric.labels.iter().map(|(name, value)| KeyValue::new(*name, value.clone())).collect()
}
