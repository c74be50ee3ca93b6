//! The parts that a manager runs, of any type.

use std::{collections::BTreeMap, pin::Pin, sync::Arc};

use klient_core::Resource;
use tokio::sync::watch;

use super::inspect::Inspect;
use crate::{
    BoxError, Error,
    controller::{Controller, HistoryLimits, Permit},
    election::{LeaderChanges, LeaderElector, LeaderLock, Leadership},
    informer::{InformerStatus, SharedInformer, narrow::SlotSet},
    introspection::LeadershipReport,
    recording::Recorder,
    shard::{Board, Slot},
    workqueue::QueueStats,
};

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The shutdown request of a manager to a task. Clones refer to the same request.
#[derive(Clone, Debug)]
pub struct Stop {
    pub(super) requested: watch::Receiver<bool>,
}

impl Stop {
    pub(crate) fn new(requested: watch::Receiver<bool>) -> Self {
        Self { requested }
    }

    /// Waits until the task has to stop.
    #[doc(alias = "Done")]
    pub async fn requested(mut self) {
        // An error means that the manager was dropped: the task has to stop as well.
        let _ = self.requested.wait_for(|requested| *requested).await;
    }
}

/// A part with caches or a queue.
pub(crate) trait Part: Send + Sync {
    fn name(&self) -> String;
    fn informers(&self) -> Vec<InformerStatus>;
    fn queue(&self) -> Option<QueueStats>;
    fn record(&self, recorder: &Recorder);
}

/// An informer.
pub(super) trait AnyInformer: Part {
    fn start(&self);
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// A controller.
pub(crate) trait AnyController: Part {
    /// Records the history of each key.
    fn record_history(&self, limits: HistoryLimits);

    /// Returns what introspection sees: the controller itself, or those of the clusters that it runs now.
    fn inspected(self: Arc<Self>) -> Vec<Arc<dyn Inspect>>;

    /// Starts the informers, so that their caches are complete when the controller runs.
    fn start_informers(&self);

    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>>;

    /// Returns the shard key in words, if the controller is sharded.
    fn shard_key(&self) -> Option<String>;

    /// Narrows the cache of the controller's own kind to the slots that it holds, if the controller wants that.
    fn narrow(&self, board: &Arc<Board>) -> Result<(), Error>;

    /// Sets the slots whose objects a narrowed cache should have.
    fn hold(&self, slots: SlotSet);

    /// Waits until a narrowed cache has the objects of slots.
    fn fill(&self, slots: SlotSet) -> BoxFuture<'_, ()>;

    /// Returns what is waited for if a narrowed cache does not have the objects of slots.
    fn awaited(&self, slots: SlotSet) -> Option<String>;

    /// Reconciles only keys of slots that are open on the board.
    fn share(&self, board: &Arc<Board>);

    /// Queues all keys of these slots.
    fn gained(&self, slots: &[Slot]);

    /// Waits until the caches have the versions that other replicas wrote, by resource.
    fn catch_up<'a>(&'a self, wrote: &'a BTreeMap<String, u64>) -> BoxFuture<'a, ()>;
}

/// A candidate in a leader election.
pub(super) trait AnyElector: Send + Sync {
    fn check(&self) -> Result<(), Error>;

    fn leader_changes(&self) -> LeaderChanges;

    fn report(&self) -> LeadershipReport;

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

    fn record(&self, recorder: &Recorder) {
        SharedInformer::record(self, recorder);
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

    fn record(&self, recorder: &Recorder) {
        Controller::record(self, recorder);
    }
}

impl<K: Resource> AnyController for Controller<K> {
    fn record_history(&self, limits: HistoryLimits) {
        Controller::record_history(self, limits);
    }

    fn inspected(self: Arc<Self>) -> Vec<Arc<dyn Inspect>> {
        vec![self]
    }

    fn start_informers(&self) {
        Controller::start_informers(self);
    }

    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { self.run_permitted(stop.requested(), permit).await })
    }

    fn shard_key(&self) -> Option<String> {
        Controller::shard_key(self)
    }

    fn narrow(&self, board: &Arc<Board>) -> Result<(), Error> {
        Controller::narrow(self, board)
    }

    fn hold(&self, slots: SlotSet) {
        Controller::hold(self, slots);
    }

    fn fill(&self, slots: SlotSet) -> BoxFuture<'_, ()> {
        Box::pin(Controller::fill(self, slots))
    }

    fn awaited(&self, slots: SlotSet) -> Option<String> {
        Controller::awaited(self, slots)
    }

    fn share(&self, board: &Arc<Board>) {
        Controller::share(self, board);
    }

    fn gained(&self, slots: &[Slot]) {
        Controller::gained(self, slots);
    }

    fn catch_up<'a>(&'a self, wrote: &'a BTreeMap<String, u64>) -> BoxFuture<'a, ()> {
        Box::pin(Controller::catch_up(self, wrote))
    }
}

impl<L: LeaderLock> AnyElector for LeaderElector<L> {
    fn check(&self) -> Result<(), Error> {
        LeaderElector::check(self, TOLERANCE)
    }

    fn leader_changes(&self) -> LeaderChanges {
        LeaderElector::leader_changes(self)
    }

    fn report(&self) -> LeadershipReport {
        LeadershipReport { is_leader: self.is_leader(), leader: self.leader() }
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
