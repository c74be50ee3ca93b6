//! The builder of a client: its transport, credentials and settings.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_ENCODING, USER_AGENT},
};

use klient_proto::ManagedFields;

use crate::client::{
    Client, Inner, auth::AuthSource, auth::StaticAuth, http::LogWarnings, http::WarningHandler,
    http::throttle::Throttle, http::transport::Transport, http::warnings::Warnings, metrics::ClientMetrics,
};
use crate::{Error, metrics::Registry};

/// A builder of a [`Client`].
pub struct ClientBuilder {
    pub(in crate::client) inner: Inner,
}

impl ClientBuilder {
    pub(in crate::client) fn new(transport: Arc<dyn Transport>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("klient/", env!("CARGO_PKG_VERSION"))));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        Self::of(Inner {
            transport,
            auth: Arc::new(StaticAuth::none()),
            path_prefix: String::new(),
            headers,
            default_namespace: "default".to_owned(),
            timeout: DEFAULT_TIMEOUT,
            protobuf: true,
            managed_fields: ManagedFields::Drop,
            watch_list_lacking: Arc::default(),
            #[cfg(feature = "streams")]
            stream_support: Arc::default(),
            protobuf_refused: Arc::new(AtomicBool::new(false)),
            throttle: None,
            warnings: Arc::new(Warnings::new(LogWarnings)),
            metrics: Arc::new(ClientMetrics::new(Registry::global().clone(), String::new())),
        })
    }

    pub(in crate::client) fn of(inner: Inner) -> Self {
        Self { inner }
    }

    /// Sets the source of credentials.
    #[must_use]
    pub fn auth(mut self, auth: impl AuthSource) -> Self {
        self.inner.auth = Arc::new(auth);
        self
    }

    pub(in crate::client) fn boxed_auth(mut self, auth: Box<dyn AuthSource>) -> Self {
        self.inner.auth = Arc::from(auth);
        self
    }

    pub(in crate::client) fn replaced_header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.insert(name, value);
        self
    }

    /// Sets the prefix of the path of every request, such as `/k8s/clusters/a`.
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        prefix.trim_end_matches('/').clone_into(&mut self.inner.path_prefix);
        self
    }

    /// Sets a header of every request that does not set that header itself.
    #[must_use]
    pub fn header(mut self, name: http::HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.append(name, value);
        self
    }

    /// Sets the namespace of requests that do not name one.
    #[must_use]
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.inner.default_namespace = namespace.into();
        self
    }

    /// Sets the time limit for the head of a response, and for the whole request except watches.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner.timeout = timeout;
        self
    }

    /// Disables protobuf, so that all objects are sent and received as JSON.
    ///
    /// By default, protobuf is used for kinds that support it.
    #[must_use]
    pub fn json_only(mut self) -> Self {
        self.inner.protobuf = false;
        self
    }

    /// Sets whether responses keep `metadata.managedFields`. By default, the fields are dropped.
    ///
    /// Few programs read managed fields, and they take half of the decode time and most of the memory of a typed
    /// object. Writing an object back without them is safe: servers treat an absent list as no change. Streams of raw
    /// objects have their own setting, in their [`SplitOptions`](klient_proto::SplitOptions).
    ///
    /// ```no_run
    /// # fn with_managers(client: klient::Client) -> klient::Client {
    /// use klient::wire::ManagedFields;
    ///
    /// client.to_builder().managed_fields(ManagedFields::Keep).build()
    /// # }
    /// ```
    #[must_use]
    pub fn managed_fields(mut self, wanted: ManagedFields) -> Self {
        self.inner.managed_fields = wanted;
        self
    }

    /// Sets whether the server may compress its responses. It may by default.
    #[must_use]
    pub fn compression(mut self, wanted: bool) -> Self {
        let value = if wanted { "gzip" } else { "identity" };
        self.inner.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
        self
    }

    /// Limits the rate of requests, retries included: so many per second, with bursts after a pause.
    ///
    /// By default, there is no limit. The start of a watch is not limited, as in client-go.
    ///
    /// # Errors
    ///
    /// Returns an error if the limit would allow no requests.
    #[doc(alias = "QPS")]
    #[doc(alias = "Burst")]
    pub fn rate_limit(mut self, per_second: f64, burst: u32) -> Result<Self, Error> {
        self.inner.throttle = Some(Arc::new(Throttle::new(per_second, burst)?));
        Ok(self)
    }

    /// Sets the handler of the server's warnings, which receives each of them once. By default, they are logged.
    ///
    /// ```no_run
    /// # fn set_up() -> Result<(), klient::Error> {
    /// use klient::{Client, client::{config::Config, http::Warning}};
    ///
    /// let builder = Client::builder_from_config(&Config::infer()?)?;
    /// let client = builder.warning_handler(|warning: &Warning| eprintln!("warning: {}", warning.text)).build();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warning_handler(mut self, handler: impl WarningHandler) -> Self {
        self.inner.warnings = Arc::new(Warnings::new(handler));
        self
    }

    /// Sets the registry of request metrics; [`Registry::global`] by default.
    #[must_use]
    pub fn metrics(mut self, registry: &Registry) -> Self {
        self.inner.metrics = Arc::new(ClientMetrics::new(registry.clone(), self.inner.metrics.host().to_owned()));
        self
    }

    /// Sets the name of the server in metrics and `Debug` output.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.inner.metrics = Arc::new(ClientMetrics::new(self.inner.metrics.registry().clone(), host.into()));
        self
    }

    /// Builds the client.
    pub fn build(self) -> Client {
        Client { inner: Arc::new(self.inner) }
    }
}

/// Servers themselves time out after 60 seconds.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(75);
