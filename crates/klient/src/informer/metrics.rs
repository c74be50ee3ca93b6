//! The metrics of an informer, under client-go's names where client-go has the same metric.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use klient_core::ResourceVersion;

use super::RelistReason;
use crate::metrics::{Counter, Gauge, Histogram, Registry};

const LATENCY: &[f64] = &[0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0, 10.0];

pub(crate) struct InformerMetrics {
    registry: Registry,
    name: String,
    resource: String,
    queued: Gauge,
    latency: Histogram,
    store_version: Gauge,
    objects: Gauge,
    bytes: Gauge,
    events: Counter,
    last_event: Gauge,
    last_bookmark: Gauge,
    decode_errors: Counter,
    synced: Gauge,
}

impl InformerMetrics {
    pub(crate) fn new(registry: &Registry, name: &str, resource: &str) -> Self {
        let labels = &[("name", name), ("resource", resource)];
        let gauge = |metric, help| registry.gauge(metric, help, labels);
        let counter = |metric, help| registry.counter(metric, help, labels);
        Self {
            queued: gauge("informer_queued_items", "Events that wait for the informer's handlers."),
            latency: registry.histogram(
                "informer_processing_latency_seconds",
                "Time to apply a batch to the store and hand its events to the handlers.",
                labels,
                LATENCY,
            ),
            store_version: gauge(
                "informer_store_resource_version",
                "The last 15 digits of the store's resource version.",
            ),
            objects: gauge("informer_store_objects", "Objects in the store."),
            bytes: gauge("informer_store_bytes", "Bytes of the objects in the store, in wire form."),
            events: counter("informer_events_total", "Events and bookmarks that arrived on watches."),
            last_event: gauge("informer_last_event_timestamp_seconds", "Time of the last event or bookmark."),
            last_bookmark: gauge("informer_last_bookmark_timestamp_seconds", "Time of the last bookmark."),
            decode_errors: counter("informer_decode_errors_total", "Objects and events that could not be read."),
            synced: gauge("informer_synced", "Whether the store follows the server."),
            registry: registry.clone(),
            name: name.to_owned(),
            resource: resource.to_owned(),
        }
    }

    pub(super) fn listed(&self, reason: RelistReason) {
        let labels = &[("name", &*self.name), ("resource", &*self.resource), ("reason", reason.as_str())];
        let help = "Reads of the whole state, by reason.";
        self.registry.counter("informer_relists_total", help, labels).increment();
    }

    pub(super) fn received(&self, events: u64) {
        self.events.add(events);
        self.last_event.set(unix_seconds());
    }

    pub(super) fn bookmarked(&self) {
        self.last_bookmark.set(unix_seconds());
    }

    pub(super) fn unreadable(&self) {
        self.decode_errors.increment();
    }

    pub(super) fn synced(&self, synced: bool) {
        self.synced.set(synced.into());
    }

    pub(super) fn applied(
        &self,
        time: Duration,
        objects: usize,
        bytes: usize,
        backlog: usize,
        version: &ResourceVersion,
    ) {
        self.latency.observe_duration(time);
        self.objects.set(signed(objects));
        self.bytes.set(signed(bytes));
        self.queued.set(signed(backlog));
        let text = version.as_str();
        let digits = text.get(text.len().saturating_sub(15)..).and_then(|digits| digits.parse().ok());
        if let Some(digits) = digits {
            self.store_version.set(digits);
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn unix_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
