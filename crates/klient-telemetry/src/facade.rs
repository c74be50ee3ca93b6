//! The `metrics` facade.

use std::collections::HashSet;

use klient::metrics::{MetricView, Registry};
use metrics::{Key, KeyName, Label, Level, Metadata, SharedString, with_recorder};

use crate::{Publisher, publisher::Sink};

impl Publisher {
    /// Creates a publisher for the recorder of the `metrics` facade that is installed when it publishes.
    pub fn facade(registry: Registry) -> Self {
        Self::new(registry, Facade::default())
    }
}

/// The facade, and the metrics that it was told about.
#[derive(Default)]
struct Facade {
    described: HashSet<&'static str>,
}

impl Facade {
    /// Describes a metric the first time.
    fn describe(&mut self, metric: &MetricView<'_>, describe: impl FnOnce(KeyName, SharedString)) {
        if self.described.insert(metric.name) {
            describe(metric.name.into(), metric.help.into());
        }
    }
}

impl Sink for Facade {
    fn counter(&mut self, metric: &MetricView<'_>, total: u64, _: u64) {
        self.describe(metric, |name, help| with_recorder(|recorder| recorder.describe_counter(name, None, help)));
        with_recorder(|recorder| recorder.register_counter(&key(metric), &METADATA).absolute(total));
    }

    fn gauge(&mut self, metric: &MetricView<'_>, value: f64) {
        self.describe(metric, |name, help| with_recorder(|recorder| recorder.describe_gauge(name, None, help)));
        with_recorder(|recorder| recorder.register_gauge(&key(metric), &METADATA).set(value));
    }

    fn histogram(&mut self, metric: &MetricView<'_>, _: &[f64], values: &[(f64, u64)]) {
        self.describe(metric, |name, help| with_recorder(|recorder| recorder.describe_histogram(name, None, help)));
        with_recorder(|recorder| {
            let histogram = recorder.register_histogram(&key(metric), &METADATA);
            for (value, count) in values {
                histogram.record_many(*value, usize::try_from(*count).unwrap_or(usize::MAX));
            }
        });
    }
}

fn key(metric: &MetricView<'_>) -> Key {
    let labels = metric.labels.iter().map(|(name, value)| Label::new(*name, value.clone()));
    Key::from_parts(metric.name, labels.collect::<Vec<_>>())
}

static METADATA: Metadata<'static> = Metadata::new("klient", Level::INFO, Some("klient"));
