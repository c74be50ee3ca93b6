//! The jobs, and how often each is done to take long enough.

use super::{program::Library, sample::Call};

/// A job that all libraries do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// As it is chosen and told of.
    pub(super) name: &'static str,
    /// As the programs know it.
    pub(super) task: &'static str,
    /// Whom it asks.
    pub(super) place: Place,
    /// The name of one operation.
    pub(super) operation: &'static str,
    /// How many operations are measured.
    pub(super) count: usize,
    /// How many are under way at a time, or how many workers or readers there are.
    pub(super) concurrency: usize,
    /// How many changes there are in a second; all at once otherwise.
    pub(super) pace: Option<u32>,
}

/// Whom a job asks. Jobs are done in this order: a server that is not asked takes nothing from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// kube-apiserver and etcd.
    Real,
    /// Recorded responses, over plain HTTP.
    Replay,
    /// No server.
    Process,
}

impl Job {
    pub(super) const ALL: &[Self] = &[
        Self::real("get", "get of a pod, one at a time", 1000),
        Self { concurrency: 8, ..Self::real("get", "get of a pod, 8 at a time", 2000) },
        Self::real("list", "list of all pods", 10),
        Self::real("list-managed", "list of all pods with their managed fields", 10),
        Self::real("watch-keys", "watch event, key used", 1000),
        Self::real("watch-typed", "watch event, object used", 1000),
        Self::real("sync", "cache of all pods, from nothing to complete", 1),
        Self::real("sync-watch-list", "the same, by a watch that begins with the state", 1),
        Self::real("sync-decoded", "the same, every object decoded", 1),
        Self::real("sync-custom", "cache of all custom resources, from nothing to complete", 1),
        Self::real("informer-events", "watch event to a handler that takes the key", 1000),
        Self::real("index", "20 objects by an index value", 1_000_000),
        Self::real("cold", "from the start of the process to a cache of all pods", 1),
        Self::real("patch", "merge patch of a pod, one at a time", 150),
        Self::real("create", "create of a pod, one at a time", 200),
        Self::replay("sync-replay", "sync", "cache of all pods, replayed, from nothing to complete", 1),
        Self::replay("sync-list-replay", "sync-list", "the same, by a list", 1),
        Self::replay("sync-watch-list-replay", "sync-watch-list", "the same, by a watch that begins with the state", 1),
        Self::replay("sync-decoded-replay", "sync-decoded", "the same, every object decoded", 1),
        Self::replay("sync-custom-replay", "sync-custom", "cache of all custom resources, from nothing to complete", 1),
        Self::replay("events-replay", "events", "replayed watch event to a handler that takes the key", EVENTS),
        Self::replay(
            "events-replay-typed",
            "events-typed",
            "replayed watch event to a handler that uses the object",
            EVENTS,
        ),
        Self::replay(
            "relist-replay",
            "expire",
            "the whole state again, replayed, one object changed, after an expired watch",
            1,
        ),
        Self {
            concurrency: WORKERS,
            ..Self::replay("controller", "controller", "replayed change to reconcile", EVENTS)
        },
        Self {
            concurrency: WORKERS,
            pace: Some(1000),
            ..Self::replay("controller-latency", "controller", "the same, 1000 changes in a second", 3000)
        },
        Self {
            concurrency: WORKERS,
            pace: Some(10_000),
            ..Self::replay("controller-latency", "controller", "the same, 10000 changes in a second", EVENTS)
        },
        Self::process("read-key", "object by its key, 1 reader", 2_000_000, 1),
        Self::process("read-key", "object by its key, 2 readers", 2_000_000, 2),
        Self::process("read-key", "object by its key, 4 readers", 2_000_000, 4),
        Self::process("read-key", "object by its key, 8 readers", 2_000_000, 8),
        Self::process("read-typed", "object by its key, used, of a cache of decoded ones, 1 reader", 2_000_000, 1),
        Self::process("read-typed", "object by its key, used, of a cache of decoded ones, 8 readers", 2_000_000, 8),
        Self::process("read-key-writes", "object by its key, 1 reader and a writer", 1_000_000, 1),
        Self::process("read-key-writes", "object by its key, 2 readers and a writer", 1_000_000, 2),
        Self::process("read-key-writes", "object by its key, 4 readers and a writer", 1_000_000, 4),
        Self::process("read-key-writes", "object by its key, 8 readers and a writer", 1_000_000, 8),
        Self::process("read-index", "20 objects by an index value, 1 reader", 500_000, 1),
        Self::process("read-index", "20 objects by an index value, 2 readers", 500_000, 2),
        Self::process("read-index", "20 objects by an index value, 4 readers", 500_000, 4),
        Self::process("read-index", "20 objects by an index value, 8 readers", 500_000, 8),
        Self::process("read-index-writes", "20 objects by an index value, 1 reader and a writer", 200_000, 1),
        Self::process("read-index-writes", "20 objects by an index value, 2 readers and a writer", 200_000, 2),
        Self::process("read-index-writes", "20 objects by an index value, 4 readers and a writer", 200_000, 4),
        Self::process("read-index-writes", "20 objects by an index value, 8 readers and a writer", 200_000, 8),
        Self::process("queue", "key added, got and done, 1 worker", 2_000_000, 1),
        Self::process("queue", "key added, got and done, 2 workers", 2_000_000, 2),
        Self::process("queue", "key added, got and done, 4 workers", 2_000_000, 4),
        Self::process("queue", "key added, got and done, 8 workers", 2_000_000, 8),
        Self::process("queue-burst", "key of a burst, 8 workers", 600_000, 8),
        Self::process("queue-delayed", "key through a delay, a failure and its backoff, 4 workers", 100_000, WORKERS),
    ];

