//! The builder of a controller.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use futures_core::Stream;

use klient_core::{GroupKind, ObjectKey, Resource, Scope};

use super::{
    Controller, ControllerInner,
    added::AddedSources,
    history::HistoryLimits,
    key_queue::KeyQueue,
    metrics::Metrics,
    own_writes::OwnWrites,
    reconcile::{Outcome, Reconciler, Request, Retry},
    run::RunPhase,
    source::{AnySource, KeyStream, Keys, Source},
    trigger::{self, OwnerKind, Owners},
};
use crate::{
    BoxError,
    informer::{Event, Lister},
    metrics::Registry,
    workqueue::{QueueOptions, RateLimiter, WorkQueue},
};

/// A builder of a [`Controller`]; see [`Controller::builder`].
#[doc(alias = "Builder")]
#[doc(alias = "NewControllerManagedBy")]
pub struct ControllerBuilder<K: Resource> {
    name: String,
    owner: OwnerKind,
    lister: Lister<K>,
    sources: Vec<Box<dyn AnySource>>,
    streams: Vec<KeyStream>,
    on_error: Option<OnError>,
    queue: QueueOptions<ObjectKey>,
    registry: Option<Registry>,
    history: Option<HistoryLimits>,
    options: Options,
    cluster: Option<Arc<str>>,
    #[cfg(feature = "client")]
    pub(super) shard_key: Option<Arc<crate::shard::ShardKey<K>>>,
    #[cfg(feature = "client")]
    pub(super) caches_own_shard: bool,
}

