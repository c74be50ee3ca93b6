//! `Fleet`: runs controllers for each cluster of a set.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use klient_core::Resource;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    Cluster, ClusterSet,
    set::{Member, Members},
};
use crate::{
    Error,
    controller::{Controller, HistoryLimits, Permit},
    informer::{InformerState, InformerStatus, narrow::SlotSet},
    manager::{AnyController, BoxFuture, Inspect, Part, Stop},
    recording::Recorder,
    shard::{Board, Slot},
    workqueue::QueueStats,
};

/// Controllers for each cluster of a set. Clones are handles to the same fleet.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::cluster::{Cluster, ClusterSet, Fleet};
/// use klient::controller::{Outcome, Request};
/// use klient::{Api, Controller, Manager};
///
/// async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
///     println!("{} of cluster {}", request.key(), request.cluster());
///     Ok(Outcome::Done)
/// }
///
/// # async fn run(clusters: ClusterSet) -> Result<(), klient::Error> {
/// let fleet = Fleet::builder("maps", &clusters)
///     .controller(|cluster: &Cluster| {
///         Controller::builder("maps", Api::<ConfigMap>::all(cluster.client())).cluster(cluster.name()).reconcile(reconcile)
///     })
///     .build();
/// Manager::builder().fleet(&fleet).build().await?.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fleet {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    set: ClusterSet,
    factories: Vec<Factory>,
    running: Mutex<BTreeMap<Arc<str>, Running>>,
    changed: watch::Sender<u64>,
    history: OnceLock<HistoryLimits>,
}

/// A function that builds a controller for a cluster.
type Factory = Box<dyn Fn(&Cluster) -> Arc<dyn AnyController> + Send + Sync>;

/// A builder of a [`Fleet`]; see [`Fleet::builder`].
pub struct FleetBuilder {
    name: String,
    set: ClusterSet,
    factories: Vec<Factory>,
}

/// A cluster of a running fleet.
struct Running {
    fingerprint: u64,
    controllers: Vec<Arc<dyn AnyController>>,
    /// Ends the controllers when it is sent or dropped.
    stop: Option<watch::Sender<bool>>,
    problem: Option<String>,
}

/// The status of one cluster of a fleet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// The state of the cluster.
    pub state: ClusterState,
    /// The last failure, if the cluster is not synced.
    pub problem: Option<String>,
    /// The status of the informers of all controllers.
    pub informers: Vec<InformerStatus>,
    /// The number of keys that are ready, delayed and in process, of all controllers.
    pub queue: QueueStats,
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterState {
    /// All caches follow their server.
    Synced,
    /// The first lists are not complete.
    Starting,
    /// The server cannot be reached, denies access or lacks a kind, or the kubeconfig is invalid.
    Failing,
    /// The cluster has left the set, and its reconciles end.
    Stopping,
}

impl Fleet {
    /// Returns a builder of a fleet. The name is for health checks and logs.
    pub fn builder(name: impl Into<String>, clusters: &ClusterSet) -> FleetBuilder {
        FleetBuilder { name: name.into(), set: clusters.clone(), factories: Vec::new() }
    }

    /// Returns the name of the fleet.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the current status of each cluster, by name.
    pub fn status(&self) -> BTreeMap<String, ClusterStatus> {
        self.inner.lock().iter().map(|(name, running)| (name.to_string(), running.status())).collect()
    }

    /// Runs controllers for each cluster of the set until the signal is ready, and then stops all of them.
    ///
    /// A cluster that cannot be reached, or whose controllers fail, is retried, and shows in the [status](Self::status). No failure of
    /// a cluster ends the fleet.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciles.
    pub async fn run_until(&self, signal: impl Future<Output = ()>) {
        self.run_permitted(signal, Permit::default()).await;
    }

    pub(crate) async fn run_permitted(&self, signal: impl Future<Output = ()>, permit: Permit) {
        let inner = &self.inner;
        let _feeding = inner.set.source.as_ref().map(|source| source.begin(&inner.set.members));
        let mut members = inner.set.members.subscribe();
        let mut tasks: JoinSet<(Arc<str>, u64)> = JoinSet::new();
        tokio::pin!(signal);
        loop {
            let wanted = members.borrow_and_update().clone();
            self.stop_unwanted(&wanted);
            self.start_wanted(&wanted, &mut tasks, &permit);
            inner.changed.send_modify(|number| *number = number.wrapping_add(1));
            tokio::select! {
                biased;
                () = &mut signal => break,
                _ = members.changed() => {}
                Some(Ok((name, fingerprint))) = tasks.join_next(), if !tasks.is_empty() => {
                    let mut running = inner.lock();
                    // Only the present one: a cluster that was replaced has a successor.
                    if running.get(&name).is_some_and(|ended| ended.fingerprint == fingerprint) {
                        running.remove(&name);
                    }
                }
            }
        }
        self.stop_unwanted(&Members::new());
        while tasks.join_next().await.is_some() {}
        inner.lock().clear();
    }

