//! Counters, gauges and histograms, and their text for Prometheus.
//!
//! Names and labels are client-go's where it has the same measure, so that dashboards go on working. A metric is a
//! handle on an atomic: looked up once, cheap to use afterwards.

mod histogram;
mod text;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

pub use self::histogram::Histogram;

/// Where metrics are kept, until something reads them.
///
/// ```
/// use klient::metrics::Registry;
///
/// let registry = Registry::new();
/// registry.counter("cats_fed_total", "Cats that were fed.", &[("name", "Tom")]).add(2);
/// assert_eq!(
///     registry.render(),
///     "# HELP cats_fed_total Cats that were fed.\n# TYPE cats_fed_total counter\ncats_fed_total{name=\"Tom\"} 2\n",
/// );
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    families: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

/// All metrics of one name.
struct Family {
    help: &'static str,
    metrics: BTreeMap<Labels, Metric>,
}

type Labels = Vec<(&'static str, String)>;

#[derive(Clone)]
enum Metric {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    Observed(Observe),
}

/// Reads a value where it is kept; none when that is gone.
type Observe = Arc<dyn Fn() -> Option<f64> + Send + Sync>;

/// A number that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    value: Arc<AtomicU64>,
}

/// A number that goes up and down.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    value: Arc<AtomicI64>,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that everything uses which was given no other.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Registry> = OnceLock::new();
        GLOBAL.get_or_init(Self::new)
    }

    /// The counter of that name with these labels, made if it is not there.
    pub fn counter(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        match self.metric(name, help, labels, || Metric::Counter(Counter::default())) {
            Metric::Counter(counter) => counter,
            // The name is taken by something else: what is counted here is not shown.
            _ => Counter::default(),
        }
    }

    /// The gauge of that name with these labels, made if it is not there.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        match self.metric(name, help, labels, || Metric::Gauge(Gauge::default())) {
            Metric::Gauge(gauge) => gauge,
            _ => Gauge::default(),
        }
    }

    /// Shows what `observe` says whenever metrics are read, and nothing once it says nothing: for what changes by itself, such
    /// as an age. Takes the place of an earlier one of that name with these labels.
    pub fn observed_gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        observe: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name).or_insert_with(|| Family { help, metrics: BTreeMap::new() });
        family.metrics.insert(labels, Metric::Observed(Arc::new(observe)));
    }

    /// The histogram of that name with these labels, made with these upper bounds if it is not there.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        bounds: &'static [f64],
        labels: &[(&'static str, &str)],
    ) -> Histogram {
        match self.metric(name, help, labels, || Metric::Histogram(Histogram::new(bounds))) {
            Metric::Histogram(histogram) => histogram,
            _ => Histogram::new(bounds),
        }
    }

    /// All metrics, as Prometheus reads them.
    pub fn render(&self) -> String {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            text::family(&mut out, name, family);
        }
        out
    }

    fn metric(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        make: impl FnOnce() -> Metric,
    ) -> Metric {
        let labels: Labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name).or_insert_with(|| Family { help, metrics: BTreeMap::new() });
        family.metrics.entry(labels).or_insert_with(make).clone()
    }
}

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds so many.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Adds so much, which may be negative.
    pub fn add(&self, change: i64) {
        self.value.fetch_add(change, Ordering::Relaxed);
    }

    /// What it is.
    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Registry").field("families", &families.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_labels_are_the_same_metric() {
        let registry = Registry::new();
        registry.counter("a_total", "A.", &[("x", "1")]).increment();
        registry.clone().counter("a_total", "A.", &[("x", "1")]).increment();
        registry.counter("a_total", "A.", &[("x", "2")]).increment();
        assert_eq!(registry.counter("a_total", "A.", &[("x", "1")]).value(), 2);
        assert_eq!(
            registry.render(),
            "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"2\"} 1\n"
        );
    }

    #[test]
    fn a_gauge_goes_both_ways() {
        let registry = Registry::new();
        let gauge = registry.gauge("depth", "Depth.", &[]);
        gauge.set(5);
        gauge.add(-7);
        assert_eq!(gauge.value(), -2);
        assert_eq!(registry.render(), "# HELP depth Depth.\n# TYPE depth gauge\ndepth -2\n");
    }

    #[test]
    fn a_name_that_is_taken_by_another_sort_is_left_alone() {
        let registry = Registry::new();
        registry.counter("n", "N.", &[]).increment();
        registry.gauge("n", "N.", &[]).set(9);
        assert_eq!(registry.render(), "# HELP n N.\n# TYPE n counter\nn 1\n");
    }

    #[test]
    fn an_observed_gauge_is_read_when_it_is_shown_and_vanishes_with_its_source() {
        let registry = Registry::new();
        let source = Arc::new(AtomicI64::new(3));
        let weak = Arc::downgrade(&source);
        registry
            .observed_gauge("age", "Age.", &[], move || weak.upgrade().map(|age| age.load(Ordering::Relaxed) as f64));
        source.store(7, Ordering::Relaxed);
        assert_eq!(registry.render(), "# HELP age Age.\n# TYPE age gauge\nage 7\n");
        drop(source);
        assert_eq!(registry.render(), "# HELP age Age.\n# TYPE age gauge\n");
    }

    #[test]
    fn labels_cannot_break_the_text() {
        let registry = Registry::new();
        registry.counter("n", "N.", &[("path", "a\"b\\c\nd")]).increment();
        assert!(registry.render().ends_with("n{path=\"a\\\"b\\\\c\\nd\"} 1\n"), "{}", registry.render());
    }
}
