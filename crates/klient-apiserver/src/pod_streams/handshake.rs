//! The response that switches a connection to WebSocket or SPDY.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
};
use klient_core::{Status, StatusReason};
use klient_streams::{Io, Upgraded, handshake::accept_value};

use crate::{Result, body::ResponseBody, call::Call};

/// The protocol that a client requests.
pub(super) enum Requested {
    /// A WebSocket, with the subprotocol that both ends know.
    WebSocket { protocol: String },
    /// SPDY, with the stream protocol that both ends know.
    Spdy { protocol: String },
}

/// Selects the protocol of a session.
pub(super) fn select(call: &Call, websocket: &[&str], spdy: &[&str]) -> Result<Requested> {
    let upgrade = text(&call.headers, UPGRADE.as_str()).unwrap_or_default().to_ascii_lowercase();
    let chosen = |offered: &[&str], known: &[&str]| {
        offered.iter().find(|protocol| known.contains(protocol)).map(|protocol| (*protocol).to_owned())
    };
    match upgrade.as_str() {
        "websocket" if call.method == Method::GET => {
            let offered = text(&call.headers, SEC_WEBSOCKET_PROTOCOL.as_str()).unwrap_or_default();
            let offered: Vec<&str> = offered.split(',').map(str::trim).collect();
            let protocol = chosen(&offered, websocket).ok_or_else(|| {
                let message = format!("unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server accepts {websocket:?}");
                Box::new(Status::failure(StatusReason::BadRequest, 400, message))
            })?;
            Ok(Requested::WebSocket { protocol })
        }
        "spdy/3.1" => {
            let offered = call.headers.get_all(STREAM_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
            let offered: Vec<&str> = offered.flat_map(|value| value.split(',')).map(str::trim).collect();
            if offered.is_empty() {
                return Err(Box::new(Status::bad_request(format!("upgrade requires {STREAM_PROTOCOL}"))));
            }
            let protocol = chosen(&offered, spdy).ok_or_else(|| {
                let message = format!("unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server accepts {spdy:?}");
                Box::new(Status::failure(StatusReason::Forbidden, 403, message))
            })?;
            Ok(Requested::Spdy { protocol })
        }
        _ => Err(Box::new(Status::bad_request("Upgrade request required"))),
    }
}

/// Returns the response that switches to a protocol. The function serves the connection afterwards.
pub(super) fn switch<F, A>(call: &Call, requested: &Requested, serve: F) -> Response<ResponseBody>
where
    F: FnOnce(Box<dyn Io>) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let mut response = Response::new(ResponseBody::whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    match requested {
        Requested::WebSocket { protocol } => {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            let key = text(&call.headers, SEC_WEBSOCKET_KEY.as_str()).unwrap_or_default();
            put(headers, SEC_WEBSOCKET_ACCEPT.as_str(), &accept_value(key));
            put(headers, SEC_WEBSOCKET_PROTOCOL.as_str(), protocol);
        }
        Requested::Spdy { protocol } => {
            headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
            put(headers, STREAM_PROTOCOL, protocol);
        }
    }
    response.extensions_mut().insert(Upgraded::served_by(serve));
    response
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

const STREAM_PROTOCOL: &str = "x-stream-protocol-version";
