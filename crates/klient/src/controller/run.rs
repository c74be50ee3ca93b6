//! `Controller`: the handle that users hold, and the run of a controller from its start to its end.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use klient_core::{ObjectKey, Resource};
use tokio::{
    task::{JoinError, JoinSet},
    time::timeout,
};

use super::{
    ControllerBuilder, Outcome, Permit, Reason, ReasonKind, Source,
    added::AddedSources,
    builder::{OnError, Options},
    key_queue::{KeyQueue, Tap},
    metrics::Metrics,
    own_writes::{Caches, OwnWrites},
    source::{AnySource, KeyStream},
    trigger::OwnerKind,
    worker::{self, AnyReconciler},
};
#[cfg(feature = "client")]
use crate::informer::{CachedObject, narrow::Narrow};
use crate::{
    BoxError, Error, ErrorKind,
    informer::{InformerStatus, Lister},
    introspection::Phase,
    recording::Recorder,
    workqueue::{AddOptions, QueueStats},
};

/// A controller for the objects of one kind. Clones are handles to the same controller.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::Client;
/// use klient::{Controller, controller::{Outcome, Request}};
/// use klient::InformerFactory;
///
/// async fn reconcile(request: Request<Deployment>) -> Result<Outcome, klient::Error> {
///     let Some(deployment) = request.object()? else {
///         return Ok(Outcome::Done); // The Deployment was deleted.
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
///     .workers(4)
///     .reconcile(reconcile);
/// controller.run_until(klient::shutdown::signal()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Controller<K: Resource> {
    pub(super) inner: Arc<ControllerInner<K>>,
}

/// The shared part of a controller's workers and handles.
pub(super) struct ControllerInner<K: Resource> {
    pub(super) name: Arc<str>,
    pub(super) lister: Lister<K>,
    /// The informers. The first one is that of the controller's own kind.
    pub(super) sources: Vec<Box<dyn AnySource>>,
    /// The streams of keys, until the controller runs.
    pub(super) streams: Mutex<Vec<KeyStream>>,
    pub(super) keys: Arc<KeyQueue>,
    pub(super) reconciler: Box<dyn AnyReconciler<K>>,
    pub(super) on_error: Option<OnError>,
    pub(super) is_running: AtomicBool,
    pub(super) phase: RunPhase,
    pub(super) own_writes: OwnWrites,
    pub(super) recorder: OnceLock<Recorder>,
    pub(super) metrics: Metrics,
    pub(super) options: Options,
    /// The sources that were added after the controller was built.
    pub(super) added: AddedSources,
    /// The kind that owner references to this controller's objects have.
    pub(super) owner: OwnerKind,
    /// The cluster of the controller's objects, if there are several.
    pub(super) cluster: Option<Arc<str>>,
    #[cfg(feature = "client")]
    pub(super) shard_key: Option<Arc<crate::shard::ShardKey<K>>>,
    #[cfg(feature = "client")]
    pub(super) caches_own_shard: bool,
    /// The slots of the cache of the controller's own kind, if it is narrowed.
    #[cfg(feature = "client")]
    pub(super) narrow: OnceLock<Arc<Narrow<CachedObject<K>>>>,
}

/// The phase of a run, which introspection shows.
#[derive(Debug, Default)]
pub(super) struct RunPhase(AtomicU8);

impl RunPhase {
    pub(super) fn get(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::NotStarted,
            1 => Phase::Syncing,
            2 => Phase::Running,
            _ => Phase::Stopped,
        }
    }

    fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }
}

impl<K: Resource> ControllerInner<K> {
    /// Returns the name for people: with that of the cluster, if there are several.
    pub(super) fn shown_name(&self) -> String {
        match &self.cluster {
            Some(cluster) => format!("{} in {cluster}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Returns the caches that may show a write.
    pub(super) fn caches(&self) -> Caches<'_> {
        Caches { sources: &self.sources, added: &self.added }
    }
}

/// The status of a controller.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The name of the controller.
    pub name: String,
    /// The number of keys that are ready, delayed and in process.
    pub queue: QueueStats,
    /// The status of each informer: that of the controller's own kind first.
    pub informers: Vec<InformerStatus>,
    /// The status of the informers of [sources that were added](Controller::add_source), by name.
    pub added: BTreeMap<String, InformerStatus>,
    /// The number of reconciles that succeeded.
    pub succeeded: u64,
    /// The number of reconciles that failed, including panics and timeouts.
    pub failed: u64,
    /// The number of reconciles that panicked.
    pub panicked: u64,
    /// The number of reconciles that timed out.
    pub timed_out: u64,
    /// The number of reconciles that began before the cache showed the last write of the same key.
    pub stale: u64,
}

impl<K: Resource> Controller<K> {
    /// Returns a builder of a controller for the objects of an informer or an [`Api`](crate::Api). The name is for metrics
    /// and logs.
    #[doc(alias = "For")]
    #[doc(alias = "NewControllerManagedBy")]
    pub fn builder(name: impl Into<String>, source: impl Into<Source<K>>) -> ControllerBuilder<K> {
        ControllerBuilder::new(name, source.into())
    }

