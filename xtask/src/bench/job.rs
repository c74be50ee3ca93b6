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

    /// Whether a library has what it takes: kube has no queue by itself.
    pub(super) fn is_offered_by(self, library: Library) -> bool {
        !self.name.starts_with("queue") || library != Library::KubeRs
    }

    /// Whether it watches changes that must have happened.
    pub(super) fn needs_events(self) -> bool {
        self.name.starts_with("watch")
    }

    /// How many objects a right answer counts.
    pub(super) fn objects(self, call: &Call<'_>) -> usize {
        match self.name {
            "list" | "list-managed" => call.size,
            // The last of each worker.
            "get" | "patch" => self.concurrency,
            _ => call.count,
        }
    }
}
