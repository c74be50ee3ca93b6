//! Opens connections: TCP, optionally through a proxy, then TLS, then HTTP/2 or HTTP/1.1 as the server selects.
//!
//! Each step has its own time limit, and its error names the step.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue,
    header::{HOST, PROXY_AUTHORIZATION},
    uri::PathAndQuery,
};
use http_body_util::Full;
use hyper::{
    client::conn::{http1, http2},
    rt::{Read, Write},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::BufReader;

use super::{
    HttpSettings, broken,
    connection::{Driver, FIRST_STREAMS, Http1, Http2, Work},
    dial::{KeepAlive, dial},
    lane::LaneSettings,
    proxy::ProxyConnector,
    stream::BoxStream,
    tls::{Peer, TlsConnector, refused_handshake},
};
use crate::{Error, ErrorKind, client::http::rotation::Rotation};

/// A new connection, of the protocol that the server selected.
pub(super) enum Connected {
    Http1(Http1),
    Http2(Http2),
}

pub(super) struct Connector {
    settings: HttpSettings,
    host: String,
    port: u16,
    authority: String,
    host_header: HeaderValue,
    tls: Option<TlsConnector>,
    proxy: Option<ProxyConnector>,
}

impl Connector {
    pub(super) fn new(settings: HttpSettings) -> Result<Self, Error> {
        let server = &settings.server;
        let config = |what: &str| Error::new(ErrorKind::Config, format!("invalid server address {server}: {what}"));
        let Some(authority) = server.authority() else { return Err(config("no host")) };
        let secure = match server.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(config("the scheme must be http or https")),
        };
        // Brackets belong to the address, not to the name.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let peer = if settings.http1_only { Peer::Http1Server } else { Peer::Server };
        let identity = settings.identity.clone();
        let tls = secure.then(|| TlsConnector::new(&settings.tls, &host, peer, &settings, identity)).transpose()?;
        let proxy = settings.proxy.as_ref().map(|proxy| ProxyConnector::new(proxy, &settings)).transpose()?;
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| config("invalid host"))?;
        Ok(Self { host, port, authority: authority.to_string(), host_header, tls, proxy, settings })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns a number that changes when new connections use other credentials than old ones.
    pub(super) fn generation(&self) -> u64 {
        self.tls.as_ref().map_or(0, TlsConnector::generation)
    }

    /// Returns a check whether a connection of that generation is outdated, if connections use certificates.
    pub(super) fn rotation(self: &Arc<Self>, generation: u64) -> Option<Rotation> {
        self.tls.as_ref()?;
        let connector = Arc::clone(self);
        Some(Rotation::new(self.settings.file_check, move || connector.generation() != generation))
    }

    /// Converts a request to HTTP/1.1: a path and a `Host` header, or the whole address for a forwarding proxy.
    pub(super) fn for_http1(&self, request: http::Request<Bytes>) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        parts.headers.entry(HOST).or_insert_with(|| self.host_header.clone());
        match self.forwarder() {
            None => parts.uri = http::Uri::from(path_of(&parts.uri)),
            Some(proxy) => {
                parts.uri = self.whole_address(&parts.uri)?;
                if let Some(value) = proxy.authorization() {
                    parts.headers.insert(PROXY_AUTHORIZATION, value.clone());
                }
            }
        }
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }

    /// Returns the `Host` header.
    #[cfg(feature = "streams")]
    pub(super) fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }

    /// Converts a request to HTTP/2, with the whole address.
    pub(super) fn for_http2(&self, request: http::Request<Bytes>) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        parts.uri = self.whole_address(&parts.uri)?;
        parts.headers.remove(HOST);
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }

    fn whole_address(&self, uri: &http::Uri) -> Result<http::Uri, Error> {
        http::Uri::builder()
            .scheme(if self.tls.is_some() { "https" } else { "http" })
            .authority(self.authority.as_str())
            .path_and_query(path_of(uri))
            .build()
            .map_err(|error| broken("invalid address of request".to_owned(), error))
    }

    /// Returns the proxy that forwards plain requests, if any.
    fn forwarder(&self) -> Option<&ProxyConnector> {
        self.proxy.as_ref().filter(|proxy| self.tls.is_none() && proxy.forwards_plain_requests())
    }

    /// Returns an error if a response is the proxy's own and not the server's.
    pub(super) fn refusal<T>(&self, response: &http::Response<T>) -> Option<Error> {
        self.forwarder()?.refusal(response)
    }

    pub(super) async fn connect(&self, lane: LaneSettings) -> Result<Connected, Error> {
        let stream = self.reach(Route::Forwarded).await?;
        let Some(tls) = &self.tls else {
            return self.http1(TokioIo::new(stream), 0).await;
        };
        let generation = tls.generation();
        let stream = self.secure(tls.handshake(read_ahead(stream))).await?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.http2(TokioIo::new(stream), lane, generation).await
        } else {
            self.http1(TokioIo::new(stream), generation).await
        }
    }

    /// Opens a stream for one connection of HTTP/1.1 to the server, through a tunnel of the proxy if there is one.
    #[cfg(feature = "streams")]
    pub(super) async fn http1_stream(&self) -> Result<BoxStream, Error> {
        let stream = self.reach(Route::Tunnel).await?;
        match &self.tls {
            None => Ok(stream),
            Some(tls) => Ok(Box::new(self.secure(tls.handshake_http1(read_ahead(stream))).await?)),
        }
    }

    /// Limits the time of a TLS handshake.
    async fn secure<T>(&self, handshake: impl Future<Output = std::io::Result<T>>) -> Result<T, Error> {
        let limit = self.settings.handshake_timeout;
        match tokio::time::timeout(limit, handshake).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(refused_handshake(&self.authority, error)),
            Err(_) => Err(too_slow("complete a TLS handshake with", &self.authority, limit)),
        }
    }

    /// Opens a stream to the server, or to the proxy that forwards its requests.
    async fn reach(&self, route: Route) -> Result<BoxStream, Error> {
        let Some(proxy) = &self.proxy else {
            return Ok(Box::new(self.dial(&self.host, self.port, &self.authority).await?));
        };
        let tcp = self.dial(proxy.host(), proxy.port(), &format!("proxy {}", proxy.name())).await?;
        let stream = proxy.greet(tcp, &self.settings).await?;
        match self.forwarder() {
            Some(_) if route == Route::Forwarded => Ok(stream),
            _ => proxy.tunnel(stream, &self.host, self.port, &self.settings).await,
        }
    }

    async fn dial(&self, host: &str, port: u16, peer: &str) -> Result<tokio::net::TcpStream, Error> {
        let limit = self.settings.connect_timeout;
        let keep_alive = KeepAlive { idle: self.settings.ping_interval, patience: self.settings.ping_timeout };
        match tokio::time::timeout(limit, dial(host, port, keep_alive)).await {
            Ok(Ok(tcp)) => Ok(tcp),
            Ok(Err(error)) => Err(broken(format!("cannot connect to {peer}"), error)),
            Err(_) => Err(too_slow("connect to", peer, limit)),
        }
    }

    async fn http1<T>(&self, io: T, generation: u64) -> Result<Connected, Error>
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (sender, connection) = http1::handshake(io).await.map_err(|error| self.no_http(error))?;
        Ok(Connected::Http1(Http1::new(sender, Work::new(connection), generation, self.settings.max_connection_age)))
    }

    async fn http2<T>(&self, io: T, lane: LaneSettings, generation: u64) -> Result<Connected, Error>
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.settings.ping_interval)
            .keep_alive_timeout(self.settings.ping_timeout)
            .keep_alive_while_idle(true)
            .initial_max_send_streams(FIRST_STREAMS)
            .initial_stream_window_size(lane.stream_window)
            .initial_connection_window_size(lane.connection_window())
            .handshake(io)
            .await
            .map_err(|error| self.no_http(error))?;
        let driver = Driver::spawn_http2(connection);
        Ok(Connected::Http2(Http2::new(sender, driver, generation, self.settings.max_connection_age)))
    }

    pub(super) fn no_http(&self, error: hyper::Error) -> Error {
        broken(format!("HTTP handshake with {} failed", self.authority), error)
    }
}

/// The way through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// Plain requests are forwarded by the proxy, if it can.
    Forwarded,
    /// The proxy opens a tunnel.
    #[cfg(feature = "streams")]
    Tunnel,
}

/// Buffers what is read: rustls reads 4 KB at a time, which is less than one event and costs a system call each.
fn read_ahead(stream: BoxStream) -> BufReader<BoxStream> {
    BufReader::with_capacity(READ_AHEAD, stream)
}

fn too_slow(what: &str, peer: &str, limit: Duration) -> Error {
    Error::new(ErrorKind::Transport, format!("cannot {what} {peer} within {limit:?}"))
}

pub(super) fn path_of(uri: &http::Uri) -> PathAndQuery {
    uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// The size of the read buffer below TLS.
const READ_AHEAD: usize = 64 << 10;

// The connector must be shareable by all lanes.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Arc<Connector>>();
};