    /// Returns the name of the controller.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the cache of the controller's own kind.
    pub fn lister(&self) -> &Lister<K> {
        &self.inner.lister
    }

    /// Queues a key.
    pub fn request(&self, key: ObjectKey) {
        self.inner.keys.add(key, Reason::new(ReasonKind::Requested), AddOptions::default());
    }

    /// Queues a key after a delay.
    pub fn request_after(&self, key: ObjectKey, delay: Duration) {
        self.inner.keys.add(key, Reason::new(ReasonKind::Requested), AddOptions::default().after(delay));
    }

    /// Returns the controller's current status.
    pub fn status(&self) -> ControllerStatus {
        let (inner, metrics) = (&self.inner, &self.inner.metrics);
        ControllerStatus {
            name: inner.shown_name(),
            queue: inner.keys.queue.stats(),
            informers: inner.sources.iter().map(|source| source.status()).collect(),
            added: inner.added.status(),
            succeeded: metrics.success.value() + metrics.requeue_after.value(),
            failed: metrics.errors.value(),
            panicked: metrics.panics.value(),
            timed_out: metrics.timeouts.value(),
            stale: metrics.stale.value(),
        }
    }

    /// Records what this controller and its informers see and do from now on; see [`recording`](crate::recording). The first
    /// recorder stays.
    pub fn record(&self, recorder: &Recorder) {
        if self.inner.recorder.set(recorder.clone()).is_ok() {
            // A replay has no recorder.
            let _ = self.inner.keys.tap.set(Tap::Record(recorder.clone(), Arc::clone(&self.inner.name)));
            self.inner.sources.iter().for_each(|source| source.record(recorder));
        }
    }

    /// Reconciles one key now, and returns the outcome or error of the reconciler: for tests and one-shot programs.
    ///
    /// Starts the informers and waits for their first lists, and for the cache to show the writes of the last reconcile of
    /// this key. The key does not pass through the queue: nothing is retried or requeued.
    ///
    /// ```no_run
    /// # async fn test(controller: klient::Controller<k8s_openapi::api::core::v1::ConfigMap>) {
    /// use klient::{ObjectKey, controller::Outcome};
    ///
    /// let outcome = controller.reconcile_once(ObjectKey::namespaced("shop", "web")).await.unwrap();
    /// assert_eq!(outcome, Outcome::Done);
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of the reconciler; an error if the reconciler panics or times out; and an error if the controller
    /// is running, since a key must not be reconciled twice at once: use [`request`](Self::request) then.
    pub async fn reconcile_once(&self, key: ObjectKey) -> Result<Outcome, BoxError> {
        let _running = self.start_running("reconcile_once")?;
        self.start_informers();
        for source in &self.inner.sources {
            source.wait_for_sync().await?;
        }
        worker::reconcile_once(&self.inner, &key).await
    }

    /// Runs until the signal is ready: starts the informers, waits for their first lists, and reconciles.
    ///
    /// While a kind is not installed or the server denies access to it, the controller waits, and [`status`](Self::status)
    /// reports it. After the signal, nothing is queued any more, and ready and running reconciles may go on for
    /// [some time](ControllerBuilder::drain_for). The informers keep running: other users may share them. A controller can run
    /// once.
    ///
    /// # Errors
    ///
    /// Returns an error if an informer is stopped before its first list, if the controller is running or has run before, or if
    /// reconciles had to be dropped at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciles.
    #[doc(alias = "Start")]
    pub async fn run_until(&self, signal: impl Future<Output = ()>) -> Result<(), Error> {
        self.run_permitted(signal, Permit::default()).await
    }

    /// Starts the informers, so that their caches are complete when the controller runs.
    pub(crate) fn start_informers(&self) {
        self.inner.sources.iter().for_each(|source| source.start());
    }

