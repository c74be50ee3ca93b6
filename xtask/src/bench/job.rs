//! The jobs, each with a number of operations that takes long enough to measure.

use super::{program::Library, sample::Call};

/// A job that is measured with each library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// The name in options and reports.
    pub(super) name: &'static str,
    /// The name that the programs are called with.
    pub(super) task: &'static str,
    /// The server that the job sends requests to.
    pub(super) place: Place,
    /// The description of one operation.
    pub(super) operation: &'static str,
    /// The number of measured operations.
    pub(super) count: usize,
    /// The number of concurrent operations, workers or readers.
    pub(super) concurrency: usize,
    /// The number of changes per second. Without it, all changes come at once.
    pub(super) pace: Option<u32>,
}

/// The server that a job sends requests to.
///
/// Jobs run in this order, so that only the server of the current jobs runs and no other server uses the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// kube-apiserver and etcd.
    Real,
    /// Recorded responses, over plain HTTP.
    Replay,
    /// kube-apiserver and etcd, with a kubelet.
    Streams,
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
        Self::stream("exec-read", "MiB read from a process, WebSocket", 400),
        Self::stream("exec-write", "MiB written to a process, WebSocket", 400),
        Self::stream("exec-read-spdy", "MiB read from a process, SPDY", 400),
        Self::stream("exec-write-spdy", "MiB written to a process, SPDY", 400),
        Self::stream("forward-read", "MiB read from a forwarded port", 400),
        Self::stream("forward-write", "MiB written to a forwarded port", 400),
        Self::stream("forward-turns", "100 bytes to a forwarded port and back", 2000),
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

    const fn stream(task: &'static str, operation: &'static str, count: usize) -> Self {
        Self { name: "streams", task, place: Place::Streams, operation, count, concurrency: 1, pace: None }
    }

    const fn process(name: &'static str, operation: &'static str, count: usize, concurrency: usize) -> Self {
        Self { name, task: name, place: Place::Process, operation, count, concurrency, pace: None }
    }

    /// Returns the name of the job, with its pace if it has one, or its task if it is one of streams.
    pub(super) fn full_name(self) -> String {
        match (self.place, self.pace) {
            (Place::Streams, _) => format!("{}, {}", self.name, self.task),
            (_, Some(pace)) => format!("{}, {pace} in a second", self.name),
            (_, None) => self.name.to_owned(),
        }
    }

    /// Returns the number of objects if no option sets it.
    pub(super) fn default_size(self) -> usize {
        match self.place {
            Place::Real => 500,
            // Replayed objects need not be created.
            Place::Replay => EVENTS,
            Place::Process => 10_000,
            Place::Streams => 1,
        }
    }

    /// Returns the number of operations to measure, limited by the number of objects where each can change only once.
    pub(super) fn count(self, wanted: Option<usize>, size: usize) -> usize {
        // The option does not apply to jobs of a single operation.
        let count = wanted.filter(|_| self.count > 1).unwrap_or(self.count);
        // No object changes twice, because libraries may merge two changes of an object into one.
        if self.changes() { count.min(size) } else { count }
    }

    /// Returns whether the replay server sends changes.
    fn changes(self) -> bool {
        self.task.starts_with("events") || self.task == "controller"
    }

    /// Returns whether the job is measured with several numbers of objects, to show how its costs grow.
    pub(super) fn grows(self) -> bool {
        matches!(self.name, "sync-replay" | "sync-custom-replay" | "events-replay")
    }

    /// Returns whether the job needs custom resources on the real server, which must be created before the job starts.
    pub(super) fn needs_custom(self) -> bool {
        self.name == "sync-custom"
    }

    /// Returns whether the job watches changes that must happen before the job starts.
    pub(super) fn needs_events(self) -> bool {
        self.name.starts_with("watch") || self.name == "informer-events"
    }

    /// Returns whether a library offers the feature that the job measures.
    ///
    /// kube-rs has no separate queue, no indices and no SPDY, and its watcher cannot start from a given resource version.
    pub(super) fn is_offered_by(self, library: Library) -> bool {
        let lacking = ["informer-events", "index", "read-index", "read-index-writes"];
        let is_lacking = lacking.contains(&self.name) || self.name.starts_with("queue") || self.task.ends_with("-spdy");
        library != Library::KubeRs || !is_lacking
    }

    /// Returns the number of objects that a correct result contains.
    pub(super) fn objects(self, call: &Call<'_>) -> usize {
        match self.task {
            "list" | "list-managed" | "cold" | "expire" => call.size,
            task if task.starts_with("sync") => call.size,
            // The result contains the last object of each worker.
            "get" | "patch" => self.concurrency,
            _ => call.count,
        }
    }
}

/// The number of events. It is large enough that one-time costs do not matter.
const EVENTS: usize = 10_000;
/// The number of workers of a controller.
const WORKERS: usize = 4;
