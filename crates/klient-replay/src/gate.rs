//! The gate between reconciles and the server: a request of a reconcile waits until the replay decides about it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use klient::{
    Error, ErrorKind,
    client::http::{Body, SendFuture, Transport},
    recording::current_turn,
};
use klient_apiserver::ApiServer;
use serde_json::Value;
use tokio::sync::oneshot;

/// The transport of a replay's client.
#[derive(Clone)]
pub(crate) struct Gate {
    server: ApiServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arrived>,
    done: Vec<Executed>,
}

/// A request that waits.
pub(crate) struct Arrived {
    pub(crate) turn: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The body, if it is JSON.
    pub(crate) body: Option<Value>,
    verdict: oneshot::Sender<Verdict>,
}

/// The decision about a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The server executes it.
    Execute,
    /// It receives this status.
    Respond(u16, Value),
    /// It receives no response.
    Fail(String),
}

/// The response of the server to a request.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) turn: u64,
    pub(crate) status: u16,
}

impl Gate {
    pub(crate) fn new(server: ApiServer) -> Self {
        Self { server, state: Arc::default() }
    }

    /// Takes a waiting request of a reconcile: the first one that fits, or the first one at all.
    pub(crate) fn take(&self, turn: u64, fits: impl Fn(&Arrived) -> bool) -> Option<Arrived> {
        let mut state = self.lock();
        let of_turn = |arrived: &Arrived| arrived.turn == turn && !arrived.verdict.is_closed();
        let found = state.waiting.iter().position(|arrived| of_turn(arrived) && fits(arrived));
        let found = found.or_else(|| state.waiting.iter().position(of_turn))?;
        state.waiting.remove(found)
    }

    /// Takes the responses that the server has sent since the last call.
    pub(crate) fn take_executed(&self, turn: u64) -> Vec<Executed> {
        self.lock().done.extract_if(.., |executed| executed.turn == turn).collect()
    }

    async fn pass(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let Some(turn) = current_turn() else {
            return Ok(self.server.handle(request).await.map(Body::new));
        };
        let (verdict, decided) = oneshot::channel();
        let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let body = serde_json::from_slice(request.body()).ok();
        let method = request.method().to_string();
        self.lock().waiting.push_back(Arrived { turn, method, path, body, verdict });
        match decided.await {
            Ok(Verdict::Execute) => {
                let response = self.server.handle(request).await;
                self.lock().done.push(Executed { turn, status: response.status().as_u16() });
                Ok(response.map(Body::new))
            }
            Ok(Verdict::Respond(code, status)) => {
                let body = Body::new(Full::new(Bytes::from(status.to_string())));
                let mut response = Response::builder().status(code).header("content-type", "application/json");
                if let Some(seconds) = status.pointer("/details/retryAfterSeconds").and_then(Value::as_i64) {
                    response = response.header("retry-after", seconds);
                }
                response.body(body).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
            }
            Ok(Verdict::Fail(message)) => Err(Error::new(ErrorKind::Transport, message)),
            Err(_) => Err(Error::new(ErrorKind::Canceled, "the replay has ended")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrived {
    /// Lets the request go on.
    pub(crate) fn decide(self, verdict: Verdict) {
        // The reconcile may have been dropped meanwhile.
        let _ = self.verdict.send(verdict);
    }
}

impl Transport for Gate {
    fn send(&self, request: Request<Bytes>) -> SendFuture<'_> {
        Box::pin(self.pass(request))
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("waiting", &self.lock().waiting.len()).finish_non_exhaustive()
    }
}
