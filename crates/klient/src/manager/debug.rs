//! The debug page of a manager: a live view of controllers, informers and keys on `/debug/klient`.
//!
//! The page is three static files and a JSON interface (`/debug/klient/v1/...`), which `klient why`, `klient top` and
//! `klient informers` use as well. What must hold: no response with data is sent before [`access`] allowed the request; nothing is computed
//! while no client is connected, apart from a sample of a few numbers every five seconds; the number of clients and the
//! size of every response are bounded.

mod access;
mod events;
mod fights;
mod report;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use klient_core::ObjectKey;
use tokio::{sync::Semaphore, time::Instant};

pub(super) use self::events::PageBody;
use self::{
    access::{Access, Refusal},
    events::EventBody,
    fights::Fights,
    report::Reporter,
};
use super::part::{AnyController, AnyElector, AnyInformer};
use crate::{client::Client, controller::HistoryLimits, metrics::Registry, shard::Shards};

/// The path of the page.
pub(super) const PATH: &str = "/debug/klient";

/// The options of a manager's debug page: who sees it, and how much it remembers.
///
/// The page shows names of objects, numbers and messages of errors, and no content of objects.
///
/// ```no_run
/// use klient::{Client, manager::DebugPage};
///
/// # fn choose(client: Client) {
/// let on_my_machine = DebugPage::local();
/// let in_a_cluster = DebugPage::authorized_by(client);
/// # }
/// ```
pub struct DebugPage {
    access: Access,
    pub(super) history: HistoryLimits,
    client: Option<Client>,
}

impl DebugPage {
    /// Serves the page to clients on the same machine, or in the same pod: a port-forward ends there as well.
    ///
    /// A request must come from a loopback address, name a loopback host, and must not have passed a proxy. So pages of other sites
    /// in a browser cannot read it, and neither can clients behind a sidecar that marks what it forwards.
    pub fn local() -> Self {
        Self { access: Access::local(), history: HistoryLimits::default(), client: None }
    }

    /// Serves the page to clients with a bearer token whose user may `get` the non-resource URL `/debug/klient`.
    ///
    /// Tokens are reviewed by the API server (`TokenReview`, then `SubjectAccessReview`), so that the client needs permission to create
    /// both: the cluster role `system:auth-delegator` has it. A decision is cached for a minute, and a refusal for five seconds. The
    /// manager serves plain HTTP: use a port-forward, or a proxy with TLS, wherever others can read the network.
    #[doc(alias = "WithAuthenticationAndAuthorization")]
    pub fn authorized_by(client: Client) -> Self {
        Self { access: Access::reviewed(client.clone()), history: HistoryLimits::default(), client: Some(client) }
    }

    /// Sets the limits of the history of each controller.
    #[must_use]
    pub fn history(mut self, limits: HistoryLimits) -> Self {
        self.history = limits;
        self
    }

    /// Watches objects that a key's turns write again and again while the story of that key is shown, to find the field managers that
    /// fight over a field. [`authorized_by`](Self::authorized_by) sets its client for this, too.
    #[must_use]
    pub fn watching_with(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }
}

impl std::fmt::Debug for DebugPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugPage").field("history", &self.history).finish_non_exhaustive()
    }
}

/// The page of a running manager.
pub(super) struct Debug {
    access: Access,
    reporter: Reporter,
    fights: Option<Fights>,
    streams: Arc<Semaphore>,
    /// The last snapshot, which all event streams share.
    latest: Mutex<Option<(Instant, Bytes)>>,
}

