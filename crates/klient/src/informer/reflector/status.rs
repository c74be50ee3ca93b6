//! How a reflector stands, for those who ask.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use klient_core::ResourceVersion;
use tokio::{sync::watch, time::Instant};

use crate::{Error, ErrorKind, informer::metrics::InformerMetrics};

/// What an informer is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerState {
    /// Not started.
    Idle,
    /// The first list is not complete.
    Syncing,
    /// The cache follows the server.
    Synced,
    /// The cache was complete, and has not heard from the server since.
    Stale {
        /// Since when.
        since: Instant,
    },
    /// The server refuses the list or the watch: the credentials or their rights are wrong.
    Denied,
    /// The server has no such kind, as yet.
    NotServed,
    /// Stopped for good.
    Stopped,
}

/// Why the whole state was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Relist {
    /// Nothing was read before.
    First,
    /// The server no longer has, or does not have yet, the version to go on from.
    Expired,
    /// Watches could not be started, or brought nothing, again and again.
    Fruitless,
    /// The kind was not there, or not allowed.
    Unavailable,
}

impl Relist {
    /// As metrics and logs name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Expired => "expired",
            Self::Fruitless => "fruitless",
            Self::Unavailable => "unavailable",
        }
    }
}

/// How an informer stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// What is listed and watched.
    pub resource: String,
    /// What it is at.
    pub state: InformerState,
    /// The last version that was seen.
    pub resource_version: ResourceVersion,
    /// How long ago anything came on a watch: an event or a bookmark.
    pub event_age: Option<Duration>,
    /// How long ago the last bookmark came.
    pub bookmark_age: Option<Duration>,
    /// How often the whole state was read, by reason.
    pub relists: BTreeMap<Relist, u64>,
    /// How many events came on watches.
    pub events: u64,
    /// How many objects or events could not be read.
    pub decode_errors: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// How many objects the cache has.
    pub objects: usize,
    /// How many bytes these have in wire form.
    pub bytes: usize,
}

/// Where a reflector writes how it stands.
pub(crate) struct StatusBoard {
    notes: Mutex<Notes>,
    metrics: Option<InformerMetrics>,
    state: watch::Sender<InformerState>,
}

struct Notes {
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
            decode_errors: 0,
            last_error: None,
            objects: 0,
            bytes: 0,
        };
        let notes = Notes { status, last_event: None, last_bookmark: None, synced_once: false };
        Self { notes: Mutex::new(notes), metrics, state: watch::Sender::new(InformerState::Idle) }
    }

    pub(crate) fn status(&self) -> InformerStatus {
        self.note(|notes| {
            let mut status = notes.status.clone();
            status.event_age = notes.last_event.map(|at| at.elapsed());
            status.bookmark_age = notes.last_bookmark.map(|at| at.elapsed());
            status.state = *self.state.borrow();
            status
        })
    }

    /// Follows what it is at.
    pub(crate) fn states(&self) -> watch::Receiver<InformerState> {
        self.state.subscribe()
    }

    pub(crate) fn set_state(&self, state: InformerState) {
        self.state.send_if_modified(|old| {
            // Stopped is for ever, and staleness counts from its beginning.
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
        if !self.note(|notes| notes.synced_once) {
            self.set_state(InformerState::Syncing);
        }
    }

    /// The whole state was read.
    pub(super) fn listed(&self, reason: Relist, version: &ResourceVersion) {
        self.note(|notes| {
            *notes.status.relists.entry(reason).or_default() += 1;
            notes.status.resource_version = version.clone();
            notes.synced_once = true;
        });
        if let Some(metrics) = &self.metrics {
            metrics.listed(reason);
        }
        self.set_state(InformerState::Synced);
    }

    /// A watch is open: the cache follows the server.
    pub(super) fn following(&self) {
        self.set_state(InformerState::Synced);
    }

    /// Events were taken from a watch.
    pub(super) fn took(&self, events: u64, version: &ResourceVersion) {
        let now = Instant::now();
        self.note(|notes| {
            notes.status.events += events;
            notes.status.resource_version = version.clone();
            notes.last_event = Some(now);
        });
        if let Some(metrics) = &self.metrics {
            metrics.took(events);
        }
    }

    pub(super) fn bookmarked(&self) {
        let now = Instant::now();
        self.note(|notes| notes.last_bookmark = Some(now));
        if let Some(metrics) = &self.metrics {
            metrics.bookmarked();
        }
    }

    /// How much the cache holds.
    pub(crate) fn holds(&self, objects: usize, bytes: usize) {
        self.note(|notes| (notes.status.objects, notes.status.bytes) = (objects, bytes));
    }

    pub(crate) fn metrics(&self) -> Option<&InformerMetrics> {
        self.metrics.as_ref()
    }

    pub(super) fn unreadable(&self, error: &Error) {
        self.note(|notes| {
            notes.status.decode_errors += 1;
            notes.status.last_error = Some(chain(error));
        });
        if let Some(metrics) = &self.metrics {
            metrics.unreadable();
        }
    }

    /// Something went wrong, after which there will be another try.
    pub(super) fn failed(&self, error: &Error) {
        let synced_once = self.note(|notes| {
            notes.status.last_error = Some(chain(error));
            notes.synced_once
        });
        match error.kind() {
            ErrorKind::Forbidden | ErrorKind::Unauthorized => self.set_state(InformerState::Denied),
            ErrorKind::NotFound => self.set_state(InformerState::NotServed),
            _ if synced_once => self.set_state(InformerState::Stale { since: Instant::now() }),
            _ => self.set_state(InformerState::Syncing),
        }
    }

    fn note<R>(&self, change: impl FnOnce(&mut Notes) -> R) -> R {
        change(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An error with what lies below it.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(below) = source {
        text = format!("{text}: {below}");
        source = below.source();
    }
    text
}
