//! Connections: credentials, hosts and limits, before the server sees a request.

use std::{io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use klient_core::{Status, StatusReason};
use klient_streams::Upgraded;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    ApiServer,
    access::{self, User, bearer, is_same_token},
    body::ResponseBody,
    negotiate::ResponseFormat,
    response,
    server::MAX_BODY,
};

/// The properties of a listening socket.
pub(super) struct Socket {
    pub(super) server: ApiServer,
    /// The token that was generated for this socket.
    pub(super) token: Arc<str>,
    pub(super) anonymous: bool,
    pub(super) is_plain: bool,
}

/// Accepts connections until it is dropped, which closes all of them.
pub(super) async fn accept(socket: Arc<Socket>, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Further clients wait until a connection is closed.
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(Arc::clone(&socket), stream, acceptor.clone()))),
                // The process may be out of file descriptors for a moment.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn connection(socket: Arc<Socket>, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    // Watch events are small and must not wait for more data.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => http(socket, stream, None).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            match handshake {
                Ok(Ok(stream)) => {
                    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                    let user = shown.and_then(|shown| access::subject(shown)).map(User::authenticated);
                    http(socket, stream, user).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        }
    }
}

async fn http(
    socket: Arc<Socket>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    user: Option<Arc<User>>,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1000).adaptive_window(true);
    let (sender, mut switched) = mpsc::unbounded_channel();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (socket, sender, user) = (Arc::clone(&socket), sender.clone(), user.clone());
        let upgrade = hyper::upgrade::on(&mut request);
        async move {
            let mut response = socket.respond(request, user).await;
            if let Some(upgraded) = response.extensions_mut().remove::<Upgraded>() {
                // The receiver lives as long as the connection.
                let _ = sender.send((upgrade, upgraded));
            }
            Ok::<_, io::Error>(response)
        }
    });
    if let Err(error) = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await {
        tracing::debug!(error, "connection closed");
    }
    // A connection switches to another protocol once, at its end.
    if let Some((upgrade, upgraded)) = switched.recv().await
        && let Ok(stream) = upgrade.await
    {
        upgraded.serve(TokioIo::new(stream)).await;
    }
}

impl Socket {
    /// Returns the user of a request with or without a token.
    fn user_of(&self, token: Option<&str>) -> Option<Arc<User>> {
        let known = token.and_then(|token| match is_same_token(token, &self.token) {
            true => Some(User::administrator()),
            false => self.server.user_of_token(token),
        });
        match token {
            _ if known.is_some() => known,
            _ if self.anonymous => Some(User::administrator()),
            None => self.server.has_rbac().then(User::anonymous),
            Some(_) => None,
        }
    }

    async fn respond(&self, request: Request<Incoming>, certified: Option<Arc<User>>) -> Response<ResponseBody> {
        let (mut parts, body) = request.into_parts();
        if self.is_plain && !is_this_machine(&parts) {
            let status = Status::failure(
                StatusReason::Forbidden,
                403,
                "the Host of a request over plain HTTP must be 127.0.0.1 or localhost",
            );
            return response::failure(&status, ResponseFormat::JSON);
        }
        // Before the body is read: an unauthenticated client may not send bodies.
        let Some(user) = certified.or_else(|| self.user_of(bearer(&parts.headers).as_deref())) else {
            return response::failure(&Status::unauthorized("Unauthorized"), ResponseFormat::JSON);
        };
        parts.extensions.insert(user);
        let gzip = parts.headers.get(http::header::ACCEPT_ENCODING).is_some_and(|value| {
            value.to_str().is_ok_and(|value| value.split(',').any(|encoding| encoding.trim() == "gzip"))
        });
        let body = match tokio::time::timeout(BODY_LIMIT, read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => {
                let status = Status::bad_request(format!("the request's body could not be read: {error}"));
                return response::failure(&status, ResponseFormat::JSON);
            }
            Err(_) => {
                let message = format!("the request's body did not arrive within {} s", BODY_LIMIT.as_secs());
                let status = Status::failure(StatusReason::Timeout, 408, message);
                return response::failure(&status, ResponseFormat::JSON);
            }
        };
        let response = self.server.handle(Request::from_parts(parts, body)).await;
        if gzip { response::compressed(response) } else { response }
    }
}

/// Returns whether the host of a request is a loopback address or name.
fn is_this_machine(parts: &http::request::Parts) -> bool {
    let header = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let authority = header.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
    let Some(authority) = authority.and_then(|host| host.parse::<http::uri::Authority>().ok()) else { return false };
    matches!(authority.host(), "127.0.0.1" | "localhost" | "[::1]")
}

/// Reads a body up to the size limit. The rest is read and discarded: a client that is still
/// sending when the connection is closed may never see the response.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut kept = BytesMut::new();
    let mut forgotten = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if kept.len() <= MAX_BODY {
            kept.extend_from_slice(&data);
        } else {
            forgotten += data.len();
        }
        if forgotten > MAX_FORGOTTEN {
            break;
        }
    }
    Ok(kept.freeze())
}

/// The number of bytes of a too large body that are read and discarded.
const MAX_FORGOTTEN: usize = 64 << 20;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The longest time that a request's body may take to arrive.
const BODY_LIMIT: Duration = Duration::from_secs(60);
/// The largest number of open connections of one socket.
const MAX_CONNECTIONS: usize = 1000;
