//! What a manager runs, whatever its type.

use std::{pin::Pin, sync::Arc};

use klient_core::Resource;
use tokio::sync::watch;

use crate::{
    BoxError, Error,
    controller::{Controller, Permit},
    election::{LeaderElector, LeaderLock, Leadership},
    informer::{InformerStatus, SharedInformer},
    workqueue::QueueStats,
};

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// When a part has to stop. Clones are about the same stop.
#[derive(Clone, Debug)]
pub struct Stop {
    pub(super) asked: watch::Receiver<bool>,
}

impl Stop {
    /// Ready when the part has to stop.
    pub async fn asked(mut self) {
        // A manager that is gone asks for nothing more clearly.
        let _ = self.asked.wait_for(|asked| *asked).await;
    }
}

/// Something with a cache or a queue.
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
    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>>;
}

/// A candidate.
pub(super) trait AnyElector: Send + Sync {
    fn check(&self) -> Result<(), Error>;

    /// Does the work while this process leads.
    fn lead<'a>(
        &'a self,
        signal: BoxFuture<'a, ()>,
        work: Box<dyn FnOnce(Leadership) -> BoxFuture<'a, Result<(), Error>> + Send + 'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// Something else, which runs whether this process leads or not.
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
    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { self.run_permitted(stop.asked(), permit).await })
    }
}

impl<L: LeaderLock> AnyElector for LeaderElector<L> {
    fn check(&self) -> Result<(), Error> {
        LeaderElector::check(self, LATE)
    }

    fn lead<'a>(
        &'a self,
        signal: BoxFuture<'a, ()>,
        work: Box<dyn FnOnce(Leadership) -> BoxFuture<'a, Result<(), Error>> + Send + 'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match self.run_until(signal, async move |leadership| work(leadership).await).await? {
                Some(outcome) => outcome,
                // Asked to stop before it led.
                None => Ok(()),
            }
        })
    }
}

/// How long after its lease ran out a leader that has not noticed is given up.
const LATE: std::time::Duration = std::time::Duration::from_secs(20);
