//! The handshake: from a request to a connection that speaks WebSocket or SPDY.
//!
//! A request that the server refused for a reason of the user's is not sent again in another protocol: the second
//! response would hide the first.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use klient_core::{Query, RequestBuilder, Status, Verb};
use klient_streams::{Io, Upgraded, handshake};

use crate::{
    Error, ErrorKind,
    client::{
        endpoint::Endpoint,
        http::{Body, exchange::SendOptions, response},
    },
};

/// The pod and the subresource of a session.
#[derive(Clone, Debug)]
pub(super) struct StreamTarget {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) pod: String,
    pub(super) subresource: &'static str,
    pub(super) query: Query,
}

/// A connection that speaks the protocol that the server selected.
pub(super) struct Upgrade {
    pub(super) io: Box<dyn Io>,
    pub(super) protocol: String,
}

/// The reason why there is no connection.
pub(super) struct Refused {
    pub(super) error: Error,
    /// Whether another protocol may work.
    pub(super) may_fall_back: bool,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, may_fall_back: false }
    }
}

impl Refused {
    fn unsuitable(what: impl Into<String>) -> Self {
        Self { error: Error::new(ErrorKind::Transport, what.into()), may_fall_back: true }
    }
}

impl StreamTarget {
    /// Opens a WebSocket for one of the subprotocols, the best first.
    pub(super) async fn websocket(&self, protocols: &[&str]) -> Result<Upgrade, Refused> {
        let no_key = |error| Error::new(ErrorKind::Transport, "cannot open a WebSocket").with_source(error);
        let key = handshake::new_key().map_err(no_key)?;
        let offered = protocols.join(", ");
        let headers = [
            (CONNECTION, "Upgrade"),
            (UPGRADE, "websocket"),
            (SEC_WEBSOCKET_VERSION, "13"),
            (SEC_WEBSOCKET_KEY, key.as_str()),
            // One line: Go's servers read only the first.
            (SEC_WEBSOCKET_PROTOCOL, offered.as_str()),
        ];
        let mut response = self.send(Method::GET, &headers).await?;
        let answer = response.headers();
        if !is_upgrade_to(answer, "websocket") {
            return Err(Refused::unsuitable("server did not switch to WebSocket"));
        }
        if text(answer, "sec-websocket-accept") != Some(&handshake::accept_value(&key)) {
            let what = format!("server responded with a wrong {SEC_WEBSOCKET_ACCEPT}");
            return Err(Refused::unsuitable(what));
        }
        let selected = text(answer, "sec-websocket-protocol").unwrap_or_default().to_owned();
        if !protocols.contains(&selected.as_str()) {
            return Err(Refused::unsuitable(format!(
                "server selected the WebSocket subprotocol {selected:?}, but {offered} was offered"
            )));
        }
        Ok(Upgrade { io: taken(&mut response)?, protocol: selected })
    }

    /// Opens a SPDY connection for one of the protocols, the best first.
    pub(super) async fn spdy(&self, protocols: &[&'static str]) -> Result<Upgrade, Refused> {
        let mut headers = vec![(CONNECTION, "Upgrade"), (UPGRADE, "SPDY/3.1")];
        headers.extend(protocols.iter().map(|protocol| (STREAM_PROTOCOL, *protocol)));
        let mut response = self.send(Method::POST, &headers).await?;
        let answer = response.headers();
        if !is_upgrade_to(answer, "spdy/3.1") {
            return Err(Refused::unsuitable("server did not switch to SPDY/3.1"));
        }
        let selected = text(answer, STREAM_PROTOCOL.as_str()).unwrap_or_default().to_owned();
        if !protocols.contains(&selected.as_str()) {
            let what = format!("server selected the stream protocol {selected:?}, which was not offered");
            return Err(Refused::unsuitable(what));
        }
        Ok(Upgrade { io: taken(&mut response)?, protocol: selected })
    }

    /// Sends a request. Any response but a switch of protocols is an error.
    async fn send(
        &self,
        method: Method,
        headers: &[(http::HeaderName, &str)],
    ) -> Result<http::Response<Body>, Refused> {
        let endpoint = &self.endpoint;
        let builder = RequestBuilder::new(&endpoint.resource, endpoint.target.clone()).subresource(self.subresource);
        let built = builder.query(&self.query).request(Verb::Get, Some(&self.pod), None);
        let mut request = built.map_err(Error::from)?;
        *request.method_mut() = method;
        let accept = request.headers_mut();
        accept.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            let value = HeaderValue::from_str(value);
            accept.append(name, value.map_err(|_| Error::new(ErrorKind::Invalid, "invalid header of an upgrade"))?);
        }
        // The server may have started a process even if its response is lost.
        request.extensions_mut().insert(Verb::Create);
        request.extensions_mut().insert(SendOptions { max_attempts: Some(1), ..SendOptions::default() });
        let response = endpoint.client.exchange(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// Reads a response that is no switch of protocols.
    async fn refused(&self, response: http::Response<Body>) -> Refused {
        let (code, encoding) = (response.status(), response::Encoding::of(&response));
        let reading = tokio::time::timeout(self.endpoint.client.timeout(), response.into_body().collect(MAX_REFUSAL));
        let body = reading.await.unwrap_or_else(|_| Ok(Bytes::new())).unwrap_or_default();
        let has_status = response::is_status(encoding, &body);
        let status = response::status(code, encoding, &body);
        let may_fall_back = code != StatusCode::UNAUTHORIZED && !(has_status && self.is_final(&status));
        let error = if code.is_success() {
            Error::new(ErrorKind::Transport, format!("server responded with {code} instead of switching protocols"))
        } else {
            Error::from(status)
        };
        Refused { error, may_fall_back }
    }

    /// Returns whether another protocol would get the same response: the user may not do this, or the pod is wrong.
    fn is_final(&self, status: &Status) -> bool {
        let names_pod = status.details.as_ref().is_some_and(|details| details.name == self.pod);
        status.is_unauthorized()
            || status.is_forbidden()
            || status.is_too_many_requests()
            || names_pod
            || status
                .message
                .split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '.'))
                .any(|word| word == self.pod)
    }
}

fn taken(response: &mut http::Response<Body>) -> Result<Box<dyn Io>, Refused> {
    let upgraded = response.extensions_mut().remove::<Upgraded>();
    upgraded.and_then(Upgraded::into_io).ok_or_else(|| {
        Error::new(ErrorKind::Transport, "transport of the client does not support upgraded connections").into()
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_upgrade_to(headers: &HeaderMap, protocol: &str) -> bool {
    let connection = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let is_upgrade =
        connection.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case("upgrade"));
    is_upgrade && text(headers, "upgrade").is_some_and(|value| value.eq_ignore_ascii_case(protocol))
}

const STREAM_PROTOCOL: http::HeaderName = http::HeaderName::from_static("x-stream-protocol-version");
/// Servers send a few hundred bytes.
const MAX_REFUSAL: usize = 64 << 10;
