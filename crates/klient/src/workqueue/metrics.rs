//! What a queue tells about itself, under client-go's names.
//!
//! What changes without anybody doing something (how long keys are in process) is worked out when it is read.

use std::{sync::Weak, time::Duration};

use super::Shared;
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
            adds: registry.counter("workqueue_adds_total", "Keys that were added.", labels),
            retries: registry.counter("workqueue_retries_total", "Keys that were added with a delay.", labels),
            queue_duration: registry.histogram(
                "workqueue_queue_duration_seconds",
                "How long keys were ready before they were handed out.",
                BOUNDS,
                labels,
            ),
            work_duration: registry.histogram(
                "workqueue_work_duration_seconds",
                "How long keys were in process.",
                BOUNDS,
                labels,
            ),
        }
    }

    pub(super) fn added(&self, count: usize) {
        self.adds.add(count as u64);
    }

    pub(super) fn retried(&self) {
        self.retries.increment();
    }

    // Queues without a name have no metrics, and are not to carry the code of histograms in every turn.
    #[inline(never)]
    pub(super) fn handed_out(&self, queued_for: Duration) {
        self.queue_duration.observe_duration(queued_for);
    }

    #[inline(never)]
    pub(super) fn done(&self, took: Duration) {
        self.work_duration.observe_duration(took);
    }
}

/// Adds what is read from the queue itself, for as long as there is one.
pub(super) fn observe<T: Send + 'static>(registry: &Registry, name: &str, queue: &Weak<Shared<T>>) {
    let labels = &[("name", name)];
    let gauge = |name, help, read: fn(&Shared<T>) -> f64| {
        let queue = Weak::clone(queue);
        registry.observed_gauge(name, help, labels, move || queue.upgrade().map(|queue| read(&queue)));
    };
    gauge("workqueue_depth", "Keys that are ready.", |queue| queue.ready() as f64);
    gauge("workqueue_unfinished_work_seconds", "How long the keys in process have been so, together.", |queue| {
        queue.core.stats().unfinished.unwrap_or_default().as_secs_f64()
    });
    gauge(
        "workqueue_longest_running_processor_seconds",
        "How long the key has been in process that has been so for longest.",
        |queue| queue.core.stats().longest_in_process.unwrap_or_default().as_secs_f64(),
    );
}

/// From ten nanoseconds to ten seconds.
const BOUNDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
