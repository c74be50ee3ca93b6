//! Pushes the numbers of a registry to another system, as changes since the last time.

use std::{collections::HashMap, fmt, future::Future, pin::pin, time::Duration};

use klient::metrics::{MetricValue, MetricView, Registry};

use crate::deltas::{Change, Deltas};

/// Pushes the metrics of a registry to another system, each time that [`publish`](Self::publish) is called.
///
/// Counters and gauges arrive as they are. A histogram arrives as values: as many as were observed since the last time, each in its
/// bucket, with the right sum. So any histogram of the other system has the same counts if its bounds are the same.
pub struct Publisher {
    registry: Registry,
    deltas: Deltas,
    sink: Box<dyn Sink>,
}

/// Another system of metrics.
pub(crate) trait Sink: Send + Sync {
    /// Receives the total of a counter, and how much it grew.
    fn counter(&mut self, metric: &MetricView<'_>, total: u64, growth: u64);
    fn gauge(&mut self, metric: &MetricView<'_>, value: f64);
    /// Receives values of a histogram, each with how often it was observed.
    fn histogram(&mut self, metric: &MetricView<'_>, bounds: &[f64], values: &[(f64, u64)]);
}

impl Publisher {
    pub(crate) fn new(registry: Registry, sink: impl Sink + 'static) -> Self {
        Self { registry, deltas: Deltas::default(), sink: Box::new(sink) }
    }

    /// Pushes all metrics once.
    pub fn publish(&mut self) {
        let Self { registry, deltas, sink } = self;
        registry.visit(|metric| match metric.value {
            MetricValue::Counter(total) => {
                let growth = deltas.growth(&metric, total);
                sink.counter(&metric, total, growth);
            }
            MetricValue::Gauge(value) => sink.gauge(&metric, value),
            MetricValue::Histogram(histogram) => {
                let Change { bounds, values } = deltas.values(&metric, histogram);
                sink.histogram(&metric, &bounds, &values);
            }
            _ => {}
        });
    }

    /// Pushes all metrics at intervals until the signal is ready, and once more at the end.
    pub async fn run_until(mut self, period: Duration, signal: impl Future<Output = ()>) {
        let mut interval = tokio::time::interval(period.max(Duration::from_millis(1)));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut signal = pin!(signal);
        loop {
            tokio::select! {
                biased;
                () = &mut signal => break,
                _ = interval.tick() => self.publish(),
            }
        }
        self.publish();
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// The name and labels of a metric.
pub(crate) type Identity = (&'static str, Vec<(&'static str, String)>);

/// Returns the identity of a metric.
pub(crate) fn identity(metric: &MetricView<'_>) -> Identity {
    (metric.name, metric.labels.to_vec())
}

/// Values by the identity of their metric.
pub(crate) type ByIdentity<T> = HashMap<Identity, T>;
