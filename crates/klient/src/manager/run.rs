//! `Manager`: starts the parts of a process in order, and stops them in the opposite order.

use std::{
    fmt,
    future::{Future, pending},
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

use super::{
    ManagerBuilder, Stop,
    part::{self, AnyController, AnyElector, AnyInformer, Task},
    serve::{self, Endpoints},
    sharding,
};
use crate::{Error, ErrorKind, controller::Permit, election::LeaderChanges, shard::Shards};

/// A group of controllers, informers and tasks that run and stop together.
///
/// ```no_run
/// use klient::Client;
/// use klient::{Controller, controller::{Outcome, Request}};
/// use klient::election::{ElectionOptions, LeaderElector, LeaseLock};
/// use klient::InformerFactory;
/// use klient::Manager;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// async fn reconcile(request: Request<Deployment>) -> Result<Outcome, klient::Error> {
///     println!("{}: {}", request.key(), request.reasons());
///     Ok(Outcome::Done)
/// }
///
/// # async fn run() -> Result<(), klient::Error> {
/// let client = Client::infer()?;
/// let factory = InformerFactory::new(client.clone());
/// let controller = Controller::builder("rollouts", factory.apps_v1().deployments()).reconcile(reconcile);
/// let lock = LeaseLock::new(client, "shop", "rollouts");
/// let manager = Manager::builder()
///     .serve(([0, 0, 0, 0], 8080))
///     .elected_by(LeaderElector::new(lock, "pod-7", ElectionOptions::default())?)
///     .controller(controller)
///     .build()
///     .await?;
/// manager.run().await?; // until SIGTERM
/// # Ok(())
/// # }
/// ```
pub struct Manager {
    pub(super) informers: Vec<Arc<dyn AnyInformer>>,
    pub(super) controllers: Vec<Arc<dyn AnyController>>,
    pub(super) tasks: Vec<Task>,
    pub(super) elector: Option<Arc<dyn AnyElector>>,
    pub(super) shards: Option<Shards>,
    pub(super) listener: Option<TcpListener>,
    pub(super) endpoints: Arc<Endpoints>,
    pub(super) drain: Duration,
}

impl Manager {
    /// Returns a builder of a manager.
    #[doc(alias = "NewManager")]
    pub fn builder() -> ManagerBuilder {
        ManagerBuilder::default()
    }

    /// Returns the address of the HTTP server, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Returns a stream of leaders, if leaders are elected: the current one first, and then each new one.
    ///
    /// ```no_run
    /// # fn log(manager: &klient::Manager) {
    /// if let Some(mut leaders) = manager.leader_changes() {
    ///     tokio::spawn(async move {
    ///         while let Some(leader) = leaders.next().await {
    ///             println!("leader: {}", leader.as_deref().unwrap_or("none"));
    ///         }
    ///     });
    /// }
    /// # }
    /// ```
    #[doc(alias = "Elected")]
    pub fn leader_changes(&self) -> Option<LeaderChanges> {
        self.elector.as_ref().map(|elector| elector.leader_changes())
    }

    /// Runs until the process receives a shutdown signal; see [`shutdown::signal`](crate::shutdown::signal) and
    /// [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run_until`](Self::run_until).
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(crate::shutdown::signal()).await
    }

    /// Runs until the signal is ready or a part fails, and then stops all parts in order.
    ///
    /// # Errors
    ///
    /// Returns an error if a part failed, leadership was lost, or a part did not stop in time and was dropped. The first of these
    /// errors is returned, and the others are logged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops all parts. A lease is not released then, so that it has to expire.
    #[doc(alias = "Start")]
    pub async fn run_until(self, signal: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let Self { informers, controllers, tasks, elector, shards, listener, endpoints, drain } = self;
        let mut servers = JoinSet::new();
        if let Some(listener) = listener {
            if let Some(debug) = endpoints.debug.clone() {
                servers.spawn(debug.sample());
            }
            servers.spawn(serve::serve(listener, endpoints));
        }
        for informer in &informers {
            informer.start();
        }
        for controller in &controllers {
            controller.start_informers();
        }
        let (stopping, requested) = watch::channel(false);
        let mut running = JoinSet::new();
        for task in tasks {
            let stop = Stop { requested: requested.clone() };
            running.spawn(async move { (task.name, (task.run)(stop).await) });
        }

        let failure = OnceLock::new();
        let controlled = {
            let signal = async {
                tokio::select! {
                    () = signal => {}
                    error = first_failure(&mut running) => drop(failure.set(error)),
                }
            };
            sharding::control(&controllers, elector.as_deref(), shards.as_ref(), Box::pin(signal)).await
        };
        let mut outcome = failure.into_inner().map_or(Ok(()), Err);
        merge(&mut outcome, controlled);

        stopping.send_replace(true);
        let ended = timeout(drain, async {
            while let Some(joined) = running.join_next().await {
                merge(&mut outcome, result_of(joined));
            }
        });
        if ended.await.is_err() {
            let message = format!("{} tasks did not stop within {drain:?} and were dropped", running.len());
            merge(&mut outcome, Err(Error::new(ErrorKind::Timeout, message)));
            running.shutdown().await;
        }
        let stopped = timeout(drain, async {
            for informer in &informers {
                informer.stop().await;
            }
        });
        if stopped.await.is_err() {
            let message = format!("informers did not stop within {drain:?}: a handler of theirs still runs");
            merge(&mut outcome, Err(Error::new(ErrorKind::Timeout, message)));
        }
        servers.shutdown().await;
        outcome
    }
}

