//! The webhook server: serves webhooks over TLS, and keeps certificates and registrations up to date.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use k8s_openapi::api::core::v1::Secret;
use tokio::{net::TcpListener, sync::oneshot, time::sleep};

use super::{
    Certificates, Webhooks,
    certificates::{Facts, Files, Managed, Pair, Served, Source, State, Step, verify},
    serve,
};
use crate::{Api, Client, Error, ErrorKind, SharedInformer};

/// A server of webhooks over TLS.
///
/// It creates its certificates, applies the registrations, and repairs both if they change. It is ready once every registration trusts the
/// certificate that it serves. All replicas of a program serve.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::webhook::{Request, Verdict, WebhookServer, Webhooks, validate};
/// use klient::{Client, Manager};
///
/// # async fn run() -> Result<(), klient::Error> {
/// let webhooks = Webhooks::new("shop")
///     .service("shop", "webhooks")
///     .hook(validate::<Pod>(async |_: Request<Pod>| Verdict::allow()));
/// let server = WebhookServer::new(Client::infer()?, webhooks);
/// Manager::builder().serve(([0, 0, 0, 0], 8080)).webhooks(server).build().await?.run().await
/// # }
/// ```
#[doc(alias = "webhook.Server")]
pub struct WebhookServer {
    client: Client,
    webhooks: Webhooks,
    address: SocketAddr,
    listener: Option<TcpListener>,
    certificates: Certificates,
    registers: bool,
    linger: Duration,
    health: Health,
}

/// Why a server is not ready, if so. Clones refer to the same server.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    problem: Arc<Mutex<Option<String>>>,
}

impl WebhookServer {
    /// Creates a server. It listens on port 9443, and stores its certificates in the Secret `NAME-webhook-certificates` in the service's
    /// namespace, where `NAME` is the name of the webhooks.
    pub fn new(client: Client, webhooks: Webhooks) -> Self {
        let namespace = match &webhooks.place {
            super::registration::Place::Service { namespace, .. } => namespace.clone(),
            super::registration::Place::Url(_) => client.default_namespace().to_owned(),
        };
        let secret = format!("{}-webhook-certificates", webhooks.name);
        let problem = Arc::new(Mutex::new(Some("the server has not started".to_owned())));
        Self {
            certificates: Certificates::managed(namespace, secret),
            client,
            webhooks,
            address: SocketAddr::from(([0, 0, 0, 0], 9443)),
            listener: None,
            registers: true,
            linger: LINGER,
            health: Health { problem },
        }
    }

    /// Sets the address; all addresses with port 9443 by default.
    #[must_use]
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> Self {
        self.address = address.into();
        self
    }

    /// Listens on a socket that is bound already.
    #[must_use]
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets where certificates come from.
    #[must_use]
    pub fn certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = certificates;
        self
    }

    /// Does not apply registrations. They have to be installed from [`Webhooks::to_yaml`], and another program has to inject the
    /// authority.
    #[must_use]
    pub fn without_registration(mut self) -> Self {
        self.registers = false;
        self
    }

    /// Sets how long the server goes on after the signal to stop, if connections are open; 5 seconds by default. In this time the API servers
    /// learn that this process is no endpoint of the service any more, so that no request fails.
    #[must_use]
    pub fn linger(mut self, duration: Duration) -> Self {
        self.linger = duration;
        self
    }

    /// Returns the state of the server, for readiness.
    pub(crate) fn health(&self) -> Health {
        self.health.clone()
    }

    /// Returns a function that says why the server is not ready, if so: for a program without a [`Manager`](crate::Manager).
    pub fn readiness(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let health = self.health();
        move || health.check()
    }

    /// Serves until the signal is ready, [a little longer](Self::linger) if connections are open, and then finishes the requests in flight.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot listen on its address. Problems with certificates and registrations are logged, make the
    /// server unready, and are retried.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes all connections.
    pub async fn run_until(self, signal: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let Self { client, webhooks, address, listener, certificates, registers, linger, health } = self;
        let listener = match listener {
            Some(listener) => listener,
            None => TcpListener::bind(address).await.map_err(|error| {
                Error::new(ErrorKind::Transport, format!("cannot listen on {address} for webhooks")).with_source(error)
            })?,
        };
        let served = Arc::new(Served::default());
        let (stopping, stop) = oneshot::channel::<()>();
        let keeper = Keeper { client, webhooks: webhooks.clone(), served: Arc::clone(&served), registers, health };
        let serving = serve::serve(listener, webhooks, served, linger, async { drop(stop.await) });
        let keeping = async {
            match certificates.source {
                Source::Managed(managed) => keeper.keep_secret(&managed).await,
                Source::Files { certificate, key, authority } => {
                    keeper.keep_files(&mut Files::new(&certificate, &key), authority).await;
                }
            }
        };
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            outcome = serving.as_mut() => return outcome,
            () = keeping => {}
            () = signal => {}
        }
        drop(stopping);
        serving.await
    }
}