/// A function that decides about retries.
pub(super) type OnError = Box<dyn Fn(&(dyn std::error::Error + Send + Sync + 'static), u32) -> Retry + Send + Sync>;

/// The limits of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) workers: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) own_writes: Duration,
    pub(super) drain: Duration,
}

impl<K: Resource> ControllerBuilder<K> {
    pub(super) fn new(name: impl Into<String>, source: Source<K>) -> Self {
        let name = name.into();
        Self {
            owner: OwnerKind::of::<K>(),
            lister: source.informer.lister(),
            sources: vec![source.connect(trigger::itself())],
            streams: Vec::new(),
            on_error: None,
            queue: QueueOptions::default().name(name.clone()),
            registry: None,
            history: None,
            options: Options {
                workers: 1,
                timeout: None,
                own_writes: Duration::from_secs(2),
                drain: Duration::from_secs(30),
            },
            cluster: None,
            #[cfg(feature = "client")]
            shard_key: None,
            #[cfg(feature = "client")]
            caches_own_shard: false,
            name,
        }
    }

    /// Reconciles the controlling owner of each changed object. Owner references are matched by group and kind, in any version.
    /// When an object gets another owner, both owners are reconciled.
    ///
    /// ```no_run
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use klient::{Api, Client, Controller};
    ///
    /// # fn set_up(client: Client) {
    /// let deployments: Api<Deployment> = Api::all(client.clone());
    /// let controller = Controller::builder("rollouts", deployments).owns(Api::<ConfigMap>::all(client));
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "Owns")]
    pub fn owns<O: Resource>(self, source: impl Into<Source<O>>) -> Self {
        self.owned(source.into(), Owners::Controller)
    }

    /// Reconciles all owners of each changed object, including those that do not control it.
    #[must_use]
    #[doc(alias = "MatchEveryOwner")]
    pub fn owns_any<O: Resource>(self, source: impl Into<Source<O>>) -> Self {
        self.owned(source.into(), Owners::All)
    }

    fn owned<O: Resource>(mut self, source: Source<O>, which: Owners) -> Self {
        self.sources.push(source.connect(trigger::owners(self.owner.clone(), which)));
        self
    }

    /// Reconciles the keys that a function returns for each event of another kind. The function receives the event, with old
    /// and new state, and adds keys.
    ///
    /// ```no_run
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use klient::{Controller, InformerFactory, informer::IndexFunc};
    ///
    /// # fn set_up(factory: InformerFactory) -> Result<(), klient::Error> {
    /// let deployments = factory.apps_v1().deployments();
    /// let by_config = deployments.add_index("config", IndexFunc::label("shop.example.com/config"))?;
    /// let controller = Controller::builder("rollouts", deployments).watches(
    ///     factory.core_v1().config_maps(),
    ///     move |event, keys| {
    ///         for deployment in &by_config.get(event.key().name()) {
    ///             keys.add(deployment.key().clone());
    ///         }
    ///     },
    /// );
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "Watches")]
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    pub fn watches<O: Resource>(
        mut self,
        source: impl Into<Source<O>>,
        map: impl Fn(&Event<O>, &mut Keys<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(source.into().connect(Arc::new(map)));
        self
    }

    /// Reconciles each key of a stream: of webhooks, timers or systems outside Kubernetes.
    ///
    /// The name appears in the [reasons](super::Reason::source). The stream is read while the controller runs. When it ends,
    /// the controller runs on.
    ///
    /// ```no_run
    /// use futures_core::Stream;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Controller, ObjectKey};
    ///
    /// # fn set_up(maps: Api<ConfigMap>, pushes: impl Stream<Item = ObjectKey> + Send + 'static) {
    /// let controller = Controller::builder("repositories", maps).keys_from("git-webhook", pushes);
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "WatchesRawSource")]
    #[doc(alias = "reconcile_on")]
    pub fn keys_from(mut self, name: &str, keys: impl Stream<Item = ObjectKey> + Send + 'static) -> Self {
        self.streams.push(KeyStream::new(name, keys));
        self
    }

    /// Sets the kind that owner references to this controller's objects have. Only dynamic kinds need it, before
    /// [`owns`](Self::owns).
    #[must_use]
    pub fn owner_kind(mut self, kind: GroupKind, scope: Scope) -> Self {
        self.owner = OwnerKind { kind, scope };
        self
    }

    /// Sets the name of the cluster that the objects are in, for programs with several. It is part of each
    /// [request](Request::cluster).
    #[must_use]
    #[doc(alias = "ClusterName")]
    pub fn cluster(mut self, name: impl Into<Arc<str>>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Sets how many keys are reconciled at the same time; 1 by default. 0 counts as 1.
    #[must_use]
    #[doc(alias = "MaxConcurrentReconciles")]
    #[doc(alias = "concurrency")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Sets a timeout for each reconcile; none by default. A reconcile that times out is dropped, and retried.
    #[must_use]
    #[doc(alias = "ReconciliationTimeout")]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// Sets how long a reconcile waits until the cache shows the writes of the last reconcile of the same key; 2 s by default.
    /// Zero disables the wait.
    #[must_use]
    pub fn wait_for_own_writes(mut self, limit: Duration) -> Self {
        self.options.own_writes = limit;
        self
    }

    /// Sets how long reconciles may go on after the shutdown signal; 30 s by default.
    #[must_use]
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_for(mut self, limit: Duration) -> Self {
        self.options.drain = limit;
        self
    }

    /// Sets when a key is retried after an error of its reconciler. By default, the
    /// [rate limiter](Self::rate_limiter) chooses the delay.
    ///
    /// The function receives the error and the number of consecutive failures, this one included. It is not called for
    /// [`Terminal`](super::Terminal) errors, which are not retried, nor for panics and timeouts, which are retried with backoff.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Controller, controller::Retry};
    ///
    /// # fn set_up(maps: Api<ConfigMap>) {
    /// let controller = Controller::builder("maps", maps).on_error(|error, failures| {
    ///     match error.downcast_ref::<klient::Error>().and_then(|error| error.retry_after()) {
    ///         Some(delay) => Retry::After(delay),
    ///         None if failures > 20 => Retry::Never,
    ///         None => Retry::Backoff,
    ///     }
    /// });
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "error_policy")]
    pub fn on_error(
        mut self,
        decide: impl Fn(&(dyn std::error::Error + Send + Sync + 'static), u32) -> Retry + Send + Sync + 'static,
    ) -> Self {
        self.on_error = Some(Box::new(decide));
        self
    }

    /// Sets how long keys wait after a failure; exponential backoff by default.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey> + 'static) -> Self {
        self.queue = self.queue.rate_limiter(limiter);
        self
    }

    /// Serves namespaces in turn, so that no namespace waits behind all keys of another.
    #[must_use]
    pub fn fair_by_namespace(mut self) -> Self {
        self.queue = self.queue.fair_by(|key: &ObjectKey| key.namespace().map(str::to_owned));
        self
    }

    /// Sets the registry for metrics; the global registry by default.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.queue = self.queue.registry(registry.clone());
        self.registry = Some(registry);
        self
    }

    /// Records recent turns and ignored events of each key, so that [`Controller::explain`] knows them. Off by default; a manager
    /// with a [debug page](crate::manager::ManagerBuilder::debug) turns it on.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Controller, controller::HistoryLimits};
    ///
    /// # fn set_up(maps: Api<ConfigMap>) {
    /// let controller = Controller::builder("maps", maps).history(HistoryLimits::default());
    /// # }
    /// ```
    #[must_use]
    pub fn history(mut self, limits: HistoryLimits) -> Self {
        self.history = Some(limits);
        self
    }

    /// Builds the controller with a reconciler: a function of a [`Request`], or a type that implements [`Reconciler`].
    ///
    /// The controller does nothing until it [runs](Controller::run_until).
    #[doc(alias = "Complete")]
    pub fn reconcile(self, reconciler: impl Reconciler<K>) -> Controller<K> {
        let registry = self.registry.as_ref().unwrap_or_else(|| Registry::global());
        let metrics = Metrics::new(registry, &self.name, self.options.workers);
        let keys = KeyQueue::new(WorkQueue::with_options(self.queue));
        if let Some(limits) = self.history {
            keys.record(limits);
        }
        Controller {
            inner: Arc::new(ControllerInner {
                name: self.name.into(),
                lister: self.lister,
                sources: self.sources,
                streams: Mutex::new(self.streams),
                keys: Arc::new(keys),
                reconciler: Box::new(reconciler),
                on_error: self.on_error,
                is_running: AtomicBool::new(false),
                phase: RunPhase::default(),
                own_writes: OwnWrites::new(),
                recorder: OnceLock::new(),
                metrics,
                options: self.options,
                added: AddedSources::default(),
                owner: self.owner,
                cluster: self.cluster,
                #[cfg(feature = "client")]
                shard_key: self.shard_key,
                #[cfg(feature = "client")]
                caches_own_shard: self.caches_own_shard,
                #[cfg(feature = "client")]
                narrow: OnceLock::new(),
            }),
        }
    }

    /// Builds the controller with a function of a [`Request`] and a context that all reconciles share.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Client, Controller, controller::{Outcome, Request}};
    ///
    /// struct Context {
    ///     client: Client,
    /// }
    ///
    /// async fn reconcile(request: Request<ConfigMap>, context: Arc<Context>) -> Result<Outcome, klient::Error> {
    ///     let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), request.namespace());
    ///     // ...
    ///     Ok(Outcome::Done)
    /// }
    ///
    /// # fn set_up(client: Client) {
    /// let maps: Api<ConfigMap> = Api::all(client.clone());
    /// let controller = Controller::builder("maps", maps).reconcile_with(Arc::new(Context { client }), reconcile);
    /// # }
    /// ```
    #[doc(alias = "Complete")]
    pub fn reconcile_with<C, R, E>(
        self,
        context: Arc<C>,
        reconciler: impl Fn(Request<K>, Arc<C>) -> R + Send + Sync + 'static,
    ) -> Controller<K>
    where
        C: Send + Sync + 'static,
        R: Future<Output = Result<Outcome, E>> + Send,
        E: Into<BoxError> + Send,
    {
        self.reconcile(move |request: Request<K>| reconciler(request, Arc::clone(&context)))
    }
}

impl<K: Resource> fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("sources", &(self.sources.len() + self.streams.len()))
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
