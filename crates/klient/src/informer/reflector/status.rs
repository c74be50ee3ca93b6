//! The status of a reflector or informer.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use foldhash::quality::RandomState;
use hashbrown::HashSet;
use klient_core::{ObjectKey, ResourceVersion};
use tokio::{sync::watch, time::Instant};

use crate::{Error, ErrorKind, informer::metrics::InformerMetrics};

/// The number of unreadable objects whose keys are in the status.
const SHOWN_KEYS: usize = 10;

/// The state of an informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerState {
    /// Not started.
    Idle,
    /// The first list is not complete.
    Syncing,
    /// The cache follows the server.
    Synced,
    /// The cache was synced, and the connection to the server has failed since.
    Stale {
        /// The time of the first failure.
        since: Instant,
    },
    /// The server refuses the list or the watch. The credentials are invalid, or lack permission.
    Denied,
    /// The server does not serve the kind, or not yet.
    NotServed,
    /// The informer was stopped, and cannot be started again.
    Stopped,
}

/// The reason for a read of the whole state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// Nothing was read before.
    Initial,
    /// The server no longer has the version to resume from, or does not have it yet.
    Expired,
    /// Several watches in a row could not be opened or brought no event.
    NoProgress,
    /// The kind was not served, access to it was denied, an earlier list failed, or the server could not read its store.
    Unavailable,
    /// The server's version is older than one that was already seen: the server was restored from a backup, or restarted
    /// without its data.
    VersionWentBack,
    /// An event could not be read, so that any object may have changed.
    Unreadable,
    /// The cache has only the objects of one replica, and this replica became responsible for others.
    Resharded,
}

impl RelistReason {
    /// Returns the name that metrics and logs use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Expired => "expired",
            Self::NoProgress => "no_progress",
            Self::Unavailable => "unavailable",
            Self::VersionWentBack => "version_went_back",
            Self::Unreadable => "unreadable",
            Self::Resharded => "resharded",
        }
    }
}

/// The status of an informer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The name of the resource, such as `deployments.apps`.
    pub resource: String,
    /// The current state.
    pub state: InformerState,
    /// The last version that was seen.
    pub resource_version: ResourceVersion,
    /// The time since the last event or bookmark of a watch.
    pub event_age: Option<Duration>,
    /// The time since the last bookmark.
    pub bookmark_age: Option<Duration>,
    /// The number of reads of the whole state, by reason.
    pub relists: BTreeMap<RelistReason, u64>,
    /// The number of events and bookmarks that arrived on watches.
    pub events: u64,
    /// The number of objects and events that arrived and were not stored, because they belong to other replicas. It does not grow
    /// if the server sends only what belongs to this replica; see
    /// [`cache_own_shard`](crate::controller::ControllerBuilder::cache_own_shard).
    pub dropped: u64,
    /// The number of objects and events that could not be read.
    pub decode_errors: u64,
    /// The number of objects whose current state could not be read. The cache has the last state of each that could be read, if
    /// there was one.
    pub unreadable: usize,
    /// The keys of the unreadable objects, at most ten.
    pub unreadable_keys: Vec<ObjectKey>,
    /// The most recent failure.
    pub last_error: Option<String>,
    /// The number of cached objects.
    pub objects: usize,
    /// The size of the cached objects in wire form, in bytes.
    pub bytes: usize,
}

/// The shared status, which the reflector updates and handles read.
pub(crate) struct StatusBoard {
    record: Mutex<StatusRecord>,
    metrics: Option<InformerMetrics>,
    state: watch::Sender<InformerState>,
}

struct StatusRecord {
    status: InformerStatus,
    last_event: Option<Instant>,
    last_bookmark: Option<Instant>,
    synced_once: bool,
}

impl StatusBoard {
    pub(crate) fn new(resource: String, metrics: Option<InformerMetrics>) -> Self {
        let status = InformerStatus {
            resource,
            state: InformerState::Idle,
            resource_version: ResourceVersion::default(),
            event_age: None,
            bookmark_age: None,
            relists: BTreeMap::new(),
            events: 0,
            dropped: 0,
            decode_errors: 0,
            unreadable: 0,
            unreadable_keys: Vec::new(),
            last_error: None,
            objects: 0,
            bytes: 0,
        };
        let record = StatusRecord { status, last_event: None, last_bookmark: None, synced_once: false };
        Self { record: Mutex::new(record), metrics, state: watch::Sender::new(InformerState::Idle) }
    }

    pub(crate) fn status(&self) -> InformerStatus {
        self.update(|record| {
            let mut status = record.status.clone();
            status.event_age = record.last_event.map(|at| at.elapsed());
            status.bookmark_age = record.last_bookmark.map(|at| at.elapsed());
            status.state = *self.state.borrow();
            status
        })
    }

    /// Returns a receiver of state changes.
    pub(crate) fn states(&self) -> watch::Receiver<InformerState> {
        self.state.subscribe()
    }

    pub(crate) fn set_state(&self, state: InformerState) {
        self.state.send_if_modified(|old| {
            // Stopped is final, and staleness counts from the first failure.
            let stays = *old == InformerState::Stopped
                || matches!((*old, state), (InformerState::Stale { .. }, InformerState::Stale { .. }));
            let changes = !stays && *old != state;
            if changes {
                *old = state;
            }
            changes
        });
        if let Some(metrics) = &self.metrics {
            metrics.synced(*self.state.borrow() == InformerState::Synced);
        }
    }