impl Health {
    /// Returns why the server is not ready, if so.
    pub(crate) fn check(&self) -> Result<(), String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        problem.map_or(Ok(()), Err)
    }

    fn set(&self, problem: Option<String>) {
        let mut current = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if *current != problem {
            match &problem {
                Some(problem) => tracing::warn!(problem, "webhooks are not ready"),
                None => tracing::info!("webhooks are ready"),
            }
            *current = problem;
        }
    }
}

/// Keeps certificates and registrations up to date.
struct Keeper {
    client: Client,
    webhooks: Webhooks,
    served: Arc<Served>,
    registers: bool,
    health: Health,
}

impl Keeper {
    /// Keeps the certificates of a Secret.
    async fn keep_secret(&self, managed: &Managed) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &managed.namespace);
        let selector = format!("metadata.name={}", managed.secret);
        let informer = SharedInformer::builder(secrets.clone()).fields(selector).build();
        let mut changes = informer.events();
        informer.start();
        let mut memory = None;
        loop {
            let wait = match self.renew(&secrets, &informer, managed, &mut memory).await {
                Ok(wait) => wait.min(REGISTRATIONS),
                Err(error) => {
                    self.health.set(Some(error.to_string()));
                    RETRY
                }
            };
            tokio::select! {
                _ = changes.next() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Serves the certificate of the Secret, applies the registrations, and takes the next step of a renewal. Returns how long nothing
    /// has to be done.
    async fn renew(
        &self,
        secrets: &Api<Secret>,
        informer: &SharedInformer<Secret>,
        managed: &Managed,
        memory: &mut Option<State>,
    ) -> Result<Duration, Error> {
        informer.wait_for_sync().await?;
        let names = self.webhooks.place.names();
        let name = names.first().cloned().unwrap_or_default();
        let found = informer.lister().namespace(&managed.namespace).get(&managed.secret);
        let secret = found.map(|cached| cached.decode()).transpose()?.map(|secret| Secret::clone(&secret));
        let state = secret.as_ref().and_then(|secret| match State::read(secret) {
            Ok(state) => Some(state),
            Err(problem) => {
                tracing::warn!(problem, "repairing the Secret of webhook certificates");
                None
            }
        });
        let now = SystemTime::now();
        let is_good = |state: &&State| state.current.problem(&state.bundle, &name, now).is_none();
        // What this process served last is better than something new: registrations trust it already.
        let last = memory.clone().filter(|last| is_good(&last));
        let mut is_shown = false;
        if let Some(state) = state.as_ref().filter(is_good) {
            let certified = state.current.certified().map_err(|problem| Error::new(ErrorKind::Invalid, problem))?;
            self.served.set(certified);
            *memory = Some(state.clone());
            is_shown = self.register(&state.bundle, &state.current, &name).await?;
        } else if let Some(last) = last {
            let restored = State { since: now, ..last };
            return self.store(secrets, secret, managed, &restored, "restored").await.map(|()| REGISTRATIONS);
        }
        let facts = Facts { now, name: &name, lifetime: managed.lifetime, settle: managed.settle, is_shown };
        let create = || Pair::create(&self.webhooks.name, &names, now, managed.lifetime);
        let step = Step::next(state.as_ref(), &facts, create).map_err(|error| {
            Error::new(ErrorKind::Invalid, "cannot create a certificate for webhooks").with_source(error)
        })?;
        match step {
            Step::Wait(wait) => Ok(wait),
            Step::Store(state, what) => {
                self.store(secrets, secret, managed, &state, what).await.map(|()| REGISTRATIONS)
            }
        }
    }

    /// Stores a state, unless the Secret changed meanwhile. The informer shows the result.
    async fn store(
        &self,
        secrets: &Api<Secret>,
        secret: Option<Secret>,
        managed: &Managed,
        state: &State,
        what: &'static str,
    ) -> Result<(), Error> {
        let is_new = secret.is_none();
        let mut secret = secret.unwrap_or_default();
        state.write(&mut secret);
        let stored = if is_new {
            secret.metadata.name = Some(managed.secret.clone());
            secret.metadata.namespace = Some(managed.namespace.clone());
            secret.type_ = Some("kubernetes.io/tls".to_owned());
            secrets.create(&secret).await
        } else {
            secrets.update(&secret).await
        };
        match stored {
            Ok(_) => {
                tracing::info!(secret = managed.secret, what, "webhook certificates changed");
                Ok(())
            }
            // Another replica took the step.
            Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => Ok(()),
            Err(error) => Err(error.context(format!("cannot store the Secret {}", managed.secret))),
        }
    }

    /// Applies the registrations if one of them does not have the bundle. Returns whether all of them have it now.
    async fn register(&self, bundle: &str, pair: &Pair, name: &str) -> Result<bool, Error> {
        let mut shown = self.webhooks.registered(&self.client).await?;
        if self.registers && shown.iter().any(|shown| shown != bundle) {
            self.webhooks.register(&self.client, Some(bundle)).await?;
            shown = self.webhooks.registered(&self.client).await?;
        }
        let now = SystemTime::now();
        let distrusts = |shown: &&String| verify(&pair.certificate, shown, name, now).is_err();
        let problem = match shown.iter().filter(distrusts).count() {
            0 => None,
            count => Some(format!("{count} of {} registrations do not trust the certificate", shown.len())),
        };
        self.health.set(problem);
        Ok(shown.iter().all(|shown| shown == bundle))
    }

    /// Keeps the certificates of files.
    async fn keep_files(&self, files: &mut Files, authority: Option<PathBuf>) {
        loop {
            match files.changed() {
                Ok(Some(certified)) => {
                    self.served.set(certified);
                    tracing::info!("webhook certificate read from files");
                }
                Ok(None) => {}
                Err(problem) => tracing::warn!(problem, "cannot use the files of the webhook certificate"),
            }
            let problem = match self.register_files(files, authority.as_deref()).await {
                Ok(()) if self.served.is_set() => None,
                Ok(()) => Some("there is no certificate yet".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            self.health.set(problem);
            sleep(FILES).await;
        }
    }

    async fn register_files(&self, files: &Files, authority: Option<&std::path::Path>) -> Result<(), Error> {
        if !self.registers || files.certificate().is_none() {
            return Ok(());
        }
        let bundle = match authority {
            None => return self.webhooks.register(&self.client, None).await,
            Some(path) => std::fs::read_to_string(path).map_err(|error| {
                Error::new(ErrorKind::Config, format!("cannot read {}", path.display())).with_source(error)
            })?,
        };
        let shown = self.webhooks.registered(&self.client).await?;
        if shown.iter().any(|shown| *shown != bundle) {
            self.webhooks.register(&self.client, Some(&bundle)).await?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookServer").field("webhooks", &self.webhooks).finish_non_exhaustive()
    }
}

/// How often registrations are compared with the code.
const REGISTRATIONS: Duration = Duration::from_secs(30);
/// How often files are read.
const FILES: Duration = Duration::from_secs(5);
/// How long a server goes on after the signal to stop.
const LINGER: Duration = Duration::from_secs(5);
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(1);
