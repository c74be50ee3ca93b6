//! The garbage collector: deletes objects without owners, and the contents of deleted namespaces and definitions.
//!
//! The collector learns owners from committed changes. Its jobs run one after another in its own task.
//! Contents of definitions are deleted by the real API server itself, and all else by its controller manager.

mod ownership;
#[cfg(test)]
mod tests;
mod work;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use self::ownership::Ownership;
use crate::{
    metadata,
    registry::Resource,
    server::Core,
    store::{ChangeKind, Committed, Stored},
};

/// The table and key of an object.
type ObjectId = (Arc<str>, String);

/// The collector's knowledge of owners, and its jobs.
#[derive(Default)]
pub(crate) struct Collector {
    state: Mutex<State>,
    work: Notify,
}

#[derive(Default)]
struct State {
    ownership: Ownership,
    queue: VecDeque<Job>,
}

/// A job of the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Job {
    /// Delete an object if it has no owner left.
    Dependent(ObjectId),
    /// Continue the deletion of an owner that waits for its dependents.
    Owner(ObjectId),
    /// Delete the contents of a namespace.
    Namespace(String),
    /// Delete all objects of a custom kind.
    Definition(String),
}

impl Collector {
    /// Records a committed change, and queues jobs for it.
    pub(crate) fn after_change(&self, resource: &Resource, Committed { change, object }: &Committed) {
        let id = (Arc::clone(&resource.table), change.key.clone());
        let uid = metadata::text(object, "uid");
        let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owners: Vec<String> =
            references.map(|owner| owner["uid"].as_str().unwrap_or_default().to_owned()).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if change.kind == ChangeKind::Deleted {
            for dependent in state.ownership.dependents(uid) {
                state.push(Job::Dependent(dependent));
            }
            for owner in state.ownership.remove(&id, uid) {
                state.push(Job::Owner(owner));
            }
            let namespace = metadata::text(object, "namespace");
            if !namespace.is_empty() {
                state.push(Job::Namespace(namespace.to_owned()));
            }
            if resource.is_custom() {
                state.push(Job::Definition(format!("{}.{}", resource.plural, resource.group)));
            }
        } else {
            let has_owners = !owners.is_empty();
            state.ownership.set(id.clone(), uid, owners);
            if has_owners {
                state.push(Job::Dependent(id.clone()));
            }
            if metadata::is_deleting(object) {
                state.push(Job::Owner(id));
            }
        }
        drop(state);
        self.work.notify_one();
    }

    /// Records an object that was stored before the server started.
    pub(crate) fn restore(&self, resource: &Resource, stored: &Stored) {
        let raw = stored.raw();
        let key = resource.key(&raw.namespace().unwrap_or_default(), &raw.name());
        let id = (Arc::clone(&resource.table), key.clone());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let owners: Vec<String> = raw.owner_references().map(|owner| owner.uid).collect();
        let owned = !owners.is_empty();
        state.ownership.set(id.clone(), &raw.uid().unwrap_or_default(), owners);
        if owned {
            state.push(Job::Dependent(id.clone()));
        }
        if raw.deletion_timestamp().is_some() {
            state.push(Job::Owner(id));
            drop(state);
            (resource.hooks.resume_deletion)(self, &key);
        }
    }

    /// Queues the deletion of a namespace's contents.
    pub(crate) fn empty_namespace(&self, name: &str) {
        self.push(Job::Namespace(name.to_owned()));
    }

    /// Queues the deletion of all objects of a custom kind.
    pub(crate) fn empty_definition(&self, name: &str) {
        self.push(Job::Definition(name.to_owned()));
    }

    /// Runs jobs until the server is dropped. Those of the controller manager are dropped if `is_alone`.
    pub(crate) async fn run(core: std::sync::Weak<Core>, is_alone: bool) {
        while let Some(strong) = core.upgrade() {
            let job = strong.collector.state.lock().unwrap_or_else(PoisonError::into_inner).queue.pop_front();
            match job {
                Some(job) if is_alone && !matches!(job, Job::Definition(_)) => {}
                Some(job) => work::perform(&strong, job).await,
                None => {
                    let collector = Arc::clone(&strong.collector);
                    drop(strong);
                    collector.work.notified().await;
                }
            }
        }
    }

    fn push(&self, job: Job) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.work.notify_one();
    }

    fn dependents(&self, uid: &str) -> Vec<ObjectId> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ownership.dependents(uid)
    }

    fn place_of(&self, uid: &str) -> Option<ObjectId> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ownership.place_of(uid)
    }
}

impl State {
    fn push(&mut self, job: Job) {
        // A queued job will see the newest state.
        if self.queue.back() != Some(&job) {
            self.queue.push_back(job);
        }
    }
}
