//! How requests reach the server. Step 1 of an object's way: body frames of a list or watch response.
//!
//! The trait is the hook to replace or wrap the transport; [`HttpTransport`] is the real one.
//! `transport/` is the only place that names hyper and rustls.

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

/// Sends requests and returns answers. Implement it to replace the transport, or to wrap one.
///
/// The URI of a request is path and query; scheme and host are the transport's to know.
pub trait Transport: Send + Sync + 'static {
    /// Sends one request. The answer's body streams in afterwards.
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_>;
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        (**self).send(request)
    }
}

/// Where and how to connect. `Debug` does not show the user and the password of a proxy.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// Scheme, host and port of the server; what is after them is ignored here.
    pub server: http::Uri,
    /// For `https` servers.
    pub tls: Tls,
    /// A client certificate that is had at run time; it goes before the one in `tls`.
    pub identity: Option<IdentitySlot>,
    /// The proxy on the way: an `http`, `https`, `socks5` or `socks5h` URL. The environment is not looked at here.
    pub proxy: Option<http::Uri>,
    /// Speaks HTTP/1.1, even where the server has HTTP/2. Then each request, and each watch, has a connection of its own.
    #[doc(alias = "DISABLE_HTTP2")]
    pub http1_only: bool,
    /// How long a connection may take to be made, without its TLS handshake; with a proxy, also how long that may take to
    /// open its tunnel.
    pub connect_timeout: Duration,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long a connection may be silent before it is checked with a ping.
    pub ping_interval: Duration,
    /// How long the answer to a ping may take before the connection counts as dead.
    pub ping_timeout: Duration,
    /// How old a connection may be before new requests go elsewhere, so that load spreads over servers again.
    pub max_connection_age: Duration,
    /// How long certificates and keys in files count as unchanged.
    pub file_check: Duration,
}

impl HttpSettings {
    /// The usual settings for a server.
    pub fn new(server: http::Uri) -> Self {
        Self {
            server,
            tls: Tls::default(),
            identity: None,
            proxy: None,
            http1_only: false,
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            // Together under the 45 seconds within which a half-open peer is noticed.
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

/// The real transport: HTTP/2 where the server speaks it, HTTP/1.1 otherwise, over TLS or plain TCP.
///
/// Watches have connections of their own, so that they never starve requests. Connections live as long as the
/// transport or the last body read from them.
pub struct HttpTransport {
    requests: Lane,
    watches: Lane,
}

impl HttpTransport {
    /// A transport that connects on demand.
    ///
    /// # Errors
    ///
    /// If the server's address or the TLS settings make no sense.
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
        Box::pin(self.lane(&request).send(request))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpTransport({})", self.requests.authority())
    }
}

/// An error about a connection, with what caused it.
fn broken(message: String, source: impl Into<crate::error::BoxError>) -> Error {
    Error::new(ErrorKind::Transport, message).with_source(source)
}
