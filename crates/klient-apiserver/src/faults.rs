//! Injected faults, to test how clients and controllers handle failures.
//!
//! Faults are matched against each request in the order in which they were added. The first match takes effect.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method};
use klient_core::{Status, StatusReason};

use crate::{
    body::{Damage, ResponseBody},
    call::Call,
};

/// A failure to inject into requests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), klient_apiserver::StartError> {
/// use bytes::Bytes;
/// use klient_apiserver::{ApiServer, Fault};
///
/// let server = ApiServer::start().await?;
/// server.inject(Fault::too_many_requests(1).on_path("/api/v1/namespaces").times(1));
/// let ask = || http::Request::get("/api/v1/namespaces").body(Bytes::new()).unwrap();
/// assert_eq!(server.handle(ask()).await.status(), 429);
/// assert_eq!(server.handle(ask()).await.status(), 200);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "PrependReactor")]
#[doc(alias = "interceptor")]
pub struct Fault {
    action: Action,
    method: Option<Method>,
    path: Option<String>,
    watches: Option<bool>,
    matches: Option<Matches>,
    after: usize,
    times: Option<usize>,
}

/// A function that decides by method, path with query, and headers whether a fault applies to a request.
type Matches = Box<dyn Fn(&Method, &str, &HeaderMap) -> bool + Send + Sync>;

#[derive(Clone, Debug)]
enum Action {
    Respond(Box<Status>),
    Delay(Duration),
    Silence,
    Damage(Damage),
    NoBookmarks,
}

/// The effect of a fault on one request.
pub(crate) enum Encounter {
    Respond(Box<Status>),
    Silence,
    Damage(Damage),
    NoBookmarks,
}

impl Fault {
    /// Responds with `status` without handling the request.
    pub fn respond(status: Status) -> Self {
        Self::new(Action::Respond(Box::new(status)))
    }

    /// Responds with 409 Conflict, as if the object was modified.
    pub fn conflict() -> Self {
        Self::respond(Status::failure(StatusReason::Conflict, 409, "a conflict on purpose"))
    }

    /// Responds with 410 Gone, as if the resource version has expired.
    pub fn gone() -> Self {
        Self::respond(Status::expired("too old resource version, on purpose"))
    }

    /// Responds with 429 Too Many Requests and a `Retry-After` of this many seconds.
    pub fn too_many_requests(retry_after_seconds: i32) -> Self {
        Self::respond(Status::too_many_requests("too many requests, on purpose", retry_after_seconds))
    }

    /// Responds with 500 Internal Server Error.
    pub fn internal_error() -> Self {
        Self::respond(Status::internal_error("an error on purpose"))
    }

    /// Delays the request, then handles it.
    pub fn delay(by: Duration) -> Self {
        Self::new(Action::Delay(by))
    }

    /// Never responds, and does not handle the request.
    pub fn silence() -> Self {
        Self::new(Action::Silence)
    }

    /// Handles the request, and breaks the connection after this number of bytes of the response body.
    pub fn cut_after(bytes: usize) -> Self {
        Self::new(Action::Damage(Damage::CutAfter(bytes)))
    }

    /// Handles the request, and stalls after this number of bytes of the response body.
    pub fn stall_after(bytes: usize) -> Self {
        Self::new(Action::Damage(Damage::StallAfter(bytes)))
    }

    /// Handles the request, and changes one byte of the response body.
    pub fn corrupt_at(byte: usize) -> Self {
        Self::new(Action::Damage(Damage::Flip(byte)))
    }

    /// Sends no bookmarks to watches.
    pub fn no_bookmarks() -> Self {
        Self { watches: Some(true), ..Self::new(Action::NoBookmarks) }
    }

    fn new(action: Action) -> Self {
        Self { action, method: None, path: None, watches: None, matches: None, after: 0, times: None }
    }

    /// Applies the fault only to requests with this method.
    #[must_use]
    pub fn on_method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Applies the fault only to requests whose path starts with `path`.
    #[must_use]
    pub fn on_path(mut self, prefix: impl Into<String>) -> Self {
        self.path = Some(prefix.into());
        self
    }

    /// Applies the fault only to watches, or with `false` only to other requests.
    #[must_use]
    pub fn on_watches(mut self, watches: bool) -> Self {
        self.watches = Some(watches);
        self
    }

    /// Applies the fault only to requests for which `filter` returns true, given method, path with query, and headers.
    #[must_use]
    pub fn when(mut self, matches: impl Fn(&Method, &str, &HeaderMap) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Some(Box::new(matches));
        self
    }

    /// Lets this number of matching requests pass first.
    #[must_use]
    pub fn after(mut self, requests: usize) -> Self {
        self.after = requests;
        self
    }

    /// Applies the fault this number of times. Without a limit, it applies until the faults are cleared.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    fn fits(&self, call: &Call) -> bool {
        self.method.as_ref().is_none_or(|method| *method == call.method)
            && self.path.as_ref().is_none_or(|path| call.path.starts_with(path.as_str()))
            && self.watches.is_none_or(|watches| watches == call.is_watch())
            && self.matches.as_ref().is_none_or(|matches| matches(&call.method, &call.target(), &call.headers))
    }
}

/// The faults of a server, and its counts of requests.
#[derive(Default)]
pub(crate) struct Faults {
    faults: Mutex<Vec<Fault>>,
    requests: Mutex<BTreeMap<(String, String), u64>>,
}

impl Faults {
    pub(crate) fn add(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    pub(crate) fn clear(&self) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a request, and returns the effect of the first fault that applies.
    pub(crate) async fn meet(&self, call: &Call) -> Option<Encounter> {
        self.count((call.method.to_string(), call.path.clone()));
        match self.next(call)? {
            Action::Delay(by) => {
                tokio::time::sleep(by).await;
                None
            }
            Action::Respond(status) => Some(Encounter::Respond(status)),
            Action::Silence => Some(Encounter::Silence),
            Action::Damage(damage) => Some(Encounter::Damage(damage)),
            Action::NoBookmarks => Some(Encounter::NoBookmarks),
        }
    }

    fn count(&self, mut request: (String, String)) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= MAX_PATHS && !requests.contains_key(&request) {
            "other".clone_into(&mut request.1);
        }
        *requests.entry(request).or_default() += 1;
    }

    fn next(&self, call: &Call) -> Option<Action> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chosen = None;
        for (index, fault) in faults.iter_mut().enumerate() {
            if fault.times == Some(0) || !fault.fits(call) {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            if let Some(times) = &mut fault.times {
                *times -= 1;
            }
            chosen = Some((index, fault.action.clone()));
            break;
        }
        let (index, action) = chosen?;
        if faults[index].times == Some(0) {
            faults.remove(index);
        }
        Some(action)
    }
}

/// Damages the body of a response.
pub(crate) fn damage(response: http::Response<ResponseBody>, damage: Damage) -> http::Response<ResponseBody> {
    response.map(|body| body.damaged(damage))
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("action", &self.action)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("watches", &self.watches)
            .field("after", &self.after)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

/// The number of methods and paths that are counted each.
const MAX_PATHS: usize = 10_000;
