//! The current faults of a world, and the layer between client and server that inflicts them.

mod body;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use klient::{
    Error, ErrorKind,
    client::http::{Body, SendFuture, Transport},
};
use klient_core::{Status, Verb};
use tokio::{sync::watch, time::Instant};

use self::body::{Damage, DamagedBody};
use crate::{faults::Fault, rng::Rng};

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Informer(u8),
    Writer(u8),
    Controller,
    Elector(u8),
}

/// The requests that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Watches,
    NotWatches,
    Only(Role),
}

/// A fault that is in effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) fault: Fault,
    pub(crate) scope: Scope,
    /// The percentage of requests that the fault affects.
    pub(crate) chance: u64,
}

/// The faults of a world. All layers of its clients share them.
pub(crate) struct Weather {
    state: Mutex<State>,
    cuts: watch::Sender<u64>,
    healed: watch::Sender<bool>,
}

struct State {
    rng: Rng,
    active: Vec<Active>,
    is_down: bool,
    /// The token that requests must carry, if any.
    token: Option<String>,
    requests: BTreeMap<Role, u64>,
    /// The moment of the last request, and the number of requests in that moment.
    moment: Option<(Instant, u64)>,
    /// Writes that the server may have executed although the client got no response.
    uncertain: BTreeSet<(Role, Bytes)>,
    violations: Vec<String>,
}

/// The effect of the faults on one request.
enum Effect {
    Pass,
    Refuse,
    /// The request is executed, and its response is lost.
    Lose,
    Hang {
        executes: bool,
    },
    Respond {
        status: Box<Status>,
        retry_after: Option<u64>,
        executes: bool,
    },
    WatchError(Box<Status>),
    Damage(Damage),
    /// The clock has not moved during thousands of requests.
    Spin,
}

impl Weather {
    pub(crate) fn new(rng: Rng, token: Option<String>) -> Arc<Self> {
        let state = State {
            rng,
            active: Vec::new(),
            is_down: false,
            token,
            requests: BTreeMap::new(),
            moment: None,
            uncertain: BTreeSet::new(),
            violations: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), cuts: watch::Sender::new(0), healed: watch::Sender::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the faults in effect.
    pub(crate) fn set(&self, active: Vec<Active>) {
        self.healed.send_replace(active.is_empty());
        self.lock().active = active;
    }

    /// Breaks all connections.
    pub(crate) fn cut_all(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Refuses all connections, or accepts them again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    /// Sets the token that requests must carry.
    pub(crate) fn set_token(&self, token: String) {
        self.lock().token = Some(token);
    }

    /// Returns the number of requests of each role so far.
    pub(crate) fn requests(&self) -> BTreeMap<Role, u64> {
        self.lock().requests.clone()
    }

    /// Returns what clients must not have done and did.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().violations)
    }

    fn draw(&self, role: Role, request: &http::Request<Bytes>) -> Effect {
        let verb = request.extensions().get::<Verb>().copied();
        let mut state = self.lock();
        *state.requests.entry(role).or_default() += 1;
        let now = Instant::now();
        let in_moment = match state.moment {
            Some((moment, count)) if moment == now => count + 1,
            _ => 1,
        };
        state.moment = Some((now, in_moment));
        if in_moment > SPIN {
            if in_moment == SPIN + 1 {
                let last = format!("{role:?}: {} {}", request.method(), request.uri());
                state.violations.push(format!("{SPIN} requests without a pause, the last from {last}"));
            }
            return Effect::Spin;
        }
        if let Some(write) = identity(role, verb, request)
            && state.uncertain.contains(&write)
        {
            state
                .violations
                .push(format!("{role:?} sent a write again that may have been executed: {verb:?} {}", request.uri()));
        }
        if state.is_down {
            return Effect::Refuse;
        }
        // Clients with a certificate send no token.
        let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let (Some(token), Some(sent)) = (&state.token, sent)
            && sent.strip_prefix("Bearer ") != Some(token.as_str())
        {
            let status = Status::unauthorized("token was replaced, on purpose");
            return Effect::Respond { status: Box::new(status), retry_after: None, executes: false };
        }
        for active in state.active.clone() {
            let covered = match active.scope {
                Scope::All => true,
                Scope::Watches => verb == Some(Verb::Watch),
                Scope::NotWatches => verb != Some(Verb::Watch),
                Scope::Only(only) => only == role,
            };
            if covered && state.rng.percent(active.chance) {
                let effect = effect(active.fault, verb, request, &mut state.rng);
                let may_be_executed = matches!(
                    effect,
                    Effect::Lose | Effect::Hang { executes: true } | Effect::Respond { executes: true, .. }
                );
                if may_be_executed && let Some(write) = identity(role, verb, request) {
                    state.uncertain.insert(write);
                }
                return effect;
            }
        }
        Effect::Pass
    }
}

/// Returns what identifies a write of a writer: each has a value of its own, so that equal bytes are the same write.
fn identity(role: Role, verb: Option<Verb>, request: &http::Request<Bytes>) -> Option<(Role, Bytes)> {
    let is_unique = matches!(role, Role::Writer(_)) && matches!(verb, Some(Verb::Create | Verb::Patch));
    is_unique.then(|| (role, request.body().clone()))
}

fn effect(fault: Fault, verb: Option<Verb>, request: &http::Request<Bytes>, rng: &mut Rng) -> Effect {
    let is_watch = verb == Some(Verb::Watch);
    let position = |rng: &mut Rng| usize::try_from(rng.range(0, 3000)).unwrap_or(0);
    let respond = |status: Status, retry_after: Option<u64>| Effect::Respond {
        status: Box::new(status),
        retry_after,
        executes: false,
    };
    match fault {
        Fault::Refused => Effect::Refuse,
        Fault::Cut => match rng.range(0, 3) {
            0 => Effect::Refuse,
            1 => Effect::Lose,
            _ => Effect::Damage(Damage::CutAfter(position(rng))),
        },
        Fault::HalfOpen => Effect::Hang { executes: rng.percent(50) },
        Fault::Stalled => Effect::Damage(Damage::StallAfter(position(rng))),
        Fault::Trickle => Effect::Damage(Damage::trickle(rng.range(1, 40), rng.millis(20, 2000))),
        Fault::Truncated => Effect::Damage(Damage::EndAfter(position(rng))),
        // Only the frame: a changed letter of a name is a valid name, which no client can detect.
        Fault::Corrupted => Effect::Damage(Damage::Flip(usize::try_from(rng.range(0, 3)).unwrap_or(0))),
        Fault::Gone => {
            let expires = is_watch || request.uri().query().is_some_and(|query| query.contains("continue="));
            if expires { respond(Status::expired("too old resource version, on purpose"), None) } else { Effect::Pass }
        }
        Fault::GoneInStream if is_watch => {
            Effect::WatchError(Box::new(Status::expired("too old resource version, on purpose")))
        }
        Fault::TooManyRequests => respond(Status::too_many_requests("too many requests, on purpose", 1), Some(1)),
        Fault::TooManyRequestsBare => {
            let mut status = Status::too_many_requests("too many requests, on purpose", 0);
            status.details = None;
            respond(status, None)
        }
        Fault::Unavailable => Effect::Respond {
            status: Box::new(Status::service_unavailable("unavailable, on purpose")),
            retry_after: Some(rng.range(1, 4)),
            executes: rng.percent(30),
        },
        Fault::UnavailableBare => respond(Status::service_unavailable("unavailable, on purpose"), None),
        Fault::RetryAfterDay => respond(Status::service_unavailable("maintenance, on purpose"), Some(86_400)),
        Fault::ErrorStorm => respond(Status::internal_error("an error on purpose"), None),
        _ => Effect::Pass,
    }
}

/// A transport with faults around another one.
pub(crate) struct FaultLayer {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) weather: Arc<Weather>,
    pub(crate) role: Role,
}

