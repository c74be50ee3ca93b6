//! The metrics of a queue, under client-go's names.
//!
//! Values that change by themselves, such as how long keys have been in process, are computed when metrics are rendered.

use std::{sync::Weak, time::Duration};

use super::QueueInner;
use crate::metrics::{Counter, Histogram, Registry};

/// The metrics of one queue.
#[derive(Debug)]
pub(super) struct Metrics {
    adds: Counter,
    retries: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl Metrics {
    pub(super) fn new(registry: &Registry, name: &str) -> Self {
        let labels = &[("name", name)];
        Self {
            adds: registry.counter("workqueue_adds_total", "Keys added to the queue.", labels),
            retries: registry.counter("workqueue_retries_total", "Keys added with a delay.", labels),
            queue_duration: registry.histogram(
                "workqueue_queue_duration_seconds",
                "Time that keys were ready before they were handed out.",
                labels,
                BOUNDS,
            ),
            work_duration: registry.histogram(
                "workqueue_work_duration_seconds",
                "Time that keys were in process.",
                labels,
                BOUNDS,
            ),
        }
    }

    pub(super) fn added(&self, count: usize) {
        self.adds.add(count as u64);
    }

    pub(super) fn retried(&self) {
        self.retries.increment();
    }

    // Not inlined: queues without a name have no metrics, and should not carry the code of histograms in every turn.
    #[inline(never)]
    pub(super) fn handed_out(&self, queued_for: Duration) {
        self.queue_duration.observe_duration(queued_for);
    }

    #[inline(never)]
    pub(super) fn done(&self, took: Duration) {
        self.work_duration.observe_duration(took);
    }
}

/// Adds the gauges that are read from the queue itself, for as long as it exists.
pub(super) fn observe<T: Send + 'static>(registry: &Registry, name: &str, queue: &Weak<QueueInner<T>>) {
    let labels = &[("name", name)];
    let gauge = |name, help, read: fn(&QueueInner<T>) -> f64| {
        let queue = Weak::clone(queue);
        registry.observed_gauge(name, help, labels, move || queue.upgrade().map(|queue| read(&queue)));
    };
    gauge("workqueue_depth", "Ready keys.", |queue| queue.ready() as f64);
    gauge("workqueue_unfinished_work_seconds", "Sum of the times that keys have been in process.", |queue| {
        queue.core.stats().unfinished.unwrap_or_default().as_secs_f64()
    });
    gauge("workqueue_longest_running_processor_seconds", "Longest time that a key has been in process.", |queue| {
        queue.core.stats().longest_in_process.unwrap_or_default().as_secs_f64()
    });
}

/// From ten nanoseconds to ten seconds.
const BOUNDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
