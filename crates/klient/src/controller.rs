//! Controllers: a function runs for each object that may not be as it should, exactly as often as needed.
//!
//! A [`Controller`] joins informers, a [queue](crate::workqueue::WorkQueue) and workers. Changes of its kind, of what that owns and of whatever else
//! a mapping names become keys; each key is reconciled by one worker at a time, again after a failure with growing delays, and
//! not before the cache shows what the last reconcile of the same key wrote. In controller-runtime: `pkg/controller`.

mod builder;
mod intake;
mod metrics;
mod own_writes;
mod permit;
mod predicate;
mod reason;
mod reconcile;
mod source;
mod trigger;
mod worker;

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use klient_core::{ObjectKey, Resource};
use tokio::{task::JoinSet, time::timeout};

pub(crate) use self::permit::Permit;
pub use self::{
    builder::ControllerBuilder,
    predicate::Predicate,
    reason::{Cause, Reason, Reasons},
    reconcile::{Outcome, Reconciler, Request, Terminal},
    source::{Keys, Source},
};
use self::{
    builder::Options, intake::Intake, metrics::Metrics, own_writes::OwnWrites, source::Connected, worker::AnyReconciler,
};
use crate::{
    Error, ErrorKind,
    informer::{InformerStatus, Lister},
    workqueue::{AddOptions, QueueStats},
};

/// Reconciles the objects of one kind. A handle: clones are the same controller.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::Client;
/// use klient::controller::{Controller, Outcome, Request};
/// use klient::informer::InformerFactory;
///
/// async fn reconcile(request: Request<Deployment>) -> Result<Outcome, klient::Error> {
///     let Some(deployment) = request.object()? else {
///         return Ok(Outcome::Done); // It is gone.
///     };
///     println!("{} because of: {}", request.key(), request.reasons());
///     println!("{:?} replicas", deployment.spec.replicas);
///     Ok(Outcome::Done)
/// }
///
/// # async fn run() -> Result<(), klient::Error> {
/// let factory = InformerFactory::new(Client::infer()?);
/// let controller = Controller::builder("deployments", factory.apps_v1().deployments())
///     .owns(factory.apps_v1().replica_sets())
///     .reconcile(reconcile);
/// controller.run_until(klient::shutdown::signal()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Controller<K: Resource> {
    shared: Arc<Shared<K>>,
}

/// What the workers of a controller and its handles share.
struct Shared<K: Resource> {
    name: Arc<str>,
    lister: Lister<K>,
    /// The first one is that of the kind itself.
    sources: Vec<Box<dyn Connected>>,
    intake: Arc<Intake>,
    reconciler: Box<dyn AnyReconciler<K>>,
    own_writes: OwnWrites,
    metrics: Metrics,
    options: Options,
}

/// How a controller stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// What it is called.
    pub name: String,
    /// How many keys are ready, wait or are in process, and since when.
    pub queue: QueueStats,
    /// How its informers stand: that of its own kind first.
    pub informers: Vec<InformerStatus>,
    /// How many reconciles ended well.
    pub succeeded: u64,
    /// How many failed, for whatever reason.
    pub failed: u64,
    /// How many of these panicked.
    pub panicked: u64,
    /// How many of these took too long.
    pub timed_out: u64,
    /// How many began before the cache showed the last write of the same key.
    pub stale: u64,
}

impl<K: Resource> Controller<K> {
    /// A controller for the objects of an informer, to be set up. The name is for metrics and logs.
    pub fn builder(name: impl Into<String>, source: impl Into<Source<K>>) -> ControllerBuilder<K> {
        ControllerBuilder::new(name, source.into())
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Reads the cache of its own kind.
    pub fn lister(&self) -> &Lister<K> {
        &self.shared.lister
    }

    /// Has a key reconciled, whatever the reason.
    pub fn request(&self, key: ObjectKey) {
        self.shared.intake.add(key, Reason::of(Cause::Requested), 0);
    }

    /// Has a key reconciled after some time.
    pub fn request_after(&self, key: ObjectKey, delay: Duration) {
        self.shared.intake.add_with(key, Reason::of(Cause::Requested), AddOptions::default().after(delay));
    }

    /// How it stands.
    pub fn status(&self) -> ControllerStatus {
        let (shared, metrics) = (&self.shared, &self.shared.metrics);
        ControllerStatus {
            name: shared.name.to_string(),
            queue: shared.intake.queue.stats(),
            informers: shared.sources.iter().map(|source| source.status()).collect(),
            succeeded: metrics.success.value() + metrics.requeue_after.value(),
            failed: metrics.errors.value(),
            panicked: metrics.panics.value(),
            timed_out: metrics.timeouts.value(),
            stale: metrics.stale.value(),
        }
    }

    /// Runs until the signal comes: starts the informers, waits for their first lists, and reconciles.
    ///
    /// As long as a kind is not installed or not allowed, it waits, and [`status`](Self::status) says so. When the signal
    /// comes, nothing more is taken into the queue, and what is ready or under way has [some time](ControllerBuilder::drain_for) to end. The
    /// informers go on: others may use them. It can run once.
    ///
    /// # Errors
    ///
    /// If an informer is stopped before it has its first list, if it ran before, or if reconciles had to be dropped at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops what is under way.
    pub async fn run_until(&self, signal: impl Future<Output = ()>) -> Result<(), Error> {
        self.run_permitted(signal, Permit::default()).await
    }

    /// Runs until the signal comes, and touches no reconcile after the permit has ended.
    pub(crate) async fn run_permitted(&self, signal: impl Future<Output = ()>, permit: Permit) -> Result<(), Error> {
        let shared = &self.shared;
        if shared.intake.queue.is_shutting_down() {
            return Err(Error::new(ErrorKind::Invalid, format!("the controller {:?} ran before", self.name())));
        }
        let mut signal = pin!(signal);
        for source in &shared.sources {
            source.start();
        }
        let listening: Vec<_> = shared.sources.iter().map(|source| source.listen(Arc::clone(&shared.intake))).collect();
        let synced = async {
            for source in &listening {
                source.wait_for_sync().await?;
            }
            Ok::<(), Error>(())
        };
        // Whatever comes in meanwhile is merged: workers begin when they can see everything.
        tokio::select! {
            biased;
            () = &mut signal => {
                shared.intake.queue.shut_down();
                return Ok(());
            }
            synced = synced => synced.map_err(|error| error.context(format!("the controller {:?} cannot start", self.name())))?,
        }
        tracing::info!(controller = self.name(), workers = shared.options.workers, "the controller runs");
        let mut workers = JoinSet::new();
        for _ in 0..shared.options.workers {
            workers.spawn(worker::work(Arc::clone(shared), permit.clone()));
        }
        signal.await;
        drop(listening);
        self.drain(workers).await
    }

    /// Ends the intake, and lets the workers end what is there.
    async fn drain(&self, mut workers: JoinSet<()>) -> Result<(), Error> {
        let queue = &self.shared.intake.queue;
        queue.shut_down();
        let limit = self.shared.options.drain;
        let all = async { while workers.join_next().await.is_some() {} };
        if timeout(limit, all).await.is_ok() {
            return Ok(());
        }
        let stats = queue.stats();
        workers.shutdown().await;
        let what = format!(
            "the controller {:?} did not end within {limit:?}: {} reconciles were dropped, {} keys were not begun",
            self.name(),
            stats.in_process,
            stats.ready
        );
        Err(Error::new(ErrorKind::Timeout, what))
    }
}

impl<K: Resource> Clone for Controller<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.shared.name)
            .field("queue", &self.shared.intake.queue)
            .finish_non_exhaustive()
    }
}