impl Transport for FaultLayer {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture<'_> {
        Box::pin(async move {
            let mut cuts = self.weather.cuts.subscribe();
            let effect = self.weather.draw(self.role, &request);
            tokio::select! {
                biased;
                _ = cuts.changed() => Err(broken("connection was cut on purpose")),
                response = self.send_with(effect, request) => response,
            }
        })
    }
}

impl FaultLayer {
    async fn send_with(&self, effect: Effect, request: http::Request<Bytes>) -> Result<Response<Body>, Error> {
        match effect {
            Effect::Pass => self.forward(request, Damage::None).await,
            Effect::Refuse => Err(broken("connection was refused on purpose")),
            Effect::Lose => {
                drop(self.forward(request, Damage::None).await);
                Err(broken("connection was cut before the response, on purpose"))
            }
            Effect::Hang { executes } => {
                if executes {
                    drop(self.forward(request, Damage::None).await);
                }
                std::future::pending().await
            }
            Effect::Respond { status, retry_after, executes } => {
                if executes {
                    drop(self.forward(request, Damage::None).await);
                }
                Ok(failure(&status, retry_after))
            }
            Effect::WatchError(status) => {
                let event = serde_json::json!({"type": "ERROR", "object": *status});
                Ok(json(StatusCode::OK, format!("{event}\n")))
            }
            Effect::Damage(damage) => self.forward(request, damage).await,
            Effect::Spin => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err(broken("too many requests at once"))
            }
        }
    }

    async fn forward(&self, request: http::Request<Bytes>, damage: Damage) -> Result<Response<Body>, Error> {
        let response = self.inner.send(request).await?;
        let (cuts, healed) = (self.weather.cuts.subscribe(), self.weather.healed.subscribe());
        Ok(response.map(|body| Body::new(DamagedBody::new(body, damage, cuts, healed))))
    }
}

fn failure(status: &Status, retry_after: Option<u64>) -> Response<Body> {
    let code = status.http_code().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, serde_json::to_string(status).unwrap_or_default());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(code: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(text));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn broken(message: &'static str) -> Error {
    Error::new(ErrorKind::Transport, message)
}

/// The number of requests in one moment of the clock that counts as a loop without a pause.
const SPIN: u64 = 3000;
