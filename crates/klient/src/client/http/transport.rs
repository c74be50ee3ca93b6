//! The transport of requests to the server. Step 1 of an object's path: body frames of a list or watch response.
//!
//! Implement the trait to replace or wrap the transport; [`HttpTransport`] is the default.
//! `transport/` is the only place that uses hyper and rustls.

mod connect;
mod connection;
mod dial;
mod function;
mod identity;
mod lane;
mod proxy;
#[cfg(test)]
mod rotation_tests;
mod stream;
mod tls;
#[cfg(feature = "streams")]
mod upgrade;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use klient_core::Verb;

pub use self::function::FnTransport;
pub use self::identity::IdentitySlot;
pub(in crate::client) use self::tls::check_identity;
use self::{
    connect::Connector,
    lane::{Lane, LaneSettings},
};
use crate::client::{config::Tls, config::secret::without_userinfo, http::body::Body};
use crate::{Error, ErrorKind};

/// A future that a [`Transport`] returns.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Error>> + Send + 'a>>;

/// A transport of requests. Implement it to replace the default transport, or to wrap one.
///
/// The URI of a request has only path and query; the transport knows scheme and host.
#[doc(alias = "RoundTripper")]
pub trait Transport: Send + Sync + 'static {
    /// Sends one request. The response's body is streamed afterwards.
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_>;
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        (**self).send(request)
    }
}

/// The connection settings. `Debug` does not show the user and the password of a proxy.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The scheme, host and port of the server; the rest of the URI is ignored.
    pub server: http::Uri,
    /// The TLS settings for `https` servers.
    pub tls: Tls,
    /// A client certificate that is set at run time and takes precedence over the one in `tls`.
    pub identity: Option<IdentitySlot>,
    /// The proxy: an `http`, `https`, `socks5` or `socks5h` URL. The environment is ignored here.
    pub proxy: Option<http::Uri>,
    /// Whether to use HTTP/1.1 only. Each request, and each watch, then has its own connection.
    #[doc(alias = "DISABLE_HTTP2")]
    pub http1_only: bool,
    /// The time limit for opening a connection, without its TLS handshake; with a proxy, also the limit for its tunnel.
    pub connect_timeout: Duration,
    /// The time limit of a TLS handshake.
    pub handshake_timeout: Duration,
    /// How long a connection may be idle before it is checked with a ping.
    pub ping_interval: Duration,
    /// How long the response to a ping may take before the connection is considered dead.
    pub ping_timeout: Duration,
    /// The maximum age of a connection for new requests, so that load is distributed over servers again.
    pub max_connection_age: Duration,
    /// How long certificate and key files are considered unchanged, and watches are not checked for new certificates.
    pub file_check: Duration,
}

impl HttpSettings {
    /// Returns the default settings for a server.
    pub fn new(server: http::Uri) -> Self {
        Self {
            server,
            tls: Tls::default(),
            identity: None,
            proxy: None,
            http1_only: false,
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            // The sum is below the 45 seconds within which a half-open connection must be detected.
            ping_interval: Duration::from_secs(25),
            ping_timeout: Duration::from_secs(15),
            max_connection_age: Duration::from_secs(30 * 60),
            file_check: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("server", &self.server)
            .field("tls", &self.tls)
            .field("identity", &self.identity)
            .field("proxy", &self.proxy.as_ref().map(|proxy| without_userinfo(&proxy.to_string())))
            .field("http1_only", &self.http1_only)
            .field("connect_timeout", &self.connect_timeout)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("ping_interval", &self.ping_interval)
            .field("ping_timeout", &self.ping_timeout)
            .field("max_connection_age", &self.max_connection_age)
            .field("file_check", &self.file_check)
            .finish()
    }
}

/// The default transport: HTTP/2 if the server supports it, HTTP/1.1 otherwise, over TLS or plain TCP.
///
/// Watches have their own connections, so that they never block requests. A connection lives as long as the transport
/// or the last body read from it.
#[doc(alias = "http.Transport")]
pub struct HttpTransport {
    requests: Lane,
    watches: Lane,
}

impl HttpTransport {
    /// Creates a transport that connects on demand.
    ///
    /// # Errors
    ///
    /// Returns an error if the server's address or the TLS settings are invalid.
    pub fn new(settings: HttpSettings) -> Result<Self, Error> {
        let connector = Arc::new(Connector::new(settings)?);
        Ok(Self {
            requests: Lane::new(Arc::clone(&connector), LaneSettings::REQUESTS),
            watches: Lane::new(connector, LaneSettings::WATCHES),
        })
    }

    fn lane(&self, request: &http::Request<Bytes>) -> &Lane {
        match request.extensions().get::<Verb>() {
            Some(Verb::Watch) => &self.watches,
            _ => &self.requests,
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        #[cfg(feature = "streams")]
        if request.headers().contains_key(http::header::UPGRADE) {
            return Box::pin(self.requests.upgrade(request));
        }
        Box::pin(self.lane(&request).send(request))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpTransport({})", self.requests.authority())
    }
}

/// Returns an error about a connection, with its cause.
fn broken(message: String, source: impl Into<crate::error::BoxError>) -> Error {
    Error::new(ErrorKind::Transport, message).with_source(source)
}
