//! Counters, gauges and histograms, and their Prometheus text format.
//!
//! Names and labels are client-go's where it has the same metric, so that existing dashboards work. A metric is a
//! handle to an atomic: look it up once, and updates are cheap.

mod exemplar;
mod histogram;
mod text;
mod visit;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

#[cfg(feature = "client")]
pub(crate) use self::exemplar::has_exemplars;
pub use self::{
    exemplar::{Exemplar, set_exemplars},
    histogram::Histogram,
    visit::{MetricValue, MetricView},
};

/// A set of metrics. Clones refer to the same metrics.
///
/// All functions take the name first, then the help text, then the labels.
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

/// A function that reads a value; `None` when its source no longer exists.
type Observe = Arc<dyn Fn() -> Option<f64> + Send + Sync>;

/// A number that only increases.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    value: Arc<AtomicU64>,
}

/// A number that increases and decreases.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    value: Arc<AtomicI64>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the global registry, which everything uses that has no registry of its own.
    #[doc(alias = "DefaultRegisterer")]
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Registry> = OnceLock::new();
        GLOBAL.get_or_init(Self::new)
    }

    /// Returns the counter with this name and these labels. Creates it if it does not exist.
    pub fn counter(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        match self.metric(name, help, labels, || Metric::Counter(Counter::default())) {
            Metric::Counter(counter) => counter,
            // The name belongs to a metric of another type. This counter works, and is not rendered.
            _ => Counter::default(),
        }
    }

    /// Returns the gauge with this name and these labels. Creates it if it does not exist.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        match self.metric(name, help, labels, || Metric::Gauge(Gauge::default())) {
            Metric::Gauge(gauge) => gauge,
            _ => Gauge::default(),
        }
    }

    /// Adds a gauge whose value `observe` returns whenever metrics are rendered: for values that change by themselves, such as an
    /// age. It is not rendered while `observe` returns `None`. It replaces an earlier one with the same name and labels.
    #[doc(alias = "GaugeFunc")]
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

    /// Returns the histogram with this name and these labels. Creates it with these upper bounds if it does not exist.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        bounds: &'static [f64],
    ) -> Histogram {
        match self.metric(name, help, labels, || Metric::Histogram(Histogram::new(bounds))) {
            Metric::Histogram(histogram) => histogram,
            _ => Histogram::new(bounds),
        }
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            text::family(&mut out, name, family);
        }
        out
    }

    /// Returns all metrics in the OpenMetrics text format, with exemplars.
    ///
    /// ```
    /// use klient::metrics::Registry;
    ///
    /// let registry = Registry::new();
    /// registry.counter("cats_fed_total", "Cats that were fed.", &[]).add(2);
    /// assert_eq!(
    ///     registry.render_open_metrics(),
    ///     "# HELP cats_fed Cats that were fed.\n# TYPE cats_fed counter\ncats_fed_total 2\n# EOF\n",
    /// );
    /// ```
    pub fn render_open_metrics(&self) -> String {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            text::open_metrics_family(&mut out, name, family);
        }
        out.push_str("# EOF\n");
        out
    }

    fn metric(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        create: impl FnOnce() -> Metric,
    ) -> Metric {
        let labels: Labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name).or_insert_with(|| Family { help, metrics: BTreeMap::new() });
        family.metrics.entry(labels).or_insert_with(create).clone()
    }
}

impl Counter {
    /// Adds one.
    #[doc(alias = "Inc")]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Adds `change`, which may be negative.
    pub fn add(&self, change: i64) {
        self.value.fetch_add(change, Ordering::Relaxed);
    }

    /// Returns the value.
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
    fn registry_returns_one_metric_per_name_and_labels() {
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
    fn gauge_increases_and_decreases() {
        let registry = Registry::new();
        let gauge = registry.gauge("depth", "Depth.", &[]);
        gauge.set(5);
        gauge.add(-7);
        assert_eq!(gauge.value(), -2);
        assert_eq!(registry.render(), "# HELP depth Depth.\n# TYPE depth gauge\ndepth -2\n");
    }

    #[test]
    fn registry_keeps_first_type_of_a_name() {
        let registry = Registry::new();
        registry.counter("n", "N.", &[]).increment();
        registry.gauge("n", "N.", &[]).set(9);
        assert_eq!(registry.render(), "# HELP n N.\n# TYPE n counter\nn 1\n");
    }

    #[test]
    fn observed_gauge_is_rendered_while_its_source_exists() {
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
    fn render_escapes_label_values() {
        let registry = Registry::new();
        registry.counter("n", "N.", &[("path", "a\"b\\c\nd")]).increment();
        assert!(registry.render().ends_with("n{path=\"a\\\"b\\\\c\\nd\"} 1\n"), "{}", registry.render());
    }
}