    /// Tells clusters to stop that are not wanted, or wanted with another client.
    fn stop_unwanted(&self, wanted: &Members) {
        let mut clusters = self.inner.lock();
        clusters.retain(|name, running| {
            let is_wanted = wanted.get(name).is_some_and(|member| {
                member.fingerprint == running.fingerprint && member.cluster.as_ref().err() == running.problem.as_ref()
            });
            if !is_wanted && let Some(stop) = running.stop.take() {
                tracing::info!(fleet = self.inner.name, cluster = &**name, "stopping the controllers of a cluster");
                stop.send_replace(true);
            }
            // One that was never started has nothing to wait for.
            is_wanted || !running.controllers.is_empty()
        });
    }

    fn start_wanted(&self, wanted: &Members, tasks: &mut JoinSet<(Arc<str>, u64)>, permit: &Permit) {
        let mut clusters = self.inner.lock();
        for (name, Member { fingerprint, cluster }) in wanted {
            // A cluster that is replaced starts again when its predecessor has ended: one key is never reconciled twice at once.
            if clusters.contains_key(name) {
                continue;
            }
            let fingerprint = *fingerprint;
            let mut running = Running { fingerprint, controllers: Vec::new(), stop: None, problem: None };
            match cluster {
                Err(problem) => running.problem = Some(problem.clone()),
                Ok(cluster) => {
                    running.controllers = self.inner.factories.iter().map(|factory| factory(cluster)).collect();
                    if let Some(limits) = self.inner.history.get() {
                        running.controllers.iter().for_each(|part| part.record_history(*limits));
                    }
                    let (stop, requested) = watch::channel(false);
                    let task = run_cluster(running.controllers.clone(), requested, permit.clone());
                    let name = Arc::clone(name);
                    tasks.spawn(async move {
                        task.await;
                        (name, fingerprint)
                    });
                    running.stop = Some(stop);
                }
            }
            clusters.insert(Arc::clone(name), running);
        }
    }

    /// Waits until a condition of the status holds, which is checked every 100 ms and after each change of the set.
    pub async fn wait_until(&self, holds: impl Fn(&BTreeMap<String, ClusterStatus>) -> bool) {
        let mut changes = self.inner.changed.subscribe();
        while !holds(&self.status()) {
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(Duration::from_millis(100)) => {}
            }
        }
    }

    /// Returns the state of the fleet in words, for health checks.
    pub(crate) fn note(&self) -> String {
        let status = self.status();
        let synced = status.values().filter(|cluster| cluster.state == ClusterState::Synced).count();
        let mut note = format!("{synced} of {} clusters synced", status.len());
        for (name, cluster) in status.iter().filter(|(_, cluster)| cluster.state == ClusterState::Failing).take(5) {
            let problem = cluster.problem.as_deref().unwrap_or("not synced");
            note = format!("{note}, {name}: {problem}");
        }
        note
    }
}

/// Runs the controllers of one cluster until they are told to stop. If one of them fails, all stop, and the cluster starts again.
async fn run_cluster(controllers: Vec<Arc<dyn AnyController>>, mut requested: watch::Receiver<bool>, permit: Permit) {
    let (stopping, stop) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for controller in &controllers {
        tasks.spawn(Arc::clone(controller).run(Stop::new(stop.clone()), permit.clone()));
    }
    let mut has_failed = false;
    while !tasks.is_empty() {
        tokio::select! {
            // An error means that the fleet was dropped.
            _ = requested.wait_for(|requested| *requested), if !*stop.borrow() => drop(stopping.send_replace(true)),
            Some(ended) = tasks.join_next() => {
                if let Ok(Err(error)) = ended {
                    tracing::warn!(%error, "controller of a cluster failed, starting the cluster again");
                }
                has_failed |= !*stop.borrow();
                stopping.send_replace(true);
            }
        }
    }
    if has_failed {
        tokio::select! {
            _ = requested.wait_for(|requested| *requested) => {}
            () = sleep(RESTART_DELAY) => {}
        }
    }
}

