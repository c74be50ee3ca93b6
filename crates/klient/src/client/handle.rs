//! `Client`: a handle to an API server. All clones share connections and credentials.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use klient_proto::ManagedFields;

use super::{
    ClientBuilder, RestClient,
    auth::AuthSource,
    http::{Body, FnTransport, Transport, response, throttle::Throttle, warnings::Warnings},
    metrics::ClientMetrics,
};
use crate::{BoxError, Error};

/// A handle to an API server.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client};
///
/// # async fn list() -> Result<(), klient::Error> {
/// let client = Client::infer()?;
/// let pods: Api<Pod> = Api::namespaced(client, "kube-system");
/// for pod in &pods.list().labels("app=web").limit(500).await? {
///     println!("{}", pod.metadata.name.as_deref().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
}

#[derive(Clone)]
pub(super) struct Inner {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) auth: Arc<dyn AuthSource>,
    pub(super) path_prefix: String,
    pub(super) headers: HeaderMap,
    pub(super) default_namespace: String,
    pub(super) timeout: Duration,
    pub(super) protobuf: bool,
    pub(super) managed_fields: ManagedFields,
    /// Whether the server has rejected a protobuf body.
    pub(super) protobuf_refused: Arc<AtomicBool>,
    /// Whether a watch requested initial events and the server did not send them.
    pub(super) watch_list_lacking: Arc<AtomicBool>,
    /// The stream protocols that the server supports, as far as known.
    #[cfg(feature = "streams")]
    pub(super) stream_support: Arc<super::streams::StreamSupport>,
    pub(super) throttle: Option<Arc<Throttle>>,
    pub(super) warnings: Arc<Warnings>,
    pub(super) metrics: Arc<ClientMetrics>,
}

impl Client {
    /// Returns a builder of a client over a transport.
    pub fn builder(transport: impl Transport) -> ClientBuilder {
        ClientBuilder::new(Arc::new(transport))
    }

    /// Creates a client of a server in the same process, from a function that handles requests.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = klient_apiserver::ApiServer::start().await?;
    /// let client = klient::Client::from_service(server.service());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_service<F, A, B>(service: F) -> Self
    where
        F: Fn(http::Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = http::Response<B>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::builder(FnTransport::new(service)).build()
    }

    /// Returns a builder of a client with other settings that shares this client's connections and credentials.
    ///
    /// ```no_run
    /// # fn patient(client: klient::Client) -> klient::Client {
    /// client.to_builder().timeout(std::time::Duration::from_secs(300)).build()
    /// # }
    /// ```
    pub fn to_builder(&self) -> ClientBuilder {
        ClientBuilder::of(Inner::clone(&self.inner))
    }

    /// Returns a client that builds requests part by part, for any verb on any path.
    pub fn rest(&self) -> RestClient {
        RestClient::new(self.clone())
    }

    /// Returns the namespace of requests that do not name one.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    /// Sends a request and returns a successful response, whose body is streamed and decompressed.
    ///
    /// # Errors
    ///
    /// Returns the server's [`Status`](klient_core::Status) as an error, or the reason why there is no response.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request. The server may have executed it already.
    pub async fn send(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Body>, Error> {
        let response = self.exchange(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(response::error(response, self.timeout()).await)
    }

    /// Returns whether objects are sent and received as protobuf if their kind supports it.
    pub(super) fn prefers_protobuf(&self) -> bool {
        self.inner.protobuf
    }

    /// Returns whether request bodies may be protobuf.
    pub(super) fn sends_protobuf(&self) -> bool {
        self.inner.protobuf && !self.inner.protobuf_refused.load(Ordering::Relaxed)
    }

    /// Records that the server rejects protobuf, so that later writes use JSON.
    pub(super) fn protobuf_was_refused(&self) {
        self.inner.protobuf_refused.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server may support initial events in watches.
    pub(crate) fn offers_watch_list(&self) -> bool {
        !self.inner.watch_list_lacking.load(Ordering::Relaxed)
    }

    /// Records, for all handles, that the server does not support initial events in watches.
    pub(crate) fn lacks_watch_list(&self) {
        self.inner.watch_list_lacking.store(true, Ordering::Relaxed);
    }

    /// Returns whether typed responses keep `metadata.managedFields`.
    pub(super) fn managed_fields(&self) -> ManagedFields {
        self.inner.managed_fields
    }

    /// Returns the time limit of a call other than a watch.
    pub(super) fn timeout(&self) -> Duration {
        self.inner.timeout
    }
}

// `Debug` never prints headers, because they may contain secrets.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("host", &self.inner.metrics.host())
            .field("default_namespace", &self.inner.default_namespace)
            .finish_non_exhaustive()
    }
}
