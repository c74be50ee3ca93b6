//! What one task wrote to the server, for whoever has to wait until a cache shows it.
//!
//! The client notes each write that succeeded, if somebody asked for that around the task that wrote; otherwise it costs one
//! look. Nothing is noted by tasks that the task spawned.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use klient_core::{GroupResource, ObjectKey, ResourceVersion};

tokio::task_local! {
    static LOG: WriteLog;
}

/// The writes of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteLog {
    writes: Arc<Mutex<Vec<Write>>>,
}

/// A write that succeeded, as far as a cache can show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) resource: GroupResource,
    pub(crate) key: ObjectKey,
    pub(crate) left: Left,
}

/// What a write left behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Left {
    /// An object of that version.
    Version(ResourceVersion),
    /// Nothing of the object with that UID, if it is known.
    Nothing { uid: Option<String> },
}

impl WriteLog {
    /// Does some work, and notes what it writes.
    pub(crate) async fn scope<F: Future>(&self, work: F) -> F::Output {
        LOG.scope(self.clone(), work).await
    }

    /// Notes a write. Of several to one resource, the last one tells enough, except for deletions.
    pub(crate) fn push(&self, write: Write) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let covers = |old: &Write| match (&old.left, &write.left) {
            (Left::Version(old_version), Left::Version(version)) => {
                old.resource == write.resource && version.is_newer_than(old_version)
            }
            _ => old.resource == write.resource && old.key == write.key,
        };
        writes.retain(|old| !covers(old));
        writes.push(write);
    }

    /// What was noted so far.
    pub(crate) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes a write, if somebody around this task wants to know.
#[cfg(feature = "client")]
pub(crate) fn note(write: impl FnOnce() -> Option<Write>) {
    // No log is no failure: nobody asked.
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
        let left = match version {
            "" => Left::Nothing { uid: None },
            version => Left::Version(version.into()),
        };
        Write { resource: GroupResource::new("apps", resource), key: ObjectKey::namespaced("shop", name), left }
    }

    #[test]
    fn the_newest_version_of_a_resource_stands_for_the_older_ones() {
        let log = WriteLog::default();
        log.push(write("deployments", "a", "9"));
        log.push(write("deployments", "b", "10"));
        log.push(write("replicasets", "a", "4"));
        assert_eq!(log.take(), [write("deployments", "b", "10"), write("replicasets", "a", "4")]);
        assert!(log.take().is_empty());
    }

    #[test]
    fn a_deletion_is_kept_beside_writes_to_other_objects_and_replaces_those_to_its_own() {
        let log = WriteLog::default();
        log.push(write("deployments", "a", "9"));
        log.push(write("deployments", "a", ""));
        log.push(write("deployments", "b", "10"));
        assert_eq!(log.take(), [write("deployments", "a", ""), write("deployments", "b", "10")]);
    }

    #[cfg(feature = "client")]
    #[tokio::test]
    async fn only_writes_of_the_task_itself_are_noted() {
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