impl Running {
    fn status(&self) -> ClusterStatus {
        let informers: Vec<InformerStatus> = self.controllers.iter().flat_map(|part| part.informers()).collect();
        let is_bad = |informer: &&InformerStatus| {
            let is_down = matches!(
                informer.state,
                InformerState::Denied | InformerState::NotServed | InformerState::Stale { .. } | InformerState::Stopped
            );
            is_down || (informer.state == InformerState::Syncing && informer.last_error.is_some())
        };
        let bad = informers.iter().find(is_bad);
        let state = if self.problem.is_some() || bad.is_some() {
            ClusterState::Failing
        } else if self.stop.is_none() {
            ClusterState::Stopping
        } else if informers.iter().all(|informer| informer.state == InformerState::Synced) {
            ClusterState::Synced
        } else {
            ClusterState::Starting
        };
        let mut queue = QueueStats::default();
        for stats in self.controllers.iter().filter_map(|part| part.queue()) {
            queue.ready += stats.ready;
            queue.delayed += stats.delayed;
            queue.in_process += stats.in_process;
            queue.oldest = queue.oldest.max(stats.oldest);
            queue.longest_in_process = queue.longest_in_process.max(stats.longest_in_process);
        }
        let of_informer =
            bad.map(|bad| format!("{}: {}", bad.resource, bad.last_error.as_deref().unwrap_or("not synced")));
        ClusterStatus { state, problem: self.problem.clone().or(of_informer), informers, queue }
    }
}

impl Part for Fleet {
    fn name(&self) -> String {
        format!("fleet-{}", self.inner.name)
    }

    /// None: a cluster that fails must not make the process unready, which works for the others.
    fn informers(&self) -> Vec<InformerStatus> {
        Vec::new()
    }

    fn queue(&self) -> Option<QueueStats> {
        None
    }

    /// Recordings have no clusters: the keys of different ones would mix.
    fn record(&self, _recorder: &Recorder) {
        tracing::warn!(fleet = self.inner.name, "controllers of several clusters are not recorded");
    }
}

impl AnyController for Fleet {
    fn record_history(&self, limits: HistoryLimits) {
        if self.inner.history.set(limits).is_ok() {
            let running = self.inner.lock();
            running.values().flat_map(|cluster| &cluster.controllers).for_each(|part| part.record_history(limits));
        }
    }

    fn inspected(self: Arc<Self>) -> Vec<Arc<dyn Inspect>> {
        let running = self.inner.lock();
        let controllers = running.values().flat_map(|cluster| cluster.controllers.iter().cloned());
        controllers.flat_map(AnyController::inspected).collect()
    }

    fn start_informers(&self) {}

    fn run(self: Arc<Self>, stop: Stop, permit: Permit) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            self.run_permitted(stop.requested(), permit).await;
            Ok(())
        })
    }

    fn shard_key(&self) -> Option<String> {
        None
    }

    fn narrow(&self, _board: &Arc<Board>) -> Result<(), Error> {
        Ok(())
    }

    fn hold(&self, _slots: SlotSet) {}

    fn fill(&self, _slots: SlotSet) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn awaited(&self, _slots: SlotSet) -> Option<String> {
        None
    }

    fn share(&self, _board: &Arc<Board>) {}

    fn gained(&self, _slots: &[Slot]) {}

    fn catch_up<'a>(&'a self, _wrote: &'a BTreeMap<String, u64>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FleetBuilder {
    /// Adds a controller for each cluster. The function builds it when the cluster joins, from the client of that cluster, and should set
    /// its [name](crate::controller::ControllerBuilder::cluster).
    #[must_use]
    pub fn controller<K: Resource>(
        mut self,
        build: impl Fn(&Cluster) -> Controller<K> + Send + Sync + 'static,
    ) -> Self {
        self.factories.push(Box::new(move |cluster| Arc::new(build(cluster))));
        self
    }

    /// Builds the fleet, which does nothing until it runs.
    pub fn build(self) -> Fleet {
        let Self { name, set, factories } = self;
        let inner = Inner {
            name,
            set,
            factories,
            running: Mutex::default(),
            changed: watch::Sender::new(0),
            history: OnceLock::new(),
        };
        Fleet { inner: Arc::new(inner) }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("name", &self.inner.name)
            .field("clusters", &self.inner.set)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FleetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a cluster waits before it starts again after a failure of a controller.
const RESTART_DELAY: Duration = Duration::from_secs(5);
