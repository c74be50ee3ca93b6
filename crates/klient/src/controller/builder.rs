//! How a controller is set up.

use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use klient_core::{GroupKind, ObjectKey, Resource, Scope};

use super::{
    Controller, Shared,
    intake::Intake,
    metrics::Metrics,
    own_writes::OwnWrites,
    reconcile::Reconciler,
    source::{Connected, Keys, Source},
    trigger::{self, OwnerKind, Owners},
};
use crate::{
    informer::{Event, Lister},
    metrics::Registry,
    workqueue::{QueueOptions, RateLimiter, WorkQueue},
};

/// Sets up a [`Controller`].
pub struct ControllerBuilder<K: Resource> {
    name: String,
    owner: OwnerKind,
    lister: Lister<K>,
    sources: Vec<Box<dyn Connected>>,
    queue: QueueOptions<ObjectKey>,
    registry: Option<Registry>,
    options: Options,
}

/// What a controller does beyond its triggers.
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
            queue: QueueOptions::default().name(name.clone()),
            registry: None,
            options: Options {
                workers: 1,
                timeout: None,
                own_writes: Duration::from_secs(2),
                drain: Duration::from_secs(30),
            },
            name,
        }
    }

    /// Reconciles the object that controls one which changed: by group and kind of its owner reference, in whichever
    /// version. When an object changes hands, both are.
    #[must_use]
    #[doc(alias = "Owns")]
    pub fn owns<O: Resource>(self, source: impl Into<Source<O>>) -> Self {
        self.owned(source.into(), Owners::Controller)
    }

    /// Reconciles all objects that own one which changed, those that do not control it included.
    #[must_use]
    #[doc(alias = "MatchEveryOwner")]
    pub fn owns_in_part<O: Resource>(self, source: impl Into<Source<O>>) -> Self {
        self.owned(source.into(), Owners::All)
    }

    fn owned<O: Resource>(mut self, source: Source<O>, which: Owners) -> Self {
        self.sources.push(source.connect(trigger::owners(self.owner.clone(), which)));
        self
    }

    /// Reconciles whatever a function says after a change of another object: it gets old and new state.
    ///
    /// ```no_run
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use klient::controller::Controller;
    /// use klient::informer::{IndexFunc, InformerFactory};
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
        self.sources.push(source.into().connect(trigger::mapped(map)));
        self
    }

    /// Says what owner references to objects of this controller look like. To be called before [`owns`](Self::owns), and only for
    /// kinds that are known at run time: others say it themselves.
    #[must_use]
    pub fn owner_kind(mut self, kind: GroupKind, scope: Scope) -> Self {
        self.owner = OwnerKind { kind, scope };
        self
    }

    /// Sets how many keys are reconciled at once; 1 unless this is called.
    #[must_use]
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, workers: NonZeroUsize) -> Self {
        self.options.workers = workers.get();
        self
    }

    /// Sets how long a reconcile may take; as long as it likes unless this is called.
    #[must_use]
    #[doc(alias = "ReconciliationTimeout")]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// Sets how long a reconcile of a key waits until the cache shows what the last one of that key wrote; 2 s unless this is
    /// called. Zero turns the waiting off.
    #[must_use]
    pub fn wait_for_own_writes(mut self, limit: Duration) -> Self {
        self.options.own_writes = limit;
        self
    }

    /// Sets how long what is under way may take at the end; 30 s unless this is called.
    #[must_use]
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_for(mut self, limit: Duration) -> Self {
        self.options.drain = limit;
        self
    }

    /// Sets how long keys wait after a failure.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey> + 'static) -> Self {
        self.queue = self.queue.rate_limiter(limiter);
        self
    }

    /// Serves namespaces in turn, so that none waits behind all keys of another.
    #[must_use]
    pub fn fair_by_namespace(mut self) -> Self {
        self.queue = self.queue.fair_by(|key: &ObjectKey| key.namespace().map(str::to_owned));
        self
    }

    /// Sets where metrics are kept; the global registry unless this is called.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.queue = self.queue.registry(registry.clone());
        self.registry = Some(registry);
        self
    }

    /// The controller, which has this done for each key. It does nothing until it is run.
    #[doc(alias = "Complete")]
    pub fn reconcile(self, reconciler: impl Reconciler<K>) -> Controller<K> {
        let registry = self.registry.as_ref().unwrap_or_else(|| Registry::global());
        let metrics = Metrics::new(registry, &self.name, self.options.workers);
        let intake = Intake::new(WorkQueue::with_options(self.queue), metrics.filtered.clone());
        Controller {
            shared: Arc::new(Shared {
                name: self.name.into(),
                lister: self.lister,
                sources: self.sources,
                intake: Arc::new(intake),
                reconciler: Box::new(reconciler),
                own_writes: OwnWrites::new(),
                metrics,
                options: self.options,
            }),
        }
    }
}

impl<K: Resource> fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("sources", &self.sources.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
