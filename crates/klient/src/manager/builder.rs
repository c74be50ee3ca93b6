//! The builder of a manager.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use klient_core::Resource;
use tokio::net::TcpListener;

use super::{
    DebugPage, Manager, Stop,
    debug::Debug,
    health::{self, Check, Limits},
    part::{AnyController, AnyElector, AnyInformer, Part, Task},
    route::Route,
    serve::Endpoints,
    sharding,
};
use crate::{
    BoxError, Error, ErrorKind,
    cluster::Fleet,
    controller::Controller,
    election::{LeaderElector, LeaderLock},
    informer::SharedInformer,
    metrics::Registry,
    recording::Recorder,
    shard::Shards,
};

/// A builder of a [`Manager`]; see [`Manager::builder`].
pub struct ManagerBuilder {
    informers: Vec<Arc<dyn AnyInformer>>,
    controllers: Vec<Arc<dyn AnyController>>,
    tasks: Vec<Task>,
    elector: Option<Arc<dyn AnyElector>>,
    shards: Option<Shards>,
    liveness: Vec<Check>,
    readiness: Vec<Check>,
    address: Option<SocketAddr>,
    routes: Vec<Route>,
    registry: Option<Registry>,
    debug: Option<DebugPage>,
    recorder: Option<Recorder>,
    limits: Limits,
    drain: Duration,
}

impl Default for ManagerBuilder {
    fn default() -> Self {
        Self {
            informers: Vec::new(),
            controllers: Vec::new(),
            tasks: Vec::new(),
            elector: None,
            shards: None,
            liveness: Vec::new(),
            readiness: Vec::new(),
            address: None,
            routes: Vec::new(),
            registry: None,
            debug: None,
            recorder: None,
            limits: Limits { stale: Duration::from_secs(90), queue_age: Duration::from_secs(300), stuck: None },
            drain: Duration::from_secs(30),
        }
    }
}

impl ManagerBuilder {
    /// Adds a controller. Its informers start before leaders are elected, so that the caches of a standby are complete when it
    /// begins to lead, and a standby can be ready.
    #[doc(alias = "Add")]
    #[must_use]
    pub fn controller<K: Resource>(mut self, controller: Controller<K>) -> Self {
        self.controllers.push(Arc::new(controller));
        self
    }

    /// Adds controllers for several clusters. They run like controllers: while this process leads, if leaders are elected.
    /// `/readyz?verbose` shows the state of the clusters; a cluster that fails leaves the process ready.
    #[must_use]
    pub fn fleet(mut self, fleet: &Fleet) -> Self {
        let noted = fleet.clone();
        self.readiness.push(Check::note(format!("clusters-{}", fleet.name()), move || noted.note()));
        self.controllers.push(Arc::new(fleet.clone()));
        self
    }

    /// Adds an informer. It starts before all controllers, so that its cache is complete when this process begins to lead, and
    /// stops after them.
    #[must_use]
    pub fn informer<K: Resource>(mut self, informer: &SharedInformer<K>) -> Self {
        self.informers.push(Arc::new(informer.clone()));
        self
    }