    const fn real(name: &'static str, operation: &'static str, count: usize) -> Self {
        Self { name, task: name, place: Place::Real, operation, count, concurrency: 1, pace: None }
    }

    const fn replay(name: &'static str, task: &'static str, operation: &'static str, count: usize) -> Self {
        Self { name, task, place: Place::Replay, operation, count, concurrency: 1, pace: None }
    }

    const fn process(name: &'static str, operation: &'static str, count: usize, concurrency: usize) -> Self {
        Self { name, task: name, place: Place::Process, operation, count, concurrency, pace: None }
    }

    /// Its name, with how fast it goes where that is given.
    pub(super) fn full_name(self) -> String {
        self.pace.map_or_else(|| self.name.to_owned(), |pace| format!("{}, {pace} in a second", self.name))
    }

    /// How many objects there are unless it is said.
    pub(super) fn default_size(self) -> usize {
        match self.place {
            Place::Real => 500,
            // They need not be made.
            Place::Replay => EVENTS,
            Place::Process => 10_000,
        }
    }

    /// How many operations are measured, of as many as there can be.
    pub(super) fn count(self, wanted: Option<usize>, size: usize) -> usize {
        // What is done once is not done more often.
        let count = wanted.filter(|_| self.count > 1).unwrap_or(self.count);
        // No object changes twice: libraries may make one of two changes.
        if self.changes() { count.min(size) } else { count }
    }

    /// Whether the replay server tells of changes.
    fn changes(self) -> bool {
        self.task.starts_with("events") || self.task == "controller"
    }

    /// Whether it is to be seen how it grows with the number of objects.
    pub(super) fn grows(self) -> bool {
        matches!(self.name, "sync-replay" | "sync-custom-replay" | "events-replay")
    }

    /// Whether it is about custom resources of the real server, which must have been made.
    pub(super) fn needs_custom(self) -> bool {
        self.name == "sync-custom"
    }

    /// Whether it watches changes that must have happened.
    pub(super) fn needs_events(self) -> bool {
        self.name.starts_with("watch") || self.name == "informer-events"
    }

    /// Whether a library has such a thing at all: kube-rs has no queue by itself and no indices, and its watcher cannot be told
    /// where to begin.
    pub(super) fn is_offered_by(self, library: Library) -> bool {
        let lacking = ["informer-events", "index", "read-index", "read-index-writes"];
        library != Library::KubeRs || !(lacking.contains(&self.name) || self.name.starts_with("queue"))
    }

    /// How many objects a right answer counts.
    pub(super) fn objects(self, call: &Call<'_>) -> usize {
        match self.task {
            "list" | "list-managed" | "cold" | "expire" => call.size,
            task if task.starts_with("sync") => call.size,
            // The last of each worker.
            "get" | "patch" => self.concurrency,
            _ => call.count,
        }
    }
}

/// Enough that what happens once does not show.
const EVENTS: usize = 10_000;
/// Of a controller.
const WORKERS: usize = 4;
