//! Peers: the webhooks that the server calls, by URL, by service, or as a function in this process.
//!
//! A service is resolved by a table that tests fill. The errors have the texts of the real server, which come from Go's HTTP client.

mod connection;
mod location;
mod problem;
mod trust;

use std::{
    collections::HashMap,
    fmt,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError, RwLock},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, header};

use self::connection::{Idle, Route};
pub(crate) use self::location::{Location, Place};
use crate::{server::Core, store::Stored};

/// A function that serves a webhook in this process.
pub(crate) type Handler =
    Arc<dyn Fn(Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send>> + Send + Sync>;

/// The backends of services, and open connections.
#[derive(Default)]
pub(crate) struct Peers {
    services: RwLock<HashMap<String, Backend>>,
    idle: Mutex<HashMap<Route, Vec<Idle>>>,
}

/// The backend of a service.
#[derive(Clone)]
pub(crate) enum Backend {
    Handler(Handler),
    Address(std::net::SocketAddr),
}

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The client cannot be built.
    Client(String),
    /// The call failed.
    Call(String),
}

impl Peers {
    /// Sets the backend of a service, which is named as `namespace/name`.
    pub(crate) fn set_service(&self, service: &str, backend: Backend) {
        self.services.write().unwrap_or_else(PoisonError::into_inner).insert(service.to_owned(), backend);
    }

    fn backend(&self, service: &str) -> Option<Backend> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).get(service).cloned()
    }

    fn take_idle(&self, route: &Route) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(route)?;
        std::iter::from_fn(|| connections.pop()).find(Idle::is_open)
    }

    fn return_idle(&self, route: &Route, connection: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MAX_ROUTES {
            idle.clear();
        }
        let connections = idle.entry(route.clone()).or_default();
        if connections.len() < MAX_IDLE {
            connections.push(connection);
        }
    }
}

impl Core {
    /// Posts a review to a peer, and returns the body of its response.
    pub(crate) async fn post_review(
        &self,
        location: &Location,
        agent: &'static str,
        timeout: Duration,
        body: Bytes,
    ) -> Result<Bytes, CallError> {
        let query = format!("timeout={}s", timeout.as_secs().max(1));
        let url = location.url(&query);
        let failed = |why: String| CallError::Call(format!("Post \"{url}\": {why}"));
        let backend = match &location.place {
            Place::Service { namespace, name, .. } => self.peers.backend(&format!("{namespace}/{name}")),
            Place::Url { scheme, authority, .. } => self.peers.backend(&format!("{scheme}://{authority}")),
        };
        let request = request(location, &query, agent, body);
        if let Some(Backend::Handler(handler)) = backend {
            // There is no TLS, but a bundle without certificates is an error all the same.
            location.trust().map_err(CallError::Client)?;
            let answered = tokio::time::timeout(timeout, unwind(handler(request))).await;
            let response = answered.map_err(|_| failed(DEADLINE.to_owned()))?;
            let response = response.ok_or_else(|| failed("EOF".to_owned()))?;
            return body_of(response);
        }
        let route = self.route(location, backend).map_err(|error| match error {
            CallError::Call(why) => failed(why),
            other => other,
        })?;
        let exchange = async {
            if let Some(mut connection) = self.peers.take_idle(&route) {
                // The peer may have closed it at the same time. Only then the request is sent on a new connection.
                match connection.send(request.clone()).await {
                    Ok(response) => return Ok((response, connection)),
                    Err(problem) if problem.was_unsent => {}
                    Err(problem) => return Err(problem.text),
                }
            }
            let mut connection = Idle::open(&route).await?;
            let response = connection.send(request).await.map_err(|problem| problem.text)?;
            Ok((response, connection))
        };
        let answered = tokio::time::timeout(timeout, exchange).await;
        let (response, connection) = answered.map_err(|_| failed(DEADLINE.to_owned()))?.map_err(failed)?;
        self.peers.return_idle(&route, connection);
        body_of(response)
    }

    /// Returns where to connect to.
    fn route(&self, location: &Location, backend: Option<Backend>) -> Result<Route, CallError> {
        let trust = location.trust().map_err(CallError::Client)?;
        match (&location.place, backend) {
            (Place::Url { host, port, .. }, _) => Ok(Route::new(host.clone(), *port, host.clone(), trust)),
            (Place::Service { namespace, name, .. }, Some(Backend::Address(address))) => {
                let server = format!("{name}.{namespace}.svc");
                Ok(Route::new(address.ip().to_string(), address.port(), server, trust))
            }
            (Place::Service { namespace, name, port, .. }, _) => {
                let service = self.store.get("services", &format!("{namespace}/{name}"));
                Err(CallError::Call(unresolved(name, *port, service.as_deref())))
            }
        }
    }
}

/// Returns why a service without a backend has no address.
fn unresolved(name: &str, port: u16, service: Option<&Stored>) -> String {
    let Some(service) = service else { return format!("service \"{name}\" not found") };
    let service = service.value();
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    if !ports.any(|found| found["port"] == port) {
        return format!("no service port {port} found for service \"{name}\"");
    }
    format!("no endpoints available for service \"{name}\"")
}

fn request(location: &Location, query: &str, agent: &'static str, body: Bytes) -> Request<Bytes> {
    let path = location.path();
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = format!("{path}?{query}").parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, http::HeaderValue::from_static("application/json, */*"));
    headers.insert(header::USER_AGENT, http::HeaderValue::from_static(agent));
    if let Ok(host) = location.authority().parse() {
        headers.insert(header::HOST, host);
    }
    request
}

/// Returns the body of a successful response, or client-go's error for another one.
fn body_of(response: Response<Bytes>) -> Result<Bytes, CallError> {
    let code = response.status().as_u16();
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if (200..=206).contains(&code) && response.body().is_empty() {
        let content_type = content_type.unwrap_or_default();
        let why = format!("0-length response with status code: {code} and content type: {content_type}");
        return Err(CallError::Call(why));
    }
    if (200..=206).contains(&code) {
        return Ok(response.into_body());
    }
    let is_text = content_type.is_none_or(|value| value.is_empty() || value.starts_with("text/"));
    Err(CallError::Call(problem::of_response(code, is_text, response.body())))
}

/// Polls a future, and returns nothing if it panics.
async fn unwind<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(why) => write!(f, "could not get REST client: {why}"),
            Self::Call(why) => f.write_str(why),
        }
    }
}

const DEADLINE: &str = "context deadline exceeded";
/// The number of idle connections to one peer.
const MAX_IDLE: usize = 25;
/// The number of peers whose connections are cached, as on the real server.
const MAX_ROUTES: usize = 200;
