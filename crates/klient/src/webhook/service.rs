//! A set of webhooks as a function from HTTP requests to responses.

use std::{
    any::Any,
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use klient_core::Resource;
use serde_json::Value;
use tracing::Instrument;

use super::{
    Hook,
    access::AccessHook,
    admission::{self, Problem},
    metrics::HookMetrics,
    registration::{AnyVersions, Place},
};
use crate::{
    custom::{ConversionReview, CustomResourceExt, Versions},
    metrics::Registry,
};

/// A set of webhooks, and where they are served. Clones refer to the same webhooks.
#[derive(Clone)]
pub struct Webhooks {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) hooks: Vec<Named>,
    pub(super) versions: Vec<Arc<dyn AnyVersions>>,
    access: Vec<(String, Arc<AccessHook>)>,
    registry: Option<Registry>,
    endpoints: Arc<OnceLock<HashMap<String, Endpoint>>>,
}

/// A hook with its unique name and path.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) hook: Arc<Hook>,
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send>>;

/// A handler at a path.
struct Endpoint {
    respond: Arc<dyn Fn(Vec<u8>) -> Answering + Send + Sync>,
    limit: Duration,
    metrics: HookMetrics,
}

impl Webhooks {
    /// Creates an empty set. Its registrations have this name.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            place: Place::Service { namespace: "default".to_owned(), name: name.clone(), port: 443 },
            name,
            hooks: Vec::new(),
            versions: Vec::new(),
            access: Vec::new(),
            registry: None,
            endpoints: Arc::default(),
        }
    }

    /// Registers the webhooks by a service; by default one with the name of the set, in the namespace `default`.
    #[must_use]
    pub fn service(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.place = Place::Service { namespace: namespace.into(), name: name.into(), port: 443 };
        self
    }

    /// Sets the port of the service; 443 by default. A set that is registered by URL has none.
    #[must_use]
    pub fn service_port(mut self, number: u16) -> Self {
        if let Place::Service { port, .. } = &mut self.place {
            *port = number;
        }
        self
    }

    /// Registers the webhooks by URL, such as `https://127.0.0.1:9443`, for a program outside of the cluster.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.place = Place::Url(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Adds a webhook.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        let unique = |wanted: String, taken: &dyn Fn(&str) -> bool| {
            let numbered = |number: usize| match wanted.split_once('.') {
                Some((first, rest)) => format!("{first}-{number}.{rest}"),
                None => format!("{wanted}-{number}"),
            };
            let candidates = std::iter::once(wanted.clone()).chain((2..).map(numbered));
            candidates.into_iter().find(|name| !taken(name)).unwrap_or(wanted.clone())
        };
        let name = unique(hook.name_text(), &|name| self.hooks.iter().any(|other| other.name == name));
        let path = unique(hook.path_text(), &|path| self.hooks.iter().any(|other| other.path == path));
        self.hooks.push(Named { name, path, hook: Arc::new(hook) });
        self.changed()
    }

    /// Converts between the versions of a custom kind, at the path `/convert`. The definition gets the conversion.
    #[must_use]
    pub fn convert<Hub: Resource + CustomResourceExt>(mut self, versions: Versions<Hub>) -> Self {
        self.versions.push(Arc::new(versions));
        self.changed()
    }

    /// Serves reviews of tokens or of access at a path. The API server's own configuration names it, so there is no registration.
    #[must_use]
    pub fn access(mut self, path: impl Into<String>, hook: AccessHook) -> Self {
        self.access.push((path.into(), Arc::new(hook)));
        self.changed()
    }

    /// Sets the registry of metrics; the global one by default.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self.changed()
    }

    fn changed(mut self) -> Self {
        self.endpoints = Arc::default();
        self
    }

    /// Responds to a request as the server over TLS does, for tests and for other servers.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        let Some(endpoint) = self.endpoints().get(path) else {
            return plain(StatusCode::NOT_FOUND, format!("no webhook is served at {path}"));
        };
        let started = Instant::now();
        endpoint.metrics.in_flight.add(1);
        let span = tracing::debug_span!("webhook", path);
        let response = endpoint.respond(request).instrument(span).await;
        endpoint.metrics.in_flight.add(-1);
        endpoint.metrics.latency.observe_duration(started.elapsed());
        endpoint.metrics.responded(response.status().as_u16());
        response
    }

    /// Returns the webhooks as a function, for the embedded API server's `webhook_service` and for other servers.
    pub fn into_service(
        self,
    ) -> impl Fn(Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send>> + Send + Sync + Clone {
        move |request| {
            let webhooks = self.clone();
            Box::pin(async move { webhooks.handle(request).await })
        }
    }

    fn endpoints(&self) -> &HashMap<String, Endpoint> {
        self.endpoints.get_or_init(|| {
            let registry = self.registry.as_ref().unwrap_or_else(|| Registry::global());
            let mut endpoints = HashMap::new();
            let mut add = |path: &str, limit, respond| {
                let metrics = HookMetrics::new(registry, path);
                endpoints.insert(path.to_owned(), Endpoint { respond, limit, metrics });
            };
            for Named { path, hook, .. } in &self.hooks {
                let (hook, limit) = (Arc::clone(hook), hook.limit());
                let respond = Arc::new(move |body: Vec<u8>| {
                    let hook = Arc::clone(&hook);
                    Box::pin(async move { admission::respond(&hook.handler, &body).await }) as Answering
                });
                add(path, limit, respond as _);
            }
            for (path, hook) in &self.access {
                add(path, MAX_LIMIT, Arc::clone(&hook.respond));
            }
            if !self.versions.is_empty() {
                let versions = self.versions.clone();
                let respond = Arc::new(move |body: Vec<u8>| {
                    Box::pin(std::future::ready(converted(&versions, &body))) as Answering
                });
                add(CONVERT, MAX_LIMIT, respond as _);
            }
            endpoints
        })
    }
}

