//! The same numbers in each system.

use std::sync::{Arc, Mutex};

use klient::metrics::Registry;
use klient_telemetry::{Collector, Publisher};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData, ScopeMetrics},
};

fn registry() -> Registry {
    let registry = Registry::new();
    registry.counter("fed_total", "Cats that were fed.", &[("name", "Tom")]).add(2);
    registry.gauge("hungry", "Hungry cats.", &[]).set(-1);
    let histogram = registry.histogram("meal_seconds", "Meals.", &[("name", "Tom")], &[0.5, 2.0]);
    [0.25, 1.0, 9.0].into_iter().for_each(|value| histogram.observe(value));
    registry
}

/// A recorder that writes down what it receives.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

/// One metric of that recorder.
struct Note(Key, Notes);

impl Notes {
    fn add(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Recorder for Notes {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(format!("counter {}: {help}", name.as_str()));
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(format!("gauge {}: {help}", name.as_str()));
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(format!("histogram {}: {help}", name.as_str()));
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Note(key.clone(), self.clone())))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Note(key.clone(), self.clone())))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Note(key.clone(), self.clone())))
    }
}

impl CounterFn for Note {
    fn increment(&self, value: u64) {
        self.1.add(format!("{} + {value}", self.0));
    }

    fn absolute(&self, value: u64) {
        self.1.add(format!("{} = {value}", self.0));
    }
}

impl GaugeFn for Note {
    fn increment(&self, value: f64) {
        self.1.add(format!("{} + {value}", self.0));
    }

    fn decrement(&self, value: f64) {
        self.1.add(format!("{} - {value}", self.0));
    }

    fn set(&self, value: f64) {
        self.1.add(format!("{} = {value}", self.0));
    }
}

impl HistogramFn for Note {
    fn record(&self, _: f64) {
        self.1.add(format!("{} has another value", self.0));
    }
}

#[test]
fn facade_receives_counters_gauges_and_values() {
    let registry = registry();
    let notes = Notes::default();
    let mut publisher = Publisher::facade(registry.clone());
    let mut publish = || {
        metrics::with_local_recorder(&notes, || publisher.publish());
        std::mem::take(&mut *notes.0.lock().unwrap())
    };
    let value = "Key(meal_seconds, [name = Tom]) has another value";
    let first = [
        "counter fed_total: Cats that were fed.",
        "Key(fed_total, [name = Tom]) = 2",
        "gauge hungry: Hungry cats.",
        "Key(hungry) = -1",
        "histogram meal_seconds: Meals.",
        value,
        value,
        value,
    ];
    assert_eq!(publish(), first);
    registry.counter("fed_total", "Cats that were fed.", &[("name", "Tom")]).add(3);
    assert_eq!(publish(), ["Key(fed_total, [name = Tom]) = 5", "Key(hungry) = -1"]);
}

#[test]
fn prometheus_client_shows_the_same_page() {
    let mut registry_of_others = prometheus_client::registry::Registry::default();
    registry_of_others.register_collector(Box::new(Collector::new(registry())));
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry_of_others).unwrap();
    for line in [
        "# TYPE fed counter",
        "fed_total{name=\"Tom\"} 2",
        "hungry -1.0",
        "meal_seconds_bucket{le=\"0.5\",name=\"Tom\"} 1",
        "meal_seconds_bucket{le=\"2.0\",name=\"Tom\"} 2",
        "meal_seconds_bucket{le=\"+Inf\",name=\"Tom\"} 3",
        "meal_seconds_count{name=\"Tom\"} 3",
        "meal_seconds_sum{name=\"Tom\"} 10.25",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
}

#[test]
fn opentelemetry_receives_the_same_buckets_and_sum() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder().with_reader(PeriodicReader::builder(exporter.clone()).build()).build();
    let mut publisher = Publisher::opentelemetry(registry(), provider.meter("klient"));
    publisher.publish();
    publisher.publish();
    provider.force_flush().unwrap();
    let mut seen = Vec::new();
    for resource in exporter.get_finished_metrics().unwrap() {
        for metric in resource.scope_metrics().flat_map(ScopeMetrics::metrics) {
            match metric.data() {
                AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                    seen.extend(sum.data_points().map(|point| format!("{} {}", metric.name(), point.value())));
                }
                AggregatedMetrics::F64(MetricData::Gauge(gauge)) => {
                    seen.extend(gauge.data_points().map(|point| format!("{} {}", metric.name(), point.value())));
                }
                AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                    for point in histogram.data_points() {
                        let counts: Vec<u64> = point.bucket_counts().collect();
                        seen.push(format!("{} {counts:?} {:.2}", metric.name(), point.sum()));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    seen.sort();
    assert_eq!(seen, ["fed 2", "hungry -1", "meal_seconds [1, 1, 1] 10.25"]);
}
