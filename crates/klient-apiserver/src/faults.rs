//! Faults on purpose: what users test the failure paths of their controllers with.
//!
//! A fault is asked before each request, in the order in which faults were added; the first that fits is what happens.

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

/// Something that goes wrong.
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
pub struct Fault {
    action: Action,
    method: Option<Method>,
    path: Option<String>,
    watches: Option<bool>,
    matches: Option<Matches>,
    after: usize,
    times: Option<usize>,
}

/// Whether a request is meant, by its method, its path with the query, and its headers.
type Matches = Box<dyn Fn(&Method, &str, &HeaderMap) -> bool + Send + Sync>;

#[derive(Clone, Debug)]
enum Action {
    Answer(Box<Status>),
    Delay(Duration),
    Silence,
    Damage(Damage),
    NoBookmarks,
}

/// What a request meets.
pub(crate) enum Encounter {
    Answer(Box<Status>),
    Silence,
    Damage(Damage),
    NoBookmarks,
}

impl Fault {
    /// The request is not looked at: this is the answer.
    pub fn answer(status: Status) -> Self {
        Self::new(Action::Answer(Box::new(status)))
    }

    /// 409: someone else has changed the object.
    pub fn conflict() -> Self {
        Self::answer(Status::failure(StatusReason::Conflict, 409, "a conflict on purpose"))
    }

    /// 410: the version is no longer known.
    pub fn gone() -> Self {
        Self::answer(Status::expired("too old resource version, on purpose"))
    }

    /// 429, with the seconds to wait.
    pub fn too_many_requests(retry_after_seconds: i32) -> Self {
        Self::answer(Status::too_many_requests("too many requests, on purpose", retry_after_seconds))
    }

    /// 500.
    pub fn internal_error() -> Self {
        Self::answer(Status::internal_error("an error on purpose"))
    }

    /// The request is done, but later.
    pub fn delay(by: Duration) -> Self {
        Self::new(Action::Delay(by))
    }

    /// Nothing is done, and no answer ever comes.
    pub fn silence() -> Self {
        Self::new(Action::Silence)
    }

    /// The request is done, and the connection breaks after so many bytes of the answer's body.
    pub fn cut_after(bytes: usize) -> Self {
        Self::new(Action::Damage(Damage::CutAfter(bytes)))
    }

    /// The request is done, and after so many bytes of the answer's body nothing more comes.
    pub fn stall_after(bytes: usize) -> Self {
        Self::new(Action::Damage(Damage::StallAfter(bytes)))
    }

    /// The request is done, and one byte of the answer's body is another one.
    pub fn corrupt_at(byte: usize) -> Self {
        Self::new(Action::Damage(Damage::Flip(byte)))
    }

    /// Watches get no bookmarks.
    pub fn no_bookmarks() -> Self {
        Self { watches: Some(true), ..Self::new(Action::NoBookmarks) }
    }

    fn new(action: Action) -> Self {
        Self { action, method: None, path: None, watches: None, matches: None, after: 0, times: None }
    }

    /// Only of requests with this method.
    #[must_use]
    pub fn on_method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only of requests whose path begins so.
    #[must_use]
    pub fn on_path(mut self, prefix: impl Into<String>) -> Self {
        self.path = Some(prefix.into());
        self
    }

    /// Only of watches, or only of anything else.
    #[must_use]
    pub fn on_watches(mut self, watches: bool) -> Self {
        self.watches = Some(watches);
        self
    }

    /// Only of requests for which a function says yes: given method, path with query, and headers.
    #[must_use]
    pub fn when(mut self, matches: impl Fn(&Method, &str, &HeaderMap) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Some(Box::new(matches));
        self
    }

    /// Only after so many requests that fit have passed.
    #[must_use]
    pub fn after(mut self, requests: usize) -> Self {
        self.after = requests;
        self
    }

    /// So many times and then no more; without end otherwise.
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

/// All faults of a server, and what it was asked.
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

    /// Counts a request, and says what it meets.
    pub(crate) async fn meet(&self, call: &Call) -> Option<Encounter> {
        let place = (call.method.to_string(), call.path.clone());
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(place).or_default() += 1;
        match self.next(call)? {
            Action::Delay(by) => {
                tokio::time::sleep(by).await;
                None
            }
            Action::Answer(status) => Some(Encounter::Answer(status)),
            Action::Silence => Some(Encounter::Silence),
            Action::Damage(damage) => Some(Encounter::Damage(damage)),
            Action::NoBookmarks => Some(Encounter::NoBookmarks),
        }
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

/// Damages the body of an answer.
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