impl Endpoint {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "use POST".to_owned());
        }
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !content_type.eq_ignore_ascii_case("application/json") {
            let message = format!("content type {content_type:?} is not supported: use application/json");
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        if request.body().len() > MAX_BODY {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes"));
        }
        let limit = given_limit(request.uri().query().unwrap_or_default()).unwrap_or(self.limit).min(MAX_LIMIT);
        // The response must arrive before the server gives up.
        let limit = limit.mul_f64(0.95);
        let body = request.into_body().to_vec();
        match tokio::time::timeout(limit, caught(|| (self.respond)(body))).await {
            Ok(Ok(Ok(review))) => json(&review),
            Ok(Ok(Err(Problem::Undecodable(why)))) => plain(StatusCode::BAD_REQUEST, why),
            Ok(Ok(Err(Problem::Failed(error)))) => {
                tracing::warn!(%error, "webhook failed");
                plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
            Ok(Err(panic)) => {
                self.metrics.panics.increment();
                tracing::error!(panic, "webhook panicked");
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("the handler panicked: {panic}"))
            }
            Err(_) => {
                tracing::warn!(?limit, "webhook timed out");
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("the handler did not respond within {limit:.1?}"))
            }
        }
    }
}

/// Converts the objects of a review.
fn converted(versions: &[Arc<dyn AnyVersions>], body: &[u8]) -> Result<Value, Problem> {
    let review: ConversionReview = serde_json::from_slice(body).map_err(|error| Problem::undecodable(&error))?;
    let is_known = review.kind == "ConversionReview" && review.api_version == "apiextensions.k8s.io/v1";
    if !is_known {
        let (kind, version) = (&review.kind, &review.api_version);
        let expected = "expected a ConversionReview of apiextensions.k8s.io/v1";
        return Err(Problem::Undecodable(format!("{expected}, found {kind:?} of {version:?}")));
    }
    let Some(request) = &review.request else {
        return Err(Problem::Undecodable("the review has no request".to_owned()));
    };
    let kind = request.objects.first().and_then(|object| object["kind"].as_str()).unwrap_or_default();
    let found = versions.iter().find(|versions| versions.has(&request.desired_api_version, kind));
    let Some(found) = found else {
        let version = &request.desired_api_version;
        return Err(Problem::Failed(format!("no conversion is known to {version} of {kind}").into()));
    };
    serde_json::to_value(found.convert_review(review)).map_err(|error| Problem::undecodable(&error))
}

/// Runs a future, and returns the message of a panic.
async fn caught<T>(start: impl FnOnce() -> Pin<Box<dyn Future<Output = T> + Send>>) -> Result<T, String> {
    let future = catch_unwind(AssertUnwindSafe(start)).map_err(|panic| message_of(&*panic))?;
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(message_of(&*panic))),
    })
    .await
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Returns the time limit in the query of a request: `timeout=10s`.
fn given_limit(query: &str) -> Option<Duration> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let seconds: f64 = value.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero())
}

fn json(review: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(review.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn plain(code: StatusCode, message: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(message));
    *response.status_mut() = code;
    let content_type = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hooks: Vec<&str> = self.hooks.iter().map(|named| named.name.as_str()).collect();
        f.debug_struct("Webhooks").field("name", &self.name).field("hooks", &hooks).finish_non_exhaustive()
    }
}

/// The path of conversions.
pub(super) const CONVERT: &str = "/convert";
/// The size limit of a review, which has two objects of up to 3 MiB each.
pub(super) const MAX_BODY: usize = 10 << 20;
/// The longest time that the server waits for a webhook.
const MAX_LIMIT: Duration = Duration::from_secs(30);
