//! Several controllers and informers as one process: one start, one end, one answer to "is it well?".
//!
//! Started in this order: health endpoints, informers, other tasks, leadership, controllers. Stopped in the opposite one: controllers end what they
//! are at, the lease is given back, tasks end, informers stop, and the endpoints answer to the last. In controller-runtime:
//! `pkg/manager`.

mod builder;
mod health;
mod part;
mod serve;

use std::{
    fmt,
    future::{Future, pending},
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

pub use self::{builder::ManagerBuilder, part::Stop};
use self::{
    part::{AnyController, AnyElector, AnyInformer, Part, Task},
    serve::Pages,
};
use crate::{Error, ErrorKind, controller::Permit};

/// Runs controllers, informers and whatever else belongs to a process.
///
/// ```no_run
/// use klient::Client;
/// use klient::controller::{Controller, Outcome, Request};
/// use klient::election::{ElectionOptions, LeaderElector, LeaseLock};
/// use klient::informer::InformerFactory;
/// use klient::manager::Manager;
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
    informers: Vec<Arc<dyn AnyInformer>>,
    controllers: Vec<Arc<dyn AnyController>>,
    tasks: Vec<Task>,
    elector: Option<Arc<dyn AnyElector>>,
    listener: Option<TcpListener>,
    pages: Arc<Pages>,
    drain: Duration,
}

impl Manager {
    /// A manager of nothing, to be set up.
    pub fn builder() -> ManagerBuilder {
        ManagerBuilder::default()
    }

    /// Where health and metrics are served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Runs until the process is asked to stop; see [`shutdown::signal`](crate::shutdown::signal) and [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// As [`run_until`](Self::run_until).
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(crate::shutdown::signal()).await
    }

    /// Runs until the signal comes, or a part fails; then everything else ends in an orderly way.
    ///
    /// # Errors
    ///
    /// If a part failed, leadership was lost, or something did not end in time and was dropped. The first of these is told, the others
    /// are logged.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops all that it runs. A lease runs out then.
    pub async fn run_until(self, signal: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let Self { informers, controllers, tasks, elector, listener, pages, drain } = self;
        let mut servers = JoinSet::new();
        if let Some(listener) = listener {
            servers.spawn(serve::serve(listener, pages));
        }
        for informer in &informers {
            informer.start();
        }
        let (ask, asked) = watch::channel(false);
        let mut running = JoinSet::new();
        for task in tasks {
            let stop = Stop { asked: asked.clone() };
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
            control(&controllers, elector.as_deref(), Box::pin(signal)).await
        };
        let mut outcome = failure.into_inner().map_or(Ok(()), Err);
        and_then(&mut outcome, controlled);

        ask.send_replace(true);
        let ended = timeout(drain, async {
            while let Some(ended) = running.join_next().await {
                and_then(&mut outcome, named(ended));
            }
        });
        if ended.await.is_err() {
            let what = format!("{} tasks did not end within {drain:?} and were dropped", running.len());
            and_then(&mut outcome, Err(Error::new(ErrorKind::Timeout, what)));
            running.shutdown().await;
        }
        for informer in &informers {
            informer.stop().await;
        }
        servers.shutdown().await;
        outcome
    }
}

/// Runs the controllers until the signal comes; while this process leads, if leaders are elected.
async fn control(
    controllers: &[Arc<dyn AnyController>],
    elector: Option<&dyn AnyElector>,
    signal: part::BoxFuture<'_, ()>,
) -> Result<(), Error> {
    match elector {
        None => run_controllers(controllers, signal, Permit::default()).await,
        Some(elector) => {
            let work = |leadership: crate::election::Leadership| -> part::BoxFuture<'_, Result<(), Error>> {
                tracing::info!(token = ?leadership.token(), "this process leads");
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

/// Runs the controllers until the signal comes or one fails, and waits for all to end.
async fn run_controllers(
    controllers: &[Arc<dyn AnyController>],
    signal: part::BoxFuture<'_, ()>,
    permit: Permit,
) -> Result<(), Error> {
    let (ask, asked) = watch::channel(false);
    let mut running = JoinSet::new();
    for controller in controllers {
        let (stop, name) = (Stop { asked: asked.clone() }, controller.name());
        let run = Arc::clone(controller).run(stop, permit.clone());
        running.spawn(async move { (name, run.await.map_err(Into::into)) });
    }
    let mut outcome = Ok(());
    tokio::select! {
        () = signal => {}
        error = first_failure(&mut running) => outcome = Err(error),
    }
    ask.send_replace(true);
    while let Some(ended) = running.join_next().await {
        and_then(&mut outcome, named(ended));
    }
    outcome
}

type Ended = Result<(String, Result<(), crate::BoxError>), tokio::task::JoinError>;

/// The first failure; never ready if all end well.
async fn first_failure(running: &mut JoinSet<(String, Result<(), crate::BoxError>)>) -> Error {
    while let Some(ended) = running.join_next().await {
        if let Err(error) = named(ended) {
            return error;
        }
    }
    pending().await
}

fn named(ended: Ended) -> Result<(), Error> {
    match ended {
        Ok((_, Ok(()))) => Ok(()),
        Ok((name, Err(error))) => match error.downcast::<Error>() {
            Ok(error) => Err(error.context(format!("{name} failed"))),
            Err(other) => Err(Error::new(ErrorKind::Canceled, format!("{name} failed")).with_source(other)),
        },
        Err(error) => Err(Error::new(ErrorKind::Canceled, "a part panicked").with_source(error)),
    }
}

/// Keeps the first failure; others are logged.
fn and_then(outcome: &mut Result<(), Error>, next: Result<(), Error>) {
    match (&outcome, next) {
        (Ok(()), next) => *outcome = next,
        (Err(_), Err(error)) => tracing::error!(%error, "and another part failed"),
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
