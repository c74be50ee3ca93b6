//! Requests that upgrade their connection: WebSocket and SPDY over HTTP/1.1.
//!
//! HTTP/2 has no upgrades, so that each request has a connection of its own, which belongs to the response: it is in
//! the extensions of a response with status 101. Proxies open a tunnel for it, because they do not forward upgrades.

use bytes::Bytes;
use http::{StatusCode, header::HOST};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use klient_streams::Upgraded;

use super::{
    broken,
    connect::{Connector, path_of},
    connection::{Http1, Work},
};
use crate::{Error, client::http::body::Body};

impl Connector {
    /// Sends a request to upgrade a new connection.
    pub(super) async fn upgrade(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, Error> {
        let (mut parts, body) = request.into_parts();
        parts.headers.entry(HOST).or_insert_with(|| self.host_header().clone());
        parts.uri = http::Uri::from(path_of(&parts.uri));
        let request = http::Request::from_parts(parts, Full::new(body));

        let stream = self.http1_stream().await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.no_http(error))?;
        let mut http1 = Http1::new(sender, Work::new(connection.with_upgrades()), 0, std::time::Duration::ZERO);
        let broke = |error| broken(format!("connection to {} broke", self.authority()), error);
        let sent = http1.sender.send_request(request);
        let mut response = http1.work.until(sent).await.map_err(broke)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(http1.streamed(response, std::sync::Arc::default()));
        }
        let upgrade = hyper::upgrade::on(&mut response);
        let stream = http1.work.until(upgrade).await.map_err(broke)?;
        let mut response = response.map(|_| Body::from_bytes(Bytes::new()));
        response.extensions_mut().insert(Upgraded::from_io(TokioIo::new(stream)));
        Ok(response)
    }
}
