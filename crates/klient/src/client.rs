//! The HTTP half: everything that talks to an API server. [`Client`] sends requests and returns answers.
//!
//! A client is a handle: cheap to clone, and all clones share connections and credentials. Everything else here is a
//! way to say what to send: [`RestClient`] part by part, [`Api`] by kind and verb, [`Clientset`] by group and version.

mod answer;
pub mod api;
mod auth;
pub mod body;
mod builder;
mod call;
pub mod clientset;
pub mod config;
pub mod discovery;
mod dynamic;
mod environment;
mod exchange;
mod exec_plugin;
mod gunzip;
mod in_cluster;
pub mod kubeconfig;
mod layer;
mod list;
mod mapper;
mod metrics;
mod oidc;
mod openapi;
mod pager;
pub mod rest;
mod retry;
mod retry_watch;
mod scale;
mod secret;
mod setup;
mod shared_error;
mod throttle;
pub mod transport;
mod warnings;
mod watch;

pub use api::{Api, Deleted};
pub use auth::{AuthFuture, AuthSource, StaticAuth, TokenFileAuth};
pub use builder::ClientBuilder;
pub use clientset::Clientset;
pub use config::Config;
pub use dynamic::DynamicClient;
pub use kubeconfig::{Kubeconfig, KubeconfigFiles, Overrides};
pub use list::ListStream;
pub use mapper::{Resolved, RestMapper};
pub use openapi::{OpenApiClient, OpenApiIndex};
pub use pager::Pager;
pub use rest::RestClient;
pub use retry_watch::RetryWatch;
pub use scale::ScaleClient;
pub use secret::{EmbeddedData, Secret};
pub use warnings::{LogWarnings, Warning, WarningHandler};
pub use watch::Watch;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use klient_proto::ManagedFields;

use self::{body::Body, metrics::ClientMetrics, throttle::Throttle, transport::Transport, warnings::Warnings};
use crate::Error;

/// A handle to an API server.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::ListOptions;
/// use klient::client::{Api, Client};
///
/// # async fn list() -> Result<(), klient::Error> {
/// let client = Client::infer()?;
/// let pods: Api<Pod> = Api::namespaced(client, "kube-system");
/// for pod in &pods.list(&ListOptions::default().label_selector("app=web").limit(500)).await? {
///     println!("{}", pod.metadata.name.as_deref().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    transport: Arc<dyn Transport>,
    auth: Arc<dyn AuthSource>,
    path_prefix: String,
    headers: HeaderMap,
    default_namespace: String,
    timeout: Duration,
    protobuf: bool,
    managed_fields: ManagedFields,
    /// Set once the server has refused a body for being protobuf.
    protobuf_refused: Arc<AtomicBool>,
    /// Set once a watch was asked for initial events and did not send them.
    watch_list_lacking: Arc<AtomicBool>,
    throttle: Option<Arc<Throttle>>,
    warnings: Arc<Warnings>,
    metrics: Arc<ClientMetrics>,
}

impl Client {
    /// A client over a transport, to be set up further.
    pub fn builder(transport: impl Transport) -> ClientBuilder {
        ClientBuilder::new(Arc::new(transport))
    }

    /// A client with other settings that shares this one's connections and credentials.
    ///
    /// ```no_run
    /// # fn patient(client: klient::client::Client) -> klient::client::Client {
    /// client.to_builder().timeout(std::time::Duration::from_secs(300)).build()
    /// # }
    /// ```
    pub fn to_builder(&self) -> ClientBuilder {
        ClientBuilder::of(Inner::clone(&self.inner))
    }

    /// Requests part by part: any verb on any path.
    pub fn rest(&self) -> RestClient {
        RestClient::new(self.clone())
    }

    /// The namespace to use where none is said.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    /// Sends a request and returns the answer, if it is a success. Its body streams in, decompressed.
    ///
    /// # Errors
    ///
    /// The server's [`Status`](klient_core::Status) as an error, or why there is no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request; the server may have done it already.
    pub async fn send(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Body>, Error> {
        let response = self.exchange(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(answer::error(response, self.timeout()).await)
    }

    /// Whether objects travel as protobuf where they can.
    fn prefers_protobuf(&self) -> bool {
        self.inner.protobuf
    }

    /// Whether the server may take objects as protobuf.
    fn sends_protobuf(&self) -> bool {
        self.inner.protobuf && !self.inner.protobuf_refused.load(Ordering::Relaxed)
    }

    /// Remembers that the server takes no protobuf, so that the next write does not try.
    fn protobuf_was_refused(&self) {
        self.inner.protobuf_refused.store(true, Ordering::Relaxed);
    }

    /// Whether typed answers keep `metadata.managedFields`.
    /// Whether the server is not known to lack initial events in watches.
    pub(crate) fn offers_watch_list(&self) -> bool {
        !self.inner.watch_list_lacking.load(Ordering::Relaxed)
    }

    /// Remembers, for all handles, that the server lacks initial events in watches.
    pub(crate) fn lacks_watch_list(&self) {
        self.inner.watch_list_lacking.store(true, Ordering::Relaxed);
    }

    fn managed_fields(&self) -> ManagedFields {
        self.inner.managed_fields
    }

    /// How long a call other than a watch may take.
    fn timeout(&self) -> Duration {
        self.inner.timeout
    }
}

// Never prints headers: they may hold secrets.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("host", &self.inner.metrics.host())
            .field("default_namespace", &self.inner.default_namespace)
            .finish_non_exhaustive()
    }
}