    /// Adds a task that runs whether this process leads or not, until it has to stop: an event sink, for example. If it fails,
    /// the manager stops.
    ///
    /// ```no_run
    /// use klient::{Client, Manager, events::{EventOptions, EventRecorder}};
    ///
    /// # fn set_up(client: Client) {
    /// let (recorder, sink) = EventRecorder::new(client, EventOptions::new("shop.example.com/websites"));
    /// let builder = Manager::builder().task("events", async move |stop| {
    ///     sink.run_until(stop.requested()).await;
    ///     Ok::<(), klient::Error>(())
    /// });
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "Runnable")]
    pub fn task<R, E>(mut self, name: impl Into<String>, run: impl FnOnce(Stop) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let run = move |stop| {
            let future = run(stop);
            Box::pin(async move { future.await.map_err(Into::into) }) as super::part::BoxFuture<'static, _>
        };
        self.tasks.push(Task { name: name.into(), run: Box::new(run) });
        self
    }

    /// Runs controllers only while this process leads. Informers run on a standby as well, and `/readyz?verbose` says whether this
    /// process leads.
    #[must_use]
    #[doc(alias = "LeaderElection")]
    pub fn elected_by<L: LeaderLock + 'static>(mut self, elector: LeaderElector<L>) -> Self {
        self.elector = Some(Arc::new(elector));
        self
    }

    /// Shares the keys of [sharded](crate::controller::ControllerBuilder::sharded) controllers among the replicas of a group. They run on
    /// every replica, also beside controllers that run only while this process [leads](Self::elected_by). `/readyz?verbose`
    /// shows the share of this replica.
    ///
    /// When the manager stops, it hands its keys to other replicas first.
    #[must_use]
    pub fn shards(mut self, shards: Shards) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` over HTTP on this address. By default, nothing is served.
    #[must_use]
    #[doc(alias = "HealthProbeBindAddress")]
    #[doc(alias = "BindAddress")]
    pub fn serve(mut self, address: impl Into<SocketAddr>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Serves a path of the program's own on the same address, for all HTTP methods.
    ///
    /// A path that ends with a slash matches all paths below it. Of several routes that match, the longest path wins. Bodies of
    /// requests are limited to 4 MiB.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use klient::Manager;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), klient::Error> {
    /// let manager = Manager::builder()
    ///     .serve(([127, 0, 0, 1], 0))
    ///     .route("/version", |request: Request<_>| async move { Response::new(format!("1.2.3 {}", request.method())) })
    ///     .build()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "AddMetricsServerExtraHandler")]
    pub fn route<R, B>(
        mut self,
        path: impl Into<String>,
        handler: impl Fn(Request<Bytes>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        self.routes.push(Route::new(path.into(), handler));
        self
    }

    /// Serves a live page about controllers, informers and keys on `/debug/klient`, and turns on the
    /// [history](crate::controller::ControllerBuilder::history) of all controllers. Off by default.
    ///
    /// ```
    /// use klient::{Manager, manager::DebugPage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), klient::Error> {
    /// let manager = Manager::builder().serve(([127, 0, 0, 1], 0)).debug(DebugPage::local()).build().await?;
    /// println!("http://{}/debug/klient", manager.address().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn debug(mut self, page: DebugPage) -> Self {
        self.debug = Some(page);
        self
    }

    /// Sets the registry of the metrics that are served; the global registry by default.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Records what the controllers and informers of this manager see and do; see [`recording`](crate::recording).
    #[must_use]
    pub fn recorder(mut self, recorder: &Recorder) -> Self {
        self.recorder = Some(recorder.clone());
        self
    }

    /// Adds a check to `/readyz`. Its error says what is wrong.
    #[must_use]
    #[doc(alias = "AddReadyzCheck")]
    pub fn ready_if(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.readiness.push(Check::new(name, check));
        self
    }

    /// Adds a check to `/healthz`. Its error says what only a restart of the process can fix.
    #[must_use]
    #[doc(alias = "AddHealthzCheck")]
    pub fn alive_if(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.liveness.push(Check::new(name, check));
        self
    }

    /// Sets how long a cache may be without contact to the server before the process is not ready; 90 s by default.
    #[must_use]
    pub fn max_stale(mut self, limit: Duration) -> Self {
        self.limits.stale = limit;
        self
    }

    /// Sets how long a key may wait for a worker before the process is not ready; 5 min by default.
    #[must_use]
    pub fn max_queue_age(mut self, limit: Duration) -> Self {
        self.limits.queue_age = limit;
        self
    }

    /// Sets how long a reconcile may run before the process is not alive; no limit by default.
    #[must_use]
    pub fn max_reconcile(mut self, limit: Duration) -> Self {
        self.limits.stuck = Some(limit);
        self
    }

    /// Sets how long tasks may take to stop, and then informers with the handlers that they call; 30 s each by default.
    /// Controllers have their own limits.
    #[must_use]
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_for(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Builds the manager. It listens on its address from now on, and runs nothing yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the manager cannot listen on the address, if two parts have the same name, if a route is invalid, if there is a
    /// debug page and no address, or if a sharded controller has no shards.
    pub async fn build(mut self) -> Result<Manager, Error> {
        Route::check(&self.routes, self.address.is_some())?;
        if self.debug.is_some() && self.address.is_none() {
            return Err(Error::new(ErrorKind::Config, "cannot serve the debug page: call `serve` with an address"));
        }
        let listener = match self.address {
            None => None,
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                Error::new(ErrorKind::Transport, format!("cannot listen on {address} for health and metrics"))
                    .with_source(error)
            })?),
        };
        for part in &self.informers {
            let mut check = health::readiness(&(Arc::clone(part) as Arc<dyn Part>), self.limits);
            // Several informers may have the same resource, of different namespaces for example.
            let same_name = |name: &str| self.readiness.iter().filter(|check| check.name.starts_with(name)).count();
            match same_name(&check.name) {
                0 => {}
                others => check.name = format!("{}-{}", check.name, others + 1),
            }
            self.readiness.push(check);
        }
        for part in &self.controllers {
            let part = Arc::clone(part) as Arc<dyn Part>;
            self.readiness.push(health::readiness(&part, self.limits));
            self.liveness.extend(health::liveness(&part, self.limits));
        }
        if let Some(elector) = &self.elector {
            let candidate = Arc::clone(elector);
            self.readiness.push(Check::note("leader-election", move || candidate.standing()));
            let elector = Arc::clone(elector);
            self.liveness
                .push(Check::new("leader-election", move || elector.check().map_err(|error| error.to_string())));
        }
        if let Some(recorder) = &self.recorder {
            self.informers.iter().for_each(|part| part.record(recorder));
            self.controllers.iter().for_each(|part| part.record(recorder));
        }
        sharding::prepare(&self.controllers, self.shards.as_ref())?;
        if let Some(shards) = self.shards.clone() {
            self.readiness.push(Check::note("shards", move || shards.status().to_string()));
        }
        unique(&self.readiness)?;
        unique(&self.liveness)?;
        let registry = self.registry.unwrap_or_else(|| Registry::global().clone());
        let debug = self.debug.map(|page| {
            self.controllers.iter().for_each(|controller| controller.record_history(page.history));
            Debug::new(page, &self.controllers, &self.informers, self.elector.as_ref(), self.shards.as_ref(), &registry)
        });
        let endpoints =
            Endpoints { debug, liveness: self.liveness, readiness: self.readiness, registry, routes: self.routes };
        Ok(Manager {
            informers: self.informers,
            controllers: self.controllers,
            tasks: self.tasks,
            elector: self.elector,
            shards: self.shards,
            listener,
            endpoints: Arc::new(endpoints),
            drain: self.drain,
        })
    }
}

fn unique(checks: &[Check]) -> Result<(), Error> {
    for (index, check) in checks.iter().enumerate() {
        if checks[..index].iter().any(|other| other.name == check.name) {
            let message = format!("two parts of the manager are named {:?}: use different names", check.name);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(())
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder").field("controllers", &self.controllers.len()).finish_non_exhaustive()
    }
}
