//! The jobs, and how often each is done to take long enough.

use super::{program::Library, sample::Call};

/// What all libraries are asked to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// As the programs know it.
    pub(super) name: &'static str,
    /// What one operation is.
    pub(super) operation: &'static str,
    /// How many operations are measured.
    pub(super) count: usize,
    /// How many are under way at a time.
    pub(super) concurrency: usize,
}

impl Job {
    pub(super) const ALL: &[Self] = &[
        Self { name: "get", operation: "get of a pod, one at a time", count: 2000, concurrency: 1 },
        Self { name: "get", operation: "get of a pod, 8 at a time", count: 4000, concurrency: 8 },
        Self { name: "list", operation: "list of all pods", count: 20, concurrency: 1 },
        Self {
            name: "list-managed",
            operation: "list of all pods with their managed fields",
            count: 20,
            concurrency: 1,
        },
        Self { name: "watch-keys", operation: "watch event, key used", count: 2000, concurrency: 1 },
        Self { name: "watch-typed", operation: "watch event, object used", count: 2000, concurrency: 1 },
        Self { name: "sync", operation: "cache of all pods, from nothing to complete", count: 1, concurrency: 1 },
        Self { name: "sync-decoded", operation: "the same, every object decoded", count: 1, concurrency: 1 },
        Self {
            name: "informer-events",
            operation: "watch event to a handler that takes the key",
            count: 2000,
            concurrency: 1,
        },
        Self { name: "index", operation: "20 objects by an index value", count: 1_000_000, concurrency: 1 },
        Self { name: "relist", operation: "the whole state again, unchanged", count: 1, concurrency: 1 },
        Self { name: "patch", operation: "merge patch of a pod, one at a time", count: 300, concurrency: 1 },
        Self { name: "create", operation: "create of a pod, one at a time", count: 500, concurrency: 1 },
        Self { name: "queue", operation: "key added, got and done, one worker", count: 1_000_000, concurrency: 1 },
        Self { name: "queue", operation: "key added, got and done, 8 workers", count: 1_000_000, concurrency: 8 },
        Self { name: "queue-burst", operation: "key of a burst, 8 workers", count: 300_000, concurrency: 8 },
    ];

    /// Whether there is anything to ask a server.
    pub(super) fn needs_server(self) -> bool {
        !self.name.starts_with("queue")
    }

    /// Whether it watches changes that must have happened.
    pub(super) fn needs_events(self) -> bool {
        self.name.starts_with("watch") || self.name == "informer-events"
    }

    /// Whether a library has such a thing at all: kube-rs has no queue by itself and no indices, and its watcher cannot be told
    /// where to begin.
    pub(super) fn is_offered_by(self, library: Library) -> bool {
        let lacking = ["informer-events", "index", "relist", "queue", "queue-burst"];
        library != Library::KubeRs || !lacking.contains(&self.name)
    }

    /// How many objects a right answer counts.
    pub(super) fn objects(self, call: &Call<'_>) -> usize {
        match self.name {
            "list" | "list-managed" | "sync" | "sync-decoded" | "index" | "relist" => call.size,
            // The last of each worker.
            "get" | "patch" => self.concurrency,
            _ => call.count,
        }
    }
}
