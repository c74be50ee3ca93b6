//! The story of one key: its state, why it is not reconciled, and its recent turns.

use serde::{Deserialize, Serialize};

use super::InformerReport;

/// The stories of one key in all controllers that know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stories {
    /// The version of this form: [`VERSION`](super::VERSION).
    pub version: u32,
    /// The key: `namespace/name`, or `name` for cluster-scoped kinds.
    pub key: String,
    /// One story per controller.
    pub stories: Vec<KeyStory>,
}

/// The keys that contain a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeySearch {
    /// The version of this form: [`VERSION`](super::VERSION).
    pub version: u32,
    /// The keys, at most as many as requested.
    pub keys: Vec<super::KeyReport>,
    /// Whether there are more keys.
    pub is_truncated: bool,
}

/// The story of one key in one controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyStory {
    /// The name of the controller.
    pub controller: String,
    /// The key: `namespace/name`, or `name` for cluster-scoped kinds.
    pub key: String,
    /// The state in one sentence, for people.
    pub summary: String,
    /// The state now, or the reason why the key is not reconciled.
    pub state: KeyState,
    /// The object in the cache, if it is there.
    #[serde(default)]
    pub object: Option<ObjectReport>,
    /// The reasons of the next turn, if one is queued.
    #[serde(default)]
    pub pending: Vec<ReasonReport>,
    /// Whether turns are recorded. Without a history, `turns` is empty and some states are unknown.
    pub has_history: bool,
    /// The number of turns since the history began.
    #[serde(default)]
    pub turn_count: u32,
    /// The number of those turns that failed.
    #[serde(default)]
    pub failure_count: u32,
    /// The number of turns in a minute, now or in the last minute.
    #[serde(default)]
    pub turns_per_minute: u32,
    /// The recent turns, the newest first.
    #[serde(default)]
    pub turns: Vec<TurnReport>,
    /// The last event that a predicate ignored.
    #[serde(default)]
    pub filtered: Option<FilteredReport>,
    /// The fields that this controller and another field manager write in turn.
    #[serde(default)]
    pub fights: Vec<Fight>,
    /// The informers of the controller: that of its own kind first.
    #[serde(default)]
    pub informers: Vec<InformerReport>,
}

/// The state of a key, or the reason why it is not reconciled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum KeyState {
    /// The last turn succeeded, and saw the version that the cache has.
    Done {
        /// The time since the end of the last turn.
        ended_ago: f64,
    },
    /// The reconciler runs.
    InProcess {
        /// For how long.
        running_for: f64,
        /// Whether another turn follows, because something changed meanwhile.
        again: bool,
    },
    /// The turn waits until the cache shows a write of the turn before.
    WaitingForOwnWrite {
        /// For how long.
        waiting_for: f64,
        /// The time after which the reconcile begins anyway.
        at_most: f64,
        /// The write.
        write: WriteReport,
    },
    /// The key waits for a worker.
    Ready {
        /// For how long.
        waiting_for: f64,
        /// The number of keys that are handed out before it.
        ahead: usize,
        /// The number of workers, and of those that are busy.
        workers: usize,
        /// The number of workers that are reconciling other keys.
        busy: usize,
    },
    /// The key waits after a failure.
    Backoff {
        /// The time until the retry.
        retry_in: f64,
        /// The number of consecutive failures.
        failures: u32,
        /// The error of the last turn, if turns are recorded.
        error: Option<String>,
    },
    /// The last turn succeeded, and asked for another one later.
    Scheduled {
        /// The time until that turn.
        next_in: f64,
    },
    /// The last turn failed, and is not retried before something changes.
    Failed {
        /// The time since the end of the last turn.
        ended_ago: f64,
        /// The error.
        error: String,
    },
    /// Something changed since the last turn, but a predicate ignores it.
    Filtered {
        /// The predicate and the event.
        event: FilteredReport,
    },
    /// The controller does not run: it was not started.
    NotStarted,
    /// The controller has stopped.
    Stopped,
    /// Another process leads.
    NotLeader {
        /// The identity of the leader, if one is known.
        leader: Option<String>,
    },
    /// Another shard is responsible for the key.
    OtherShard {
        /// The owner of the shard, if it is known.
        owner: Option<String>,
    },
    /// The controller waits for the first list of an informer.
    NotSynced {
        /// The resource of that informer.
        resource: String,
        /// The state of that informer.
        informer: String,
        /// The last error of that informer.
        error: Option<String>,
    },
    /// The object arrived in a form that cannot be read.
    Unreadable {
        /// The last error of the informer.
        error: Option<String>,
    },
    /// The cache has no such object.
    NotCached {
        /// Whether the informer covers the key: its namespace and fields match the informer's.
        covered: bool,
    },
    /// The object is cached, but no event of its current version has queued the key.
    NoEvent {
        /// The time since the informer's last event.
        informer_event_ago: Option<f64>,
        /// The state of the informer.
        informer: String,
    },
    /// Nothing is queued. Without a history, it is unknown whether the last turn succeeded.
    Idle,
    /// A state that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A cached object, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ObjectReport {
    /// The version in the cache.
    pub resource_version: String,
    /// The generation, if the kind has one.
    pub generation: Option<i64>,
    /// Whether the object is being deleted.
    pub is_deleting: bool,
}