/// Returns whether a path is that of the page or below it.
pub(super) fn is_below(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Debug {
    pub(super) fn new(
        page: DebugPage,
        controllers: &[Arc<dyn AnyController>],
        informers: &[Arc<dyn AnyInformer>],
        elector: Option<&Arc<dyn AnyElector>>,
        shards: Option<&Shards>,
        registry: &Registry,
    ) -> Arc<Self> {
        Arc::new(Self {
            access: page.access,
            reporter: Reporter::new(controllers, informers, elector, shards, registry),
            fights: page.client.as_ref().map(Fights::new),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            latest: Mutex::new(None),
        })
    }

    /// Takes samples of the controllers until it is dropped.
    pub(super) async fn sample(self: Arc<Self>) -> std::convert::Infallible {
        let mut interval = tokio::time::interval(SAMPLE_PERIOD);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.reporter.sample();
        }
    }

    /// Responds to a request for the page or for its data.
    pub(super) async fn respond(self: Arc<Self>, request: Request<()>, peer: SocketAddr) -> Response<PageBody> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        }
        if request.uri().query().is_some_and(|query| query.len() > MAX_QUERY) {
            return text(StatusCode::URI_TOO_LONG, "the query is too long\n");
        }
        let path = request.uri().path().strip_prefix(PATH).unwrap_or_default();
        if let Err(refusal) = self.access.check_origin(request.headers(), peer) {
            return refused(&refusal);
        }
        // The files are the same in every program, and contain no data: a browser loads them before it has a token.
        match path {
            "" | "/" => return file("text/html; charset=utf-8", include_str!("debug/page.html")),
            "/page.js" => return file("text/javascript; charset=utf-8", include_str!("debug/page.js")),
            "/page.css" => return file("text/css; charset=utf-8", include_str!("debug/page.css")),
            _ => {}
        }
        if let Err(refusal) = self.access.check_user(request.headers()).await {
            return refused(&refusal);
        }
        self.respond_with_data(path, request.uri())
    }

    fn respond_with_data(self: Arc<Self>, path: &str, uri: &Uri) -> Response<PageBody> {
        match path {
            "/v1/status" => json(self.snapshot()),
            "/v1/events" => match Arc::clone(&self.streams).try_acquire_owned() {
                Ok(permit) => events(EventBody::new(self, permit)),
                Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "too many clients watch this page: close one\n"),
            },
            "/v1/why" => match parameter(uri, "key").map(|key| key.parse::<ObjectKey>()) {
                Some(Ok(key)) => {
                    let stories =
                        self.reporter.stories(&key, parameter(uri, "controller").as_deref(), self.fights.as_ref());
                    json(Bytes::from(serde_json::to_vec(&stories).unwrap_or_default()))
                }
                Some(Err(error)) => text(StatusCode::BAD_REQUEST, &format!("invalid key: {error}\n")),
                None => text(StatusCode::BAD_REQUEST, "no key: use ?key=NAMESPACE/NAME\n"),
            },
            "/v1/keys" => {
                let search = parameter(uri, "search").unwrap_or_default();
                let limit = parameter(uri, "limit").and_then(|limit| limit.parse().ok()).unwrap_or(50);
                let found = self.reporter.search(&search, usize::min(limit, MAX_FOUND));
                json(Bytes::from(serde_json::to_vec(&found).unwrap_or_default()))
            }
            _ => text(StatusCode::NOT_FOUND, "not found: use v1/status, v1/events, v1/why?key= or v1/keys?search=\n"),
        }
    }

    /// Returns the state of the process as JSON. It is computed at most twice a second, however many clients there are.
    fn snapshot(&self) -> Bytes {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, bytes)) = &*latest
            && at.elapsed() < SNAPSHOT_AGE
        {
            return bytes.clone();
        }
        let bytes = Bytes::from(serde_json::to_vec(&self.reporter.snapshot()).unwrap_or_default());
        *latest = Some((Instant::now(), bytes.clone()));
        bytes
    }
}

/// Returns the decoded value of a parameter of the query.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, value) = pairs.into_iter().find(|(known, _)| *known == name)?;
    let spaced = value.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

fn refused(refusal: &Refusal) -> Response<PageBody> {
    let mut response = text(refusal.code, &refusal.message);
    if refusal.code == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn text(code: StatusCode, message: &str) -> Response<PageBody> {
    let mut response = file("text/plain; charset=utf-8", message.to_owned());
    *response.status_mut() = code;
    response
}

fn json(body: Bytes) -> Response<PageBody> {
    file("application/json", body)
}

fn file(content_type: &'static str, body: impl Into<Bytes>) -> Response<PageBody> {
    with_headers(content_type, PageBody::Full(Full::new(body.into())))
}

fn events(body: EventBody) -> Response<PageBody> {
    with_headers("text/event-stream", PageBody::Events(Box::new(body)))
}

fn with_headers(content_type: &'static str, body: PageBody) -> Response<PageBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, content_type);
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// The page loads its own files only, runs no inline script, and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The number of clients that follow the page at the same time.
const MAX_STREAMS: usize = 16;
/// The longest query of a request.
const MAX_QUERY: usize = 2048;
/// The number of keys that a search returns at most.
const MAX_FOUND: usize = 500;
/// The time for which a snapshot is shared.
const SNAPSHOT_AGE: Duration = Duration::from_millis(500);
/// The time between two samples.
const SAMPLE_PERIOD: Duration = Duration::from_secs(5);
