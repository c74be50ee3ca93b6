//! A log of the writes of one task, so that a controller can wait until its caches show them.
//!
//! The client logs each successful write if the task runs inside [`WriteLog::scope`]. Otherwise, logging costs one lookup.
//! Writes of tasks that the task spawned are not logged.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use klient_core::{GroupResource, ObjectKey, Resource, ResourceVersion};

use crate::recording::TurnMark;

tokio::task_local! {
    static LOG: WriteLog;
}

/// A log of the writes of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteLog {
    writes: Arc<Mutex<Vec<Write>>>,
    /// The mark of the reconcile that the task runs, if it is recorded or replayed.
    turn: Option<TurnMark>,
}

/// A successful write, as far as a cache can show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) resource: GroupResource,
    pub(crate) key: ObjectKey,
    pub(crate) effect: WriteEffect,
}

/// The effect of a write on an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WriteEffect {
    /// The object was stored.
    Stored(StoredState),
    /// The object was deleted; its UID, if it is known.
    Deleted { uid: Option<String> },
}

/// The state of an object after a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredState {
    pub(crate) version: ResourceVersion,
    /// The labels, unless the response to the write did not have them: a `Scale` has those of no object.
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

impl StoredState {
    /// Returns the state of an object of a resource, if the object has a version. `object` is the response to the write.
    pub(crate) fn of<K: Resource>(object: &K, resource: &GroupResource) -> Option<Self> {
        let metadata = object.metadata();
        let version = metadata.resource_version.as_deref()?.into();
        let is_whole = K::KIND.is_empty() || resource.group == K::GROUP;
        let labels = is_whole.then(|| metadata.labels.clone().unwrap_or_default());
        Some(Self { version, labels })
    }
}

impl WriteLog {
    /// Creates a log of a reconcile that is recorded or replayed.
    pub(crate) fn of_turn(turn: Option<TurnMark>) -> Self {
        Self { writes: Arc::default(), turn }
    }

    /// Runs `work`, and logs its writes.
    pub(crate) async fn scope<F: Future>(&self, work: F) -> F::Output {
        LOG.scope(self.clone(), work).await
    }

    /// Logs a write. Of several writes to one object, the last one is enough.
    pub(crate) fn push(&self, write: Write) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.retain(|old| old.key != write.key || old.resource != write.resource);
        writes.push(write);
    }

    /// Returns a copy of the logged writes.
    pub(crate) fn copy(&self) -> Vec<Write> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes and returns the logged writes.
    pub(crate) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the mark of the reconcile that this task runs, if it is recorded or replayed.
pub(crate) fn turn_mark() -> Option<TurnMark> {
    LOG.try_with(|log| log.turn.clone()).ok().flatten()
}

/// Logs a write, if this task runs inside [`WriteLog::scope`].
#[cfg(feature = "client")]
pub(crate) fn note(write: impl FnOnce() -> Option<Write>) {
    // Logging is optional, so a missing log is not an error.
    let _ = LOG.try_with(|log| {
        if let Some(write) = write() {
            log.push(write);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(resource: &'static str, name: &str, version: &str) -> Write {
        let effect = match version {
            "" => WriteEffect::Deleted { uid: None },
            version => WriteEffect::Stored(StoredState { version: version.into(), labels: None }),
        };
        Write { resource: GroupResource::new("apps", resource), key: ObjectKey::namespaced("shop", name), effect }
    }

    #[test]
    fn write_log_keeps_the_last_write_of_each_object() {
        let log = WriteLog::default();
        log.push(write("deployments", "a", "9"));
        log.push(write("deployments", "b", "10"));
        log.push(write("replicasets", "a", "4"));
        log.push(write("deployments", "a", "x-11"));
        let expected =
            [write("deployments", "b", "10"), write("replicasets", "a", "4"), write("deployments", "a", "x-11")];
        assert_eq!(log.take(), expected);
        assert!(log.take().is_empty());
    }

    #[test]
    fn write_log_replaces_writes_of_a_deleted_object() {
        let log = WriteLog::default();
        log.push(write("deployments", "a", "9"));
        log.push(write("deployments", "a", ""));
        log.push(write("deployments", "b", "10"));
        assert_eq!(log.take(), [write("deployments", "a", ""), write("deployments", "b", "10")]);
    }

    #[cfg(feature = "client")]
    #[tokio::test]
    async fn write_log_ignores_writes_of_spawned_tasks() {
        let log = WriteLog::default();
        log.scope(async {
            note(|| Some(write("deployments", "a", "9")));
            tokio::spawn(async { note(|| Some(write("deployments", "b", "10"))) }).await.unwrap();
        })
        .await;
        note(|| Some(write("deployments", "c", "11")));
        assert_eq!(log.take(), [write("deployments", "a", "9")]);
    }
}
