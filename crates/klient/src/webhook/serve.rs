//! The TLS socket of a webhook server: HTTP/1.1 and HTTP/2.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONNECTION};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Webhooks,
    certificates::{Served, provider},
    service::MAX_BODY,
};
use crate::{Error, ErrorKind};

/// Accepts connections until `stop`, goes on for `linger` if any are open, and then finishes the requests in flight.
///
/// An API server keeps its connections, and sends the next request on one of them until it knows that the connection is closed. It does
/// not repeat a request that reaches a closed connection. So connections of HTTP/1.1 end by a response that says so, and new
/// ones are accepted while the service still names this process as an endpoint.
pub(super) async fn serve(
    listener: TcpListener,
    webhooks: Webhooks,
    served: Arc<Served>,
    linger: Duration,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let (phase, phases) = watch::channel(Phase::Serving);
    let accepting = Accepting { listener, acceptor: acceptor(served)?, webhooks, phases };
    let mut connections = JoinSet::new();
    accepting.run(&mut connections, stop).await;
    phase.send_replace(Phase::Lingering);
    if !connections.is_empty() {
        accepting.run(&mut connections, tokio::time::sleep(linger)).await;
    }
    phase.send_replace(Phase::Closing);
    drop(accepting);
    let drained = timeout(DRAIN, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "webhook requests did not end in time, closing connections");
    }
    Ok(())
}

/// The phases of a server, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Connections end after their next response.
    Lingering,
    /// Idle connections are closed.
    Closing,
}

/// A listening socket, and what its connections need.
struct Accepting {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    webhooks: Webhooks,
    phases: watch::Receiver<Phase>,
}

impl Accepting {
    async fn run(&self, connections: &mut JoinSet<()>, until: impl Future<Output = ()>) {
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (acceptor, webhooks) = (self.acceptor.clone(), self.webhooks.clone());
                        connections.spawn(connection(stream, acceptor, webhooks, self.phases.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to accept connection, retrying");
                        // The process may be out of file descriptors: an immediate retry would spin.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                () = &mut until => return,
            }
        }
    }
}

fn acceptor(served: Arc<Served>) -> Result<TlsAcceptor, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Config, "cannot set up TLS for webhooks").with_source(error))?
        .with_no_client_auth()
        .with_cert_resolver(served);
    // The API server offers http/1.1 alone for most webhooks, and rustls refuses a client without a common protocol.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, webhooks: Webhooks, mut phases: watch::Receiver<Phase>) {
    // Reviews are small, and wait for nothing.
    let _ = stream.set_nodelay(true);
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    // HTTP/2 has a message that asks a client to open another connection. It reaches clients that connected before.
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let last = if is_http2 && *phases.borrow() == Phase::Serving { Phase::Lingering } else { Phase::Closing };
    let phase = phases.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (webhooks, phase) = (webhooks.clone(), phase.clone());
        async move {
            let mut response = respond(&webhooks, request).await;
            if !is_http2 && *phase.borrow() != Phase::Serving {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(KEEP_ALIVE)).max_concurrent_streams(250);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    // Errors of a connection are the peer's: it may close or reset the connection at any time.
    tokio::select! {
        _ = serving.as_mut() => return,
        // An error means that the server was dropped.
        _ = phases.wait_for(|phase| *phase >= last) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

async fn respond(webhooks: &Webhooks, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let read = timeout(BODY, Limited::new(body, MAX_BODY + 1).collect()).await;
    match read {
        Ok(Ok(body)) => webhooks.handle(Request::from_parts(parts, body.to_bytes())).await.map(Full::new),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            refused(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {MAX_BODY} bytes"))
        }
        Ok(Err(error)) => refused(StatusCode::BAD_REQUEST, &format!("cannot read the body: {error}")),
        Err(_) => refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
    }
}

fn refused(code: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(message.as_bytes())));
    *response.status_mut() = code;
    response
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(30);
const BODY: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long requests in flight may take after the server has to stop.
const DRAIN: Duration = Duration::from_secs(25);
