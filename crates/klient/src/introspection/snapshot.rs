//! The state of a process: its controllers, informers, leadership, webhooks and connections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The version of this form: [`VERSION`](super::VERSION).
    pub version: u32,
    /// The time since the manager was built.
    pub uptime: f64,
    /// The leader election, if there is one.
    pub leadership: Option<LeadershipReport>,
    /// The group of replicas that share keys, if keys are sharded.
    pub shards: Option<ShardReport>,
    /// The controllers.
    pub controllers: Vec<ControllerReport>,
    /// The informers of controllers and of the manager itself, each once.
    pub informers: Vec<InformerReport>,
    /// The webhooks that have received requests.
    pub webhooks: Vec<WebhookReport>,
    /// The requests to each API server.
    pub connections: Vec<ConnectionReport>,
}

/// The standing of a process in a leader election.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LeadershipReport {
    /// Whether this process leads.
    pub is_leader: bool,
    /// The identity of the leader, if one is known.
    pub leader: Option<String>,
}

/// A group of replicas that share keys, as this process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ShardReport {
    /// The name of the group.
    pub group: String,
    /// The name of this replica as a member.
    pub member: String,
    /// The replica that coordinates, if one does.
    pub coordinator: Option<String>,
    /// The number of the newest table that this replica obeys.
    pub generation: Option<u64>,
    /// The number of slots that this replica works on.
    pub open: usize,
    /// The number of slots that belong to no living member.
    pub orphans: usize,
    /// The number of slots that move from one member to another.
    pub moving: usize,
    /// The members, with the number of slots that each owns.
    pub members: BTreeMap<String, usize>,
    /// The last failure of this replica, until it is over.
    pub problem: Option<String>,
}

#[cfg(feature = "client")]
impl From<&crate::shard::ShardStatus> for ShardReport {
    fn from(status: &crate::shard::ShardStatus) -> Self {
        let members = status.members.iter().filter(|member| member.slots > 0 || member.name == status.member);
        Self {
            group: status.group.clone(),
            member: status.member.clone(),
            coordinator: status.coordinator.clone(),
            generation: status.generation,
            open: status.open,
            orphans: status.orphans,
            moving: status.moves.len(),
            members: members.map(|member| (member.identity.clone(), member.slots)).collect(),
            problem: status.problem.clone(),
        }
    }
}

/// The phase of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Phase {
    /// The controller was not started. With leader election, it starts when this process leads.
    #[default]
    NotStarted,
    /// The controller waits for the first lists of its informers.
    Syncing,
    /// The controller reconciles.
    Running,
    /// The controller has stopped.
    Stopped,
}

/// The state of one controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ControllerReport {
    /// The name.
    pub name: String,
    /// The phase.
    pub phase: Phase,
    /// The number of workers.
    pub workers: usize,
    /// The queue.
    pub queue: QueueReport,
    /// The number of reconciles that succeeded.
    pub succeeded: u64,
    /// The number of reconciles that failed, panics and timeouts included.
    pub failed: u64,
    /// The number of reconciles that panicked.
    pub panicked: u64,
    /// The number of reconciles that timed out.
    pub timed_out: u64,
    /// The number of reconciles that began before the cache showed the last write of the same key.
    pub stale: u64,
    /// The number of events that predicates ignored.
    pub filtered: u64,
    /// The resources of the informers: that of the controller's own kind first.
    pub resources: Vec<String>,
    /// The keys in process.
    pub running: Vec<RunningReport>,
    /// The keys whose slowest turn took longest.
    pub slowest: Vec<KeyReport>,
    /// The keys that failed most often.
    pub failing: Vec<KeyReport>,
    /// The keys with the most turns in a minute.
    pub busiest: Vec<KeyReport>,
    /// The keys that are reconciled in a loop: many turns in a minute, each because of a write of the turn before, or without a
    /// change.
    pub hot_loops: Vec<KeyReport>,
    /// The history, if turns are recorded.
    pub history: Option<HistoryReport>,
    /// Samples of the last minutes, the oldest first.
    pub samples: Vec<Sample>,
}

/// The numbers of keys in a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct QueueReport {
    /// The number of keys that wait for a worker.
    pub ready: usize,
    /// The number of delayed keys.
    pub delayed: usize,
    /// The number of keys in process.
    pub in_process: usize,
    /// The number of keys with failures.
    pub failing: usize,
    /// The longest time that a key has waited for a worker.
    pub oldest: Option<f64>,
    /// The longest time that a key has been in process.
    pub longest_in_process: Option<f64>,
}

/// A key in process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunningReport {
    /// The key.
    pub key: String,
    /// How long it has been in process.
    pub running_for: Option<f64>,
}

/// The numbers of one key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct KeyReport {
    /// The name of the controller.
    pub controller: String,
    /// The key.
    pub key: String,
    /// The number of turns.
    pub turns: u32,
    /// The number of turns that failed.
    pub failures: u32,
    /// The number of turns in a minute, now or in the last minute.
    pub per_minute: u32,
    /// The duration of the slowest turn.
    pub slowest: f64,
    /// The result of the last turn: `none`, `succeeded`, `failed` or `terminal`.
    pub last: String,
}

/// The size of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct HistoryReport {
    /// The number of keys.
    pub keys: usize,
    /// The number of recorded turns.
    pub turns: usize,
    /// The memory of the records of keys, in bytes.
    pub key_bytes: usize,
}

/// The numbers of a controller at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Sample {
    /// The time since the sample was taken.
    pub ago: f64,
    /// The number of keys that waited for a worker.
    pub ready: usize,
    /// The number of delayed keys.
    pub delayed: usize,
    /// The number of keys in process.
    pub in_process: usize,
    /// The number of reconciles that had succeeded.
    pub succeeded: u64,
    /// The number of reconciles that had failed.
    pub failed: u64,
}

/// The state of one informer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct InformerReport {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The state: `idle`, `syncing`, `synced`, `stale`, `denied`, `notServed` or `stopped`.
    pub state: String,
    /// How long the cache has been stale.
    pub stale_for: Option<f64>,
    /// The number of cached objects.
    pub objects: usize,
    /// The size of the cached objects, in bytes.
    pub bytes: usize,
    /// The last version that was seen.
    pub resource_version: String,
    /// The number of events and bookmarks.
    pub events: u64,
    /// The time since the last event or bookmark.
    pub event_ago: Option<f64>,
    /// The time since the last bookmark.
    pub bookmark_ago: Option<f64>,
    /// The number of reads of the whole state, by reason.
    pub relists: BTreeMap<String, u64>,
    /// The number of objects and events that could not be read.
    pub decode_errors: u64,
    /// The number of objects whose current state cannot be read.
    pub unreadable: usize,
    /// The keys of those objects, at most ten.
    pub unreadable_keys: Vec<String>,
    /// The most recent failure.
    pub last_error: Option<String>,
}

/// The numbers of one webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WebhookReport {
    /// The path.
    pub path: String,
    /// The number of requests, by response code.
    pub requests: BTreeMap<String, u64>,
    /// The number of requests that are being handled.
    pub in_flight: i64,
    /// The mean duration of a request.
    pub mean_latency: Option<f64>,
}

/// The numbers of requests to one API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ConnectionReport {
    /// The host of the server.
    pub host: String,
    /// The number of requests, by status code or `<error>`.
    pub requests: BTreeMap<String, u64>,
    /// The number of retries.
    pub retries: u64,
    /// The mean time to the head of a response, watches left out.
    pub mean_latency: Option<f64>,
}
