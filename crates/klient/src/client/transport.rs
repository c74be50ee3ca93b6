//! How requests reach the server. Step 1 of an object's way: body frames of a list or watch response.
//!
//! The trait is the hook to replace or wrap the transport; [`HttpTransport`] is the real one.
//! `transport/` is the only place that names hyper and rustls.

mod connect;
mod connection;
mod lane;
#[cfg(test)]
mod rotation_tests;
mod tls;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use klient_core::Verb;

use self::{
    connect::Connector,
    lane::{Lane, LaneSettings},
};
use super::{body::Body, config::Tls};
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

/// Where and how to connect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// Scheme, host and port of the server; what is after them is ignored here.
    pub server: http::Uri,
    /// For `https` servers.
    pub tls: Tls,
    /// How long a connection may take to be made, without its TLS handshake.
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
    file_check: Duration,
}

impl HttpSettings {
    /// The usual settings for a server.
    pub fn new(server: http::Uri) -> Self {
        Self {
            server,
            tls: Tls::default(),
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
