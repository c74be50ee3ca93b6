//! The HTTP half: everything that talks to an API server. [`Client`] sends requests and returns answers.
//!
//! A client is a handle: cheap to clone, and all clones share connections and credentials.

mod answer;
mod api;
mod auth;
pub mod body;
pub mod config;
mod environment;
mod exec_plugin;
mod gunzip;
mod in_cluster;
pub mod kubeconfig;
mod layer;
mod list;
mod oidc;
mod retry;
mod secret;
mod setup;
mod shared_error;
pub mod transport;
mod watch;

pub use api::{Api, Deleted};
pub use auth::{AuthFuture, AuthSource, StaticAuth, TokenFileAuth};
pub use config::Config;
pub use kubeconfig::{Kubeconfig, KubeconfigFiles, Overrides};
pub use secret::{EmbeddedData, Secret};
pub use watch::Watch;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, USER_AGENT},
};
use klient_core::Verb;

use self::{body::Body, gunzip::Gunzip, transport::Transport};
use crate::{Error, ErrorKind};

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
#[doc(alias = "RESTClient")]
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<dyn Transport>,
    auth: Arc<dyn AuthSource>,
    path_prefix: String,
    headers: HeaderMap,
    default_namespace: String,
    timeout: Duration,
    protobuf: bool,
}

/// Sets up a [`Client`].
pub struct ClientBuilder {
    inner: Inner,
}

impl Client {
    /// A client over a transport, to be set up further.
    pub fn builder(transport: impl Transport) -> ClientBuilder {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("klient/", env!("CARGO_PKG_VERSION"))));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        ClientBuilder {
            inner: Inner {
                transport: Arc::new(transport),
                auth: Arc::new(StaticAuth::none()),
                path_prefix: String::new(),
                headers,
                default_namespace: "default".to_owned(),
                timeout: DEFAULT_TIMEOUT,
                protobuf: true,
            },
        }
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

    /// How long a call other than a watch may take.
    fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Sends a request, again where that is safe, and returns the last answer.
    async fn exchange(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Body>, Error> {
        let verb = request.extensions().get::<Verb>().copied();
        let (parts, body) = request.into_parts();
        let body = Bytes::from(body);
        let uri = self.with_prefix(&parts.uri)?;
        let mut renewed = false;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let authorization = self.inner.auth.authorization().await?;
            let mut request = http::Request::new(body.clone());
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = self.inner.headers.clone();
            request.headers_mut().extend(parts.headers.clone());
            if let Some(value) = &authorization {
                request.headers_mut().insert(AUTHORIZATION, value.clone());
            }
            *request.extensions_mut() = parts.extensions.clone();
            let wait = match self.answer_in_time(request).await {
                Ok(response) if response.status() == http::StatusCode::UNAUTHORIZED && !renewed => {
                    if !self.inner.auth.rejected(authorization.as_ref()) {
                        return Ok(decompressed(response));
                    }
                    renewed = true;
                    Duration::ZERO
                }
                Ok(response) => match retry::after_answer(verb, response.status(), response.headers()) {
                    Some(wait) if attempt < retry::MAX_ATTEMPTS => wait,
                    _ => return Ok(decompressed(response)),
                },
                Err(error) => match retry::after_error(verb, attempt, &error) {
                    Some(wait) => wait,
                    None => return Err(error),
                },
            };
            tracing::debug!(attempt, ?wait, uri = %uri.path(), "sending a request again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Bounds the wait for the head of an answer; a server that accepts and says nothing must not hang a caller.
    async fn answer_in_time(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, Error> {
        let limit = self.timeout();
        let path = request.uri().path().to_owned();
        match tokio::time::timeout(limit, self.inner.transport.send(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                let what = format!("no answer to {path} within {} s", limit.as_secs());
                Err(Error::new(ErrorKind::Timeout, what))
            }
        }
    }

    fn with_prefix(&self, uri: &Uri) -> Result<Uri, Error> {
        if self.inner.path_prefix.is_empty() {
            return Ok(uri.clone());
        }
        format!("{}{uri}", self.inner.path_prefix)
            .parse()
            .map_err(|error| Error::new(ErrorKind::Config, "the server's path prefix is malformed").with_source(error))
    }
}

impl ClientBuilder {
    /// Sets who asks.
    #[must_use]
    pub fn auth(mut self, auth: impl AuthSource) -> Self {
        self.inner.auth = Arc::new(auth);
        self
    }

    pub(crate) fn boxed_auth(mut self, auth: Box<dyn AuthSource>) -> Self {
        self.inner.auth = Arc::from(auth);
        self
    }

    pub(crate) fn replaced_header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.insert(name, value);
        self
    }

    /// Sets what comes before the path of every request, as `/k8s/clusters/a`.
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        prefix.trim_end_matches('/').clone_into(&mut self.inner.path_prefix);
        self
    }

    /// Sets a header that every request carries, unless it sets that header itself.
    #[must_use]
    pub fn header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.append(name, value);
        self
    }

    /// Sets the namespace to use where none is said.
    #[must_use]
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.inner.default_namespace = namespace.into();
        self
    }

    /// Sets how long an answer may take to begin, and how long all but watches may take in all.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner.timeout = timeout;
        self
    }

    /// Has all objects travel as JSON. Protobuf is used where a kind has it otherwise.
    #[must_use]
    pub fn json_only(mut self) -> Self {
        self.inner.protobuf = false;
        self
    }

    /// Sets whether the server may compress its answers; it may unless this says no.
    #[must_use]
    pub fn compression(mut self, wanted: bool) -> Self {
        let value = if wanted { "gzip" } else { "identity" };
        self.inner.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
        self
    }

    /// The client.
    pub fn build(self) -> Client {
        Client { inner: Arc::new(self.inner) }
    }
}

// Never prints headers: they may hold secrets.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("default_namespace", &self.inner.default_namespace).finish_non_exhaustive()
    }
}

fn decompressed(response: http::Response<Body>) -> http::Response<Body> {
    let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|value| value.as_bytes() == b"gzip");
    if is_gzip { response.map(|body| Body::new(Gunzip::new(body))) } else { response }
}

/// Servers give up after a minute themselves.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(75);
