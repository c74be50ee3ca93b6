//! How a manager is set up.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use klient_core::Resource;
use tokio::net::TcpListener;

use super::{
    Manager, Stop,
    health::{self, Check, Limits},
    part::{AnyController, AnyElector, AnyInformer, Part, Task},
    serve::Pages,
};
use crate::{
    BoxError, Error, ErrorKind,
    controller::Controller,
    election::{LeaderElector, LeaderLock},
    informer::SharedInformer,
    metrics::Registry,
};

/// Sets up a [`Manager`].
pub struct ManagerBuilder {
    informers: Vec<Arc<dyn AnyInformer>>,
    controllers: Vec<Arc<dyn AnyController>>,
    tasks: Vec<Task>,
    elector: Option<Arc<dyn AnyElector>>,
    liveness: Vec<Check>,
    readiness: Vec<Check>,
    address: Option<SocketAddr>,
    registry: Option<Registry>,
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
            liveness: Vec::new(),
            readiness: Vec::new(),
            address: None,
            registry: None,
            limits: Limits { stale: Duration::from_secs(90), queue_age: Duration::from_secs(300), stuck: None },
            drain: Duration::from_secs(30),
        }
    }
}

impl ManagerBuilder {
    /// Runs a controller; with those of its informers that nobody else has started.
    #[must_use]
    pub fn controller<K: Resource>(mut self, controller: Controller<K>) -> Self {
        self.controllers.push(Arc::new(controller));
        self
    }

    /// Starts an informer before anything else, so that its cache is warm when this process begins to lead, and stops it after everything else.
    #[must_use]
    pub fn informer<K: Resource>(mut self, informer: &SharedInformer<K>) -> Self {
        self.informers.push(Arc::new(informer.clone()));
        self
    }

    /// Runs something else, whether this process leads or not, until it is asked to stop: what sends events, say. If it fails,
    /// everything ends.
    ///
    /// ```no_run
    /// use klient::Client;
    /// use klient::events::{EventOptions, EventRecorder};
    /// use klient::manager::Manager;
    ///
    /// # fn set_up(client: Client) {
    /// let (recorder, sink) = EventRecorder::new(client, EventOptions::new("shop.example.com/websites"));
    /// let builder = Manager::builder().task("events", async move |stop| {
    ///     sink.run_until(stop.asked()).await;
    ///     Ok::<(), klient::Error>(())
    /// });
    /// # }
    /// ```
    #[must_use]
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

    /// Runs controllers only while this process leads.
    #[must_use]
    pub fn elected_by<L: LeaderLock + 'static>(mut self, elector: LeaderElector<L>) -> Self {
        self.elector = Some(Arc::new(elector));
        self
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` over HTTP. Without it nothing is served.
    #[must_use]
    pub fn serve(mut self, address: impl Into<SocketAddr>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets which metrics are served; the global registry's unless this is called.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Adds a check of one's own to `/readyz`: its outcome says what is wrong.
    #[must_use]
    pub fn ready_if(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.readiness.push(Check::new(name, check));
        self
    }

    /// Adds a check of one's own to `/healthz`: its outcome says what only another process can mend.
    #[must_use]
    pub fn alive_if(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.liveness.push(Check::new(name, check));
        self
    }

    /// Sets how long a cache may not hear from the server before the process is not ready; 90 s unless this is called.
    #[must_use]
    pub fn max_stale(mut self, limit: Duration) -> Self {
        self.limits.stale = limit;
        self
    }

    /// Sets how long a key may wait for a worker before the process is not ready; 5 min unless this is called.
    #[must_use]
    pub fn max_queue_age(mut self, limit: Duration) -> Self {
        self.limits.queue_age = limit;
        self
    }

    /// Sets how long a reconcile may take before the process is not alive; for ever unless this is called.
    #[must_use]
    pub fn max_reconcile(mut self, limit: Duration) -> Self {
        self.limits.stuck = Some(limit);
        self
    }

    /// Sets how long tasks may take to end; 30 s unless this is called. Controllers have limits of their own.
    #[must_use]
    pub fn drain_for(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// The manager. Ports are taken now, nothing runs yet.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on, or two parts have one name.
    pub async fn build(mut self) -> Result<Manager, Error> {
        let listener = match self.address {
            None => None,
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                Error::new(ErrorKind::Transport, format!("health and metrics cannot be served on {address}"))
                    .with_source(error)
            })?),
        };
        for part in &self.informers {
            let mut check = health::readiness(&(Arc::clone(part) as Arc<dyn Part>), self.limits);
            // There may be several of one kind: of two namespaces, say.
            let alike = |name: &str| self.readiness.iter().filter(|check| check.name.starts_with(name)).count();
            match alike(&check.name) {
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
            let elector = Arc::clone(elector);
            self.liveness
                .push(Check::new("leader-election", move || elector.check().map_err(|error| error.to_string())));
        }
        unique(&self.readiness)?;
        unique(&self.liveness)?;
        let registry = self.registry.unwrap_or_else(|| Registry::global().clone());
        let pages = Pages { liveness: self.liveness, readiness: self.readiness, registry };
        Ok(Manager {
            informers: self.informers,
            controllers: self.controllers,
            tasks: self.tasks,
            elector: self.elector,
            listener,
            pages: Arc::new(pages),
            drain: self.drain,
        })
    }
}

fn unique(checks: &[Check]) -> Result<(), Error> {
    for (place, check) in checks.iter().enumerate() {
        if checks[..place].iter().any(|other| other.name == check.name) {
            let what = format!("two parts of the manager are called {:?}", check.name);
            return Err(Error::new(ErrorKind::Invalid, what));
        }
    }
    Ok(())
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder").field("controllers", &self.controllers.len()).finish_non_exhaustive()
    }
}
