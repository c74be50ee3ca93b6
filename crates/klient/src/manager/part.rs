//! The parts that a manager runs, of any type.

use std::{pin::Pin, sync::Arc};

use klient_core::Resource;
use tokio::sync::watch;

use crate::{
    BoxError, Error,
    controller::{Controller, Permit},
    election::{LeaderChanges, LeaderElector, LeaderLock, Leadership},
    informer::{InformerStatus, SharedInformer},
    workqueue::QueueStats,
};

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The shutdown request of a manager to a task. Clones refer to the same request.
#[derive(Clone, Debug)]
pub struct Stop {
    pub(super) requested: watch::Receiver<bool>,
}

impl Stop {
    /// Waits until the task has to stop.
    #[doc(alias = "Done")]
    pub async fn requested(mut self) {
        // An error means that the manager was dropped: the task has to stop as well.
        let _ = self.requested.wait_for(|requested| *requested).await;
    }
}

/// A part with caches or a queue.
pub(super) trait Part: Send + Sync {
    fn name(&self) -> String;
    fn informers(&self) -> Vec<InformerStatus>;
    fn queue(&self) -> Option<QueueStats>;
}

/// An informer.
pub(super) trait AnyInformer: Part {
    fn start(&self);
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// A controller.
pub(super) trait AnyController: Part {
    /// Starts the informers, so that their caches are complete when the controller runs.
    fn start_informers(&self);

    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>>;
}

/// A candidate in a leader election.
pub(super) trait AnyElector: Send + Sync {
    fn check(&self) -> Result<(), Error>;

    fn leader_changes(&self) -> LeaderChanges;

    /// Returns whether this process leads, in words.
    fn standing(&self) -> String;

    /// Runs the work while this process leads.
    fn lead<'a>(
        &'a self,
        signal: BoxFuture<'a, ()>,
        work: Box<dyn FnOnce(Leadership) -> BoxFuture<'a, Result<(), Error>> + Send + 'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// A task that runs whether this process leads or not.
pub(super) struct Task {
    pub(super) name: String,
    pub(super) run: Box<dyn FnOnce(Stop) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>,
}

impl<K: Resource> Part for SharedInformer<K> {
    fn name(&self) -> String {
        format!("informer-{}", self.status().resource)
    }

    fn informers(&self) -> Vec<InformerStatus> {
        vec![self.status()]
    }

    fn queue(&self) -> Option<QueueStats> {
        None
    }
}

impl<K: Resource> AnyInformer for SharedInformer<K> {
    fn start(&self) {
        SharedInformer::start(self);
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(SharedInformer::stop(self))
    }
}

impl<K: Resource> Part for Controller<K> {
    fn name(&self) -> String {
        format!("controller-{}", Controller::name(self))
    }

    fn informers(&self) -> Vec<InformerStatus> {
        self.status().informers
    }

    fn queue(&self) -> Option<QueueStats> {
        Some(self.status().queue)
    }
}

impl<K: Resource> AnyController for Controller<K> {
    fn start_informers(&self) {
        Controller::start_informers(self);
    }

    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { self.run_permitted(stop.requested(), permit).await })
    }
}

impl<L: LeaderLock> AnyElector for LeaderElector<L> {
    fn check(&self) -> Result<(), Error> {
        LeaderElector::check(self, TOLERANCE)
    }

    fn leader_changes(&self) -> LeaderChanges {
        LeaderElector::leader_changes(self)
    }

    fn standing(&self) -> String {
        match self.leader() {
            _ if self.is_leader() => "this process leads".to_owned(),
            Some(leader) => format!("standby, {leader} leads"),
            None => "standby, no process leads".to_owned(),
        }
    }

    fn lead<'a>(
        &'a self,
        signal: BoxFuture<'a, ()>,
        work: Box<dyn FnOnce(Leadership) -> BoxFuture<'a, Result<(), Error>> + Send + 'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match self.run_until(signal, work).await? {
                Some(outcome) => outcome,
                // The signal came before this process led.
                None => Ok(()),
            }
        })
    }
}

/// How long after the end of its lease a leader that has not noticed counts as hung.
const TOLERANCE: std::time::Duration = std::time::Duration::from_secs(20);
