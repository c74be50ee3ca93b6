//! Makes connections: TCP, then TLS, then HTTP/2 or HTTP/1.1 as the server chooses.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, header::HOST, uri::PathAndQuery};
use http_body_util::Full;
use hyper::{
    client::conn::{http1, http2},
    rt::{Read, Write},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::{
    HttpSettings, broken,
    connection::{Driver, Http1, Http2},
    lane::LaneSettings,
    tls::TlsConnector,
};
use crate::{Error, ErrorKind};

/// A new connection, of whichever sort the server speaks.
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
}

impl Connector {
    pub(super) fn new(settings: HttpSettings) -> Result<Self, Error> {
        let server = &settings.server;
        let config = |what: &str| Error::new(ErrorKind::Config, format!("server address {server}: {what}"));
        let Some(authority) = server.authority() else { return Err(config("no host")) };
        let secure = match server.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(config("the scheme is neither http nor https")),
        };
        // Brackets belong to the address, not to the name.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = secure.then(|| TlsConnector::new(&settings.tls, &host, settings.file_check)).transpose()?;
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| config("no valid host"))?;
        Ok(Self { host, port, authority: authority.to_string(), host_header, tls, settings })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Changes whenever new connections are made with other credentials than old ones.
    pub(super) fn generation(&self) -> u64 {
        self.tls.as_ref().map_or(0, TlsConnector::generation)
    }

    /// A request as HTTP/1.1 wants it: a path, and a header for the host.
    pub(super) fn for_http1(&self, request: http::Request<Bytes>) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        parts.uri = http::Uri::from(path_of(&parts.uri));
        parts.headers.entry(HOST).or_insert_with(|| self.host_header.clone());
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }

    /// A request as HTTP/2 wants it: the whole address.
    pub(super) fn for_http2(&self, request: http::Request<Bytes>) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        let uri = http::Uri::builder()
            .scheme(if self.tls.is_some() { "https" } else { "http" })
            .authority(self.authority.as_str())
            .path_and_query(path_of(&parts.uri))
            .build();
        parts.uri = uri.map_err(|error| broken("the request has no valid address".to_owned(), error))?;
        parts.headers.remove(HOST);
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }

    pub(super) async fn connect(&self, lane: LaneSettings) -> Result<Connected, Error> {
        let limit = self.settings.connect_timeout;
        let tcp = match tokio::time::timeout(limit, self.connect_tcp()).await {
            Ok(Ok(tcp)) => tcp,
            Ok(Err(error)) => return Err(broken(format!("cannot connect to {}", self.authority), error)),
            Err(_) => return Err(self.too_slow("connect to", limit)),
        };
        let Some(tls) = &self.tls else {
            return self.http1(TokioIo::new(tcp), 0).await;
        };
        let limit = self.settings.handshake_timeout;
        let generation = tls.generation();
        let stream = match tokio::time::timeout(limit, tls.handshake(tcp)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(broken(format!("TLS handshake with {} failed", self.authority), error)),
            Err(_) => return Err(self.too_slow("finish a TLS handshake with", limit)),
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.http2(TokioIo::new(stream), lane, generation).await
        } else {
            self.http1(TokioIo::new(stream), generation).await
        }
    }

    async fn connect_tcp(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((self.host.as_str(), self.port)).await?.collect();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    keep_alive(&stream, self.settings.ping_interval, self.settings.ping_timeout)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn http1<T>(&self, io: T, generation: u64) -> Result<Connected, Error>
    where
        T: Read + Write + Send + Unpin + 'static,
    {
        let (sender, connection) = http1::handshake(io).await.map_err(|error| self.no_http(error))?;
        let driver = Driver::spawn(connection);
        Ok(Connected::Http1(Http1::new(sender, driver, generation, self.settings.max_connection_age)))
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
            // Until the server has said how many it allows: what it does not allow would wait behind the others.
            .initial_max_send_streams(1)
            .initial_stream_window_size(lane.stream_window)
            .initial_connection_window_size(lane.connection_window())
            .handshake(io)
            .await
            .map_err(|error| self.no_http(error))?;
        let driver = Driver::spawn_http2(connection);
        Ok(Connected::Http2(Http2::new(sender, driver, generation, self.settings.max_connection_age)))
    }

    fn no_http(&self, error: hyper::Error) -> Error {
        broken(format!("{} does not speak HTTP", self.authority), error)
    }

    fn too_slow(&self, what: &str, limit: Duration) -> Error {
        let message = format!("could not {what} {} within {} s", self.authority, limit.as_secs());
        Error::new(ErrorKind::Transport, message)
    }
}

fn path_of(uri: &http::Uri) -> PathAndQuery {
    uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// Has the kernel notice a peer that is gone, also where HTTP has no pings.
fn keep_alive(stream: &TcpStream, idle: Duration, patience: Duration) -> io::Result<()> {
    let socket = socket2::SockRef::from(stream);
    let probes = 3;
    let keep_alive = socket2::TcpKeepalive::new().with_time(idle).with_interval(patience / probes).with_retries(probes);
    socket.set_tcp_keepalive(&keep_alive)?;
    // Unanswered data counts too, not only unanswered probes.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(idle + patience))?;
    Ok(())
}

/// So that the connector can be shared by all lanes.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Arc<Connector>>();
};
