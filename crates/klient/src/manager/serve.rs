//! Health and metrics over HTTP: `/healthz`, `/readyz`, `/metrics`.
//!
//! `/readyz?verbose` lists the checks, `/readyz/NAME` runs one, `?exclude=NAME` leaves one out, as kube-apiserver has it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, task::JoinSet};

use super::health::{Check, Report};
use crate::metrics::Registry;

/// What is asked for over HTTP.
pub(super) struct Pages {
    pub(super) liveness: Vec<Check>,
    pub(super) readiness: Vec<Check>,
    pub(super) registry: Registry,
}

/// Answers for ever; dropping it ends all connections.
pub(super) async fn serve(listener: TcpListener, pages: Arc<Pages>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let pages = Arc::clone(&pages);
                    connections.spawn(async move {
                        let answer = service_fn(move |request: Request<Incoming>| {
                            let response = pages.answer(request.method(), request.uri());
                            async move { Ok::<_, Infallible>(response) }
                        });
                        let serving = http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(HEADER_TIMEOUT)
                            .serve_connection(TokioIo::new(stream), answer);
                        // What a peer does with its connection is its own business.
                        let _ = serving.await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection for health checks could not be taken");
                    // Files may have run out: trying at once would spin.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

impl Pages {
    fn answer(&self, method: &Method, uri: &http::Uri) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        }
        let path = uri.path().trim_end_matches('/');
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let (page, check) = (parts.next().unwrap_or_default(), parts.next());
        match (page, check) {
            ("healthz" | "livez", check) => health(&self.liveness, check, uri.query().unwrap_or_default()),
            ("readyz", check) => health(&self.readiness, check, uri.query().unwrap_or_default()),
            ("metrics", None) => text(StatusCode::OK, self.registry.render()),
            _ => text(StatusCode::NOT_FOUND, "try /healthz, /readyz or /metrics\n".to_owned()),
        }
    }
}

fn health(checks: &[Check], only: Option<&str>, query: &str) -> Response<Full<Bytes>> {
    let parameters = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let excluded: Vec<&str> = match only {
        None => parameters().filter(|(name, _)| *name == "exclude").map(|(_, value)| value).collect(),
        Some(only) => {
            if !checks.iter().any(|check| check.name == only) {
                return text(StatusCode::NOT_FOUND, format!("there is no check {only:?}\n"));
            }
            checks.iter().map(|check| check.name.as_str()).filter(|name| *name != only).collect()
        }
    };
    let report = Report::of(checks, &excluded);
    let verbose = parameters().any(|(name, _)| name == "verbose");
    match report.is_good() {
        true if verbose => text(StatusCode::OK, format!("{report}all is well\n")),
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

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