    /// Runs until the signal is ready, and polls no reconcile after the permit has expired.
    pub(crate) async fn run_permitted(&self, signal: impl Future<Output = ()>, permit: Permit) -> Result<(), Error> {
        let inner = &self.inner;
        let _running = self.start_running("run_until")?;
        if inner.keys.queue.is_shutting_down() {
            let message = format!("controller {:?} has run already: build a new one", self.name());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let _phase = StopOnDrop(&inner.phase);
        inner.phase.set(Phase::Syncing);
        let mut signal = pin!(signal);
        let mut listening = Vec::with_capacity(inner.sources.len());
        for source in &inner.sources {
            source.start();
            listening.push(source.listen(Arc::clone(&inner.keys), inner.metrics.filtered.clone()));
        }
        inner.added.begin(&inner.keys, &inner.metrics.filtered);
        let _added = EndOnDrop(&inner.added);
        let synced = async {
            for source in &listening {
                source.wait_for_sync().await?;
            }
            Ok::<(), Error>(())
        };
        // Events that arrive meanwhile are merged in the queue. Workers start when all caches are complete.
        tokio::select! {
            biased;
            () = &mut signal => {
                inner.keys.queue.shut_down();
                return Ok(());
            }
            synced = synced => synced.map_err(|error| error.context(format!("controller {:?} cannot start", self.name())))?,
        }
        inner.phase.set(Phase::Running);
        tracing::info!(controller = self.name(), workers = inner.options.workers, "controller started");
        let mut streams = JoinSet::new();
        for mut stream in std::mem::take(&mut *inner.streams.lock().unwrap_or_else(PoisonError::into_inner)) {
            let keys = Arc::clone(&inner.keys);
            streams.spawn(async move { stream.run(&keys).await });
        }
        let mut workers = JoinSet::new();
        for _ in 0..inner.options.workers {
            workers.spawn(worker::work(Arc::clone(inner), permit.clone()));
        }
        loop {
            tokio::select! {
                () = &mut signal => break,
                Some(Err(ended)) = workers.join_next(), if !workers.is_empty() => {
                    self.replace_worker(ended, &mut workers, &permit);
                }
            }
        }
        drop((listening, streams));
        self.drain(workers).await
    }

    /// Starts another worker for one that panicked outside of the reconciler.
    fn replace_worker(&self, ended: JoinError, workers: &mut JoinSet<()>, permit: &Permit) {
        let panic = ended.try_into_panic().map_or_else(|error| error.to_string(), |panic| worker::message_of(&*panic));
        tracing::error!(controller = self.name(), panic, "worker panicked, starting another one");
        self.inner.metrics.panics.increment();
        workers.spawn(worker::work(Arc::clone(&self.inner), permit.clone()));
    }

    /// Shuts the queue down, and waits for the workers.
    async fn drain(&self, mut workers: JoinSet<()>) -> Result<(), Error> {
        let queue = &self.inner.keys.queue;
        queue.shut_down();
        let limit = self.inner.options.drain;
        let all = async { while workers.join_next().await.is_some() {} };
        if timeout(limit, all).await.is_ok() {
            tracing::info!(controller = self.name(), "controller stopped");
            return Ok(());
        }
        let stats = queue.stats();
        workers.shutdown().await;
        let message = format!(
            "controller {:?} did not stop within {limit:?}: dropped {} running reconciles and {} queued keys",
            self.name(),
            stats.in_process,
            stats.ready
        );
        Err(Error::new(ErrorKind::Timeout, message))
    }

    /// Marks the controller as running until the output is dropped.
    pub(super) fn start_running(&self, caller: &str) -> Result<Running<'_>, Error> {
        if self.inner.is_running.swap(true, Ordering::AcqRel) {
            let message = format!("controller {:?} is running already: `{caller}` needs one that is not", self.name());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Running(&self.inner.is_running))
    }
}

/// Ends the sources that were added, however a run ends.
struct EndOnDrop<'a>(&'a AddedSources);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Resets the mark of a running controller.
pub(super) struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Marks a run as stopped.
struct StopOnDrop<'a>(&'a RunPhase);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(Phase::Stopped);
    }
}

impl<K: Resource> Clone for Controller<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K: Resource> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.inner.name)
            .field("queue", &self.inner.keys.queue)
            .finish_non_exhaustive()
    }
}