/// Runs the controllers until the signal is ready; if leaders are elected, while this process leads.
pub(super) async fn control(
    controllers: &[Arc<dyn AnyController>],
    elector: Option<&dyn AnyElector>,
    signal: part::BoxFuture<'_, ()>,
) -> Result<(), Error> {
    match elector {
        None => run_controllers(controllers, signal, Permit::default()).await,
        Some(elector) => {
            let work = |leadership: crate::election::Leadership| -> part::BoxFuture<'_, Result<(), Error>> {
                tracing::info!(token = ?leadership.token(), "started leading");
                Box::pin(async move {
                    let ended = leadership.clone();
                    run_controllers(controllers, Box::pin(async move { ended.ended().await }), Permit::of(leadership))
                        .await
                })
            };
            elector.lead(signal, Box::new(work)).await
        }
    }
}

/// Runs the controllers until the signal is ready or one fails, and waits for all of them to stop.
async fn run_controllers(
    controllers: &[Arc<dyn AnyController>],
    signal: part::BoxFuture<'_, ()>,
    permit: Permit,
) -> Result<(), Error> {
    let (stopping, requested) = watch::channel(false);
    let mut running = JoinSet::new();
    for controller in controllers {
        let (stop, name) = (Stop { requested: requested.clone() }, controller.name());
        let run = Arc::clone(controller).run(stop, permit.clone());
        running.spawn(async move { (name, run.await.map_err(Into::into)) });
    }
    let mut outcome = Ok(());
    tokio::select! {
        () = signal => {}
        error = first_failure(&mut running) => outcome = Err(error),
    }
    stopping.send_replace(true);
    while let Some(joined) = running.join_next().await {
        merge(&mut outcome, result_of(joined));
    }
    outcome
}

/// The result of a task: its name, and its error.
type Joined = Result<(String, Result<(), crate::BoxError>), tokio::task::JoinError>;

/// Waits for the first failure. Never ready if all tasks succeed.
pub(super) async fn first_failure(running: &mut JoinSet<(String, Result<(), crate::BoxError>)>) -> Error {
    while let Some(joined) = running.join_next().await {
        if let Err(error) = result_of(joined) {
            return error;
        }
    }
    pending().await
}

pub(super) fn result_of(joined: Joined) -> Result<(), Error> {
    match joined {
        Ok((_, Ok(()))) => Ok(()),
        Ok((name, Err(error))) => match error.downcast::<Error>() {
            Ok(error) => Err(error.context(format!("{name} failed"))),
            Err(other) => Err(Error::new(ErrorKind::Canceled, format!("{name} failed")).with_source(other)),
        },
        Err(error) => Err(Error::new(ErrorKind::Canceled, "a part of the manager panicked").with_source(error)),
    }
}

/// Keeps the first failure, and logs others.
pub(super) fn merge(outcome: &mut Result<(), Error>, next: Result<(), Error>) {
    match (&outcome, next) {
        (Ok(()), next) => *outcome = next,
        (Err(_), Err(error)) => tracing::error!(%error, "another part of the manager failed"),
        (Err(_), Ok(())) => {}
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("informers", &self.informers.len())
            .field("controllers", &self.controllers.iter().map(|part| part.name()).collect::<Vec<_>>())
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}
