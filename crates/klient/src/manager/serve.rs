//! The HTTP server of a manager: `/healthz`, `/readyz`, `/metrics`, `/debug/klient`, and the program's own routes.
//!
//! `/readyz?verbose` lists the checks, `/readyz/NAME` runs one, and `?exclude=NAME` leaves one out, as in kube-apiserver.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    debug::{self, Debug, PageBody},
    health::{Check, Report},
    route::{Handler, Route},
};
use crate::metrics::{Registry, has_exemplars};

/// The endpoints of a manager.
pub(super) struct Endpoints {
    pub(super) debug: Option<Arc<Debug>>,
    pub(super) liveness: Vec<Check>,
    pub(super) readiness: Vec<Check>,
    pub(super) registry: Registry,
    pub(super) routes: Vec<Route>,
}

/// Serves requests until it is dropped, which closes all connections.
pub(super) async fn serve(listener: TcpListener, endpoints: Arc<Endpoints>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let endpoints = Arc::clone(&endpoints);
                    connections.spawn(async move {
                        let service = service_fn(move |request: Request<Incoming>| {
                            let endpoints = Arc::clone(&endpoints);
                            async move { Ok::<_, Infallible>(endpoints.respond(request, peer).await) }
                        });
                        let serving = http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(HEADER_TIMEOUT)
                            .serve_connection(TokioIo::new(stream), service);
                        // Errors of a connection are the peer's: it may close or reset the connection at any time.
                        let _ = serving.await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept connection, retrying");
                    // The process may be out of file descriptors: an immediate retry would spin.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

impl Endpoints {
    async fn respond(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<PageBody> {
        if let Some(debug) = self.debug.as_ref().filter(|_| debug::is_below(request.uri().path())) {
            return Arc::clone(debug).respond(request.map(drop), peer).await;
        }
        let response = match Route::find(&self.routes, request.uri().path()) {
            Some(handler) => call(&handler, request).await,
            None => self.respond_built_in(&request),
        };
        response.map(PageBody::Full)
    }

    fn respond_built_in(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (method, uri) = (request.method(), request.uri());
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
        }
        let path = uri.path().trim_end_matches('/');
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let (endpoint, check) = (parts.next().unwrap_or_default(), parts.next());
        match (endpoint, check) {
            ("healthz" | "livez", check) => health(&self.liveness, check, uri.query().unwrap_or_default()),
            ("readyz", check) => health(&self.readiness, check, uri.query().unwrap_or_default()),
            ("metrics", None) if has_exemplars() && accepts_open_metrics(request) => {
                let mut response = text(StatusCode::OK, self.registry.render_open_metrics());
                response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(OPEN_METRICS));
                response
            }
            ("metrics", None) => text(StatusCode::OK, self.registry.render()),
            _ => text(StatusCode::NOT_FOUND, "not found: use /healthz, /readyz or /metrics\n".to_owned()),
        }
    }
}

/// Reads the body of a request, and calls a handler with it.
async fn call(handler: &Handler, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => handler(Request::from_parts(parts, body.to_bytes())).await.map(Full::new),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            text(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes\n"))
        }
        Err(error) => text(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}\n")),
    }
}

fn health(checks: &[Check], only: Option<&str>, query: &str) -> Response<Full<Bytes>> {
    let parameters = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let excluded: Vec<&str> = match only {
        None => parameters().filter(|(name, _)| *name == "exclude").map(|(_, value)| value).collect(),
        Some(only) => {
            if !checks.iter().any(|check| check.name == only) {
                return text(StatusCode::NOT_FOUND, format!("check {only:?} not found\n"));
            }
            checks.iter().map(|check| check.name.as_str()).filter(|name| *name != only).collect()
        }
    };
    let report = Report::of(checks, &excluded);
    let verbose = parameters().any(|(name, _)| name == "verbose");
    match report.is_good() {
        true if verbose => text(StatusCode::OK, format!("{report}all checks passed\n")),
        true => text(StatusCode::OK, "ok".to_owned()),
        false => text(StatusCode::SERVICE_UNAVAILABLE, report.to_string()),
    }
}

fn text(code: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let plain = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn accepts_open_metrics(request: &Request<Incoming>) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.into_iter().any(|value| value.contains("application/openmetrics-text"))
}

/// The format of metrics with exemplars.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The largest body of a request to a route.
const MAX_BODY: usize = 4 << 20;