/// One reason of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReasonReport {
    /// The kind of event: `found`, `added`, `changed`, `deleted`, `resync`, `retry`, `requeued`, `requested` or `event`.
    pub kind: String,
    /// The resource or the name of the stream.
    pub source: Option<String>,
    /// The object that changed.
    pub object: Option<String>,
    /// The version of that object.
    pub resource_version: Option<u64>,
}

/// A turn that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnReport {
    /// The time since the turn ended.
    pub ended_ago: f64,
    /// How long the reconciler ran.
    pub took: f64,
    /// How long the key was queued.
    pub queued_for: Option<f64>,
    /// How long the turn waited until the cache showed the writes of the turn before.
    pub waited_for_own_writes: f64,
    /// The reasons, merged.
    pub reasons: Vec<ReasonReport>,
    /// The number of reasons that are not stored.
    pub more_reasons: usize,
    /// The version of the object that the cache had, if it is a number.
    pub seen_version: Option<u64>,
    /// The outcome.
    pub outcome: TurnOutcome,
    /// The error, if the turn failed.
    pub error: Option<String>,
    /// The delay until the next turn, if one was scheduled.
    pub next_in: Option<f64>,
    /// The objects that the turn wrote.
    pub writes: Vec<WriteReport>,
    /// The number of writes that are not stored.
    pub more_writes: usize,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The reconciler succeeded.
    Succeeded,
    /// The reconciler failed, and is retried.
    Failed,
    /// The reconciler failed, and is not retried before something changes.
    Terminal,
    /// The reconciler panicked.
    Panicked,
    /// The reconciler took too long.
    TimedOut,
    /// The process lost leadership while the reconciler ran.
    LeadershipLost,
}

/// A write to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WriteReport {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The key of the object.
    pub object: String,
    /// The version after the write; `None` if the object was deleted.
    pub resource_version: Option<String>,
}

/// An event that a predicate ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FilteredReport {
    /// The name of the predicate.
    pub predicate: String,
    /// The resource of the event.
    pub source: String,
    /// The version of the object, if it is a number.
    pub resource_version: Option<u64>,
    /// The time since the event.
    pub ago: f64,
    /// The number of ignored events of this key.
    pub count: u32,
}

/// A field that two field managers write in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Fight {
    /// The resource of the object.
    pub resource: String,
    /// The key of the object.
    pub object: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
    /// The field managers, in alphabetical order.
    pub managers: Vec<String>,
    /// How often the owner of the field changed while the object was watched.
    pub changes: u32,
}
