//! The metrics of a controller, under controller-runtime's names.

use crate::metrics::{Counter, Gauge, Histogram, Registry};

#[derive(Debug)]
pub(super) struct Metrics {
    pub(super) success: Counter,
    pub(super) requeue_after: Counter,
    pub(super) error: Counter,
    pub(super) errors: Counter,
    pub(super) terminal: Counter,
    pub(super) panics: Counter,
    pub(super) timeouts: Counter,
    pub(super) stale: Counter,
    pub(super) filtered: Counter,
    pub(super) time: Histogram,
    pub(super) active: Gauge,
}

impl Metrics {
    pub(super) fn new(registry: &Registry, controller: &str, workers: usize) -> Self {
        let labels = &[("controller", controller)];
        let counter = |name, help| registry.counter(name, help, labels);
        let result = |result| {
            let labels = &[("controller", controller), ("result", result)];
            registry.counter("controller_runtime_reconcile_total", "Reconciles, by result.", labels)
        };
        let concurrent = registry.gauge("controller_runtime_max_concurrent_reconciles", "Number of workers.", labels);
        concurrent.set(i64::try_from(workers).unwrap_or(i64::MAX));
        Self {
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: counter("controller_runtime_reconcile_errors_total", "Reconciles that failed."),
            terminal: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Reconciles that failed with a terminal error, and are not retried.",
            ),
            panics: counter("controller_runtime_reconcile_panics_total", "Reconciles that panicked."),
            timeouts: counter("controller_runtime_reconcile_timeouts_total", "Reconciles that timed out."),
            stale: counter(
                "klient_controller_stale_reads_total",
                "Reconciles that began before the cache showed the last write of the same key.",
            ),
            filtered: counter("klient_controller_filtered_events_total", "Events that predicates ignored."),
            time: registry.histogram(
                "controller_runtime_reconcile_time_seconds",
                "Duration of reconciles.",
                labels,
                BOUNDS,
            ),
            active: registry.gauge("controller_runtime_active_workers", "Workers that are reconciling.", labels),
        }
    }
}

const BOUNDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
