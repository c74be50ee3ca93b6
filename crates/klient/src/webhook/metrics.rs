//! Metrics of webhooks, under controller-runtime's names.

use crate::metrics::{Counter, Gauge, Histogram, Registry};

/// The metrics of one path.
#[derive(Clone)]
pub(super) struct HookMetrics {
    registry: Registry,
    path: String,
    pub(super) in_flight: Gauge,
    pub(super) latency: Histogram,
    pub(super) panics: Counter,
}

impl HookMetrics {
    pub(super) fn new(registry: &Registry, path: &str) -> Self {
        let labels = [("webhook", path)];
        Self {
            registry: registry.clone(),
            path: path.to_owned(),
            in_flight: registry.gauge(
                "controller_runtime_webhook_requests_in_flight",
                "Admission requests that are being handled.",
                &labels,
            ),
            latency: registry.histogram(
                "controller_runtime_webhook_latency_seconds",
                "The time that admission requests took.",
                &labels,
                &BOUNDS,
            ),
            panics: registry.counter("controller_runtime_webhook_panics_total", "Handlers that panicked.", &[]),
        }
    }

    /// Counts a response by its code.
    pub(super) fn responded(&self, code: u16) {
        let labels = [("webhook", self.path.as_str()), ("code", &code.to_string())];
        let help = "Admission requests by the code of their response.";
        self.registry.counter("controller_runtime_webhook_requests_total", help, &labels).add(1);
    }
}

static BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