    pub(super) fn started(&self) {
        if !self.update(|record| record.synced_once) {
            self.set_state(InformerState::Syncing);
        }
    }

    /// Records the status of an informer over several others: the state of the worst, and sums.
    #[cfg(feature = "client")]
    pub(crate) fn merge(&self, state: InformerState, parts: &[(&str, InformerStatus)]) {
        let mut merged = state;
        self.update(|record| {
            let status = &mut record.status;
            (status.events, status.decode_errors, status.unreadable) = (0, 0, 0);
            status.relists.clear();
            status.unreadable_keys.clear();
            status.last_error = None;
            for (namespace, part) in parts {
                status.events += part.events;
                status.decode_errors += part.decode_errors;
                status.unreadable += part.unreadable;
                let room = SHOWN_KEYS.saturating_sub(status.unreadable_keys.len());
                status.unreadable_keys.extend(part.unreadable_keys.iter().take(room).cloned());
                for (reason, count) in &part.relists {
                    *status.relists.entry(*reason).or_default() += count;
                }
                let state = match part.state {
                    // Another user of the part has stopped it. The merged informer itself runs on.
                    InformerState::Stopped => InformerState::Stale { since: Instant::now() },
                    state => state,
                };
                if rank(state) > rank(merged) {
                    merged = state;
                }
                if let Some(error) = part.last_error.as_ref().filter(|_| part.state != InformerState::Synced) {
                    status.last_error = Some(format!("namespace {namespace:?}: {error}"));
                }
            }
            record.synced_once |= state == InformerState::Synced;
        });
        self.set_state(merged);
    }

    /// Records a complete list.
    pub(super) fn listed(&self, reason: RelistReason, version: &ResourceVersion) {
        self.update(|record| {
            *record.status.relists.entry(reason).or_default() += 1;
            record.status.resource_version = version.clone();
            record.synced_once = true;
        });
        if let Some(metrics) = &self.metrics {
            metrics.listed(reason);
        }
        self.set_state(InformerState::Synced);
    }

    /// Records that a watch is open, so that the cache follows the server.
    pub(super) fn following(&self) {
        self.set_state(InformerState::Synced);
    }

    /// Records events that were applied.
    pub(super) fn received(&self, events: u64, version: &ResourceVersion) {
        let now = Instant::now();
        self.update(|record| {
            record.status.events += events;
            record.status.resource_version = version.clone();
            record.last_event = Some(now);
        });
        if let Some(metrics) = &self.metrics {
            metrics.received(events);
        }
    }

    /// Counts an object that belongs to another replica.
    pub(super) fn dropped(&self, is_dropped: bool) {
        if is_dropped {
            self.update(|record| record.status.dropped += 1);
        }
    }

    pub(super) fn bookmarked(&self) {
        let now = Instant::now();
        self.update(|record| record.last_bookmark = Some(now));
        if let Some(metrics) = &self.metrics {
            metrics.bookmarked();
        }
    }

    /// Records the size of the cache.
    pub(crate) fn resized(&self, objects: usize, bytes: usize) {
        self.update(|record| (record.status.objects, record.status.bytes) = (objects, bytes));
    }

    pub(crate) fn metrics(&self) -> Option<&InformerMetrics> {
        self.metrics.as_ref()
    }

    pub(super) fn unreadable(&self, error: &Error) {
        self.update(|record| {
            record.status.decode_errors += 1;
            record.status.last_error = Some(chain(error));
        });
        if let Some(metrics) = &self.metrics {
            metrics.unreadable();
        }
    }

    /// Records which objects cannot be read.
    pub(super) fn set_unreadable(&self, keys: &HashSet<ObjectKey, RandomState>) {
        self.update(|record| {
            record.status.unreadable = keys.len();
            record.status.unreadable_keys = keys.iter().take(SHOWN_KEYS).cloned().collect();
        });
    }

    /// Records a failure that is retried.
    pub(super) fn failed(&self, error: &Error) {
        let synced_once = self.update(|record| {
            record.status.last_error = Some(chain(error));
            record.synced_once
        });
        match error.kind() {
            ErrorKind::Forbidden | ErrorKind::Unauthorized => self.set_state(InformerState::Denied),
            ErrorKind::NotFound => self.set_state(InformerState::NotServed),
            _ if synced_once => self.set_state(InformerState::Stale { since: Instant::now() }),
            _ => self.set_state(InformerState::Syncing),
        }
    }

    fn update<R>(&self, change: impl FnOnce(&mut StatusRecord) -> R) -> R {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns how bad a state is, to find the worst of several.
#[cfg(feature = "client")]
fn rank(state: InformerState) -> u8 {
    match state {
        InformerState::Synced => 0,
        InformerState::Stale { .. } => 1,
        InformerState::Idle | InformerState::Syncing => 2,
        InformerState::NotServed | InformerState::Stopped => 3,
        InformerState::Denied => 4,
    }
}

/// Returns the message of an error with those of its sources.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(below) = source {
        text = format!("{text}: {below}");
        source = below.source();
    }
    text
}
