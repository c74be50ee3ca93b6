//! The garbage collector: what nobody owns any more is deleted, and so is what is in a namespace that is.
//!
//! It knows who owns what from the changes it is told of, and does its work in a task of its own, one thing after another.

mod ownership;
mod work;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use self::ownership::Ownership;
use crate::{
    registry::Resource,
    server::Core,
    store::{Change, ChangeKind, Stored},
};

/// Where an object is: its table and its key.
type Place = (Arc<str>, String);

/// What is to be done about changes.
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

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Job {
    /// See whether an object still has an owner.
    Dependent(Place),
    /// See whether an owner that is being deleted still waits for its dependents.
    Owner(Place),
    /// Delete all that is in a namespace.
    Namespace(String),
    /// Delete all objects of a custom kind.
    Definition(String),
}

impl Collector {
    /// Takes note of a change.
    pub(crate) fn after_change(&self, resource: &Resource, change: &Change) {
        let place = (Arc::clone(&resource.table), change.key.clone());
        let raw = change.object.raw();
        let uid = raw.uid().unwrap_or_default().into_owned();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let owners: Vec<String> = raw.owner_references().map(|owner| owner.uid).collect();
        if change.kind == ChangeKind::Deleted {
            for dependent in state.ownership.dependents(&uid) {
                state.push(Job::Dependent(dependent));
            }
            for owner in state.ownership.remove(&place, &uid) {
                state.push(Job::Owner(owner));
            }
            if let Some(namespace) = raw.namespace() {
                state.push(Job::Namespace(namespace.into_owned()));
            }
            if resource.is_custom() {
                state.push(Job::Definition(format!("{}.{}", resource.plural, resource.group)));
            }
        } else {
            let has_owners = !owners.is_empty();
            state.ownership.set(place.clone(), &uid, owners);
            if has_owners {
                state.push(Job::Dependent(place.clone()));
            }
            if raw.deletion_timestamp().is_some() {
                state.push(Job::Owner(place));
            }
        }
        drop(state);
        self.work.notify_one();
    }

    /// Takes note of an object that was there before the server was.
    pub(crate) fn restore(&self, resource: &Resource, stored: &Stored) {
        let raw = stored.raw();
        let key = resource.key(&raw.namespace().unwrap_or_default(), &raw.name());
        let place = (Arc::clone(&resource.table), key.clone());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let owners: Vec<String> = raw.owner_references().map(|owner| owner.uid).collect();
        let owned = !owners.is_empty();
        state.ownership.set(place.clone(), &raw.uid().unwrap_or_default(), owners);
        if owned {
            state.push(Job::Dependent(place.clone()));
        }
        if raw.deletion_timestamp().is_some() {
            state.push(Job::Owner(place));
            drop(state);
            (resource.hooks.resume_deletion)(self, &key);
        }
    }

    /// Deletes all that is in a namespace.
    pub(crate) fn empty_namespace(&self, name: &str) {
        self.push(Job::Namespace(name.to_owned()));
    }

    /// Deletes all objects of a custom kind.
    pub(crate) fn empty_definition(&self, name: &str) {
        self.push(Job::Definition(name.to_owned()));
    }

    /// Does what there is to do, for as long as there is a server.
    pub(crate) async fn run(core: std::sync::Weak<Core>) {
        while let Some(strong) = core.upgrade() {
            let job = strong.collector.state.lock().unwrap_or_else(PoisonError::into_inner).queue.pop_front();
            match job {
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

    fn dependents(&self, uid: &str) -> Vec<Place> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ownership.dependents(uid)
    }

    fn place_of(&self, uid: &str) -> Option<Place> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ownership.place_of(uid)
    }
}

impl State {
    fn push(&mut self, job: Job) {
        // A job that waits already will see the newest state.
        if self.queue.back() != Some(&job) {
            self.queue.push_back(job);
        }
    }
}
