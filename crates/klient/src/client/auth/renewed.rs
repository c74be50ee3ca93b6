//! Credentials that are issued, expire, and are issued again.
//!
//! However many requests need a credential at the same time, the issuer runs once, in its own task. A caller that is
//! canceled does not affect the others. The task ends with this source. A credential that the server rejects is renewed
//! once, not once per request.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::HeaderValue;
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use super::{AuthFuture, AuthSource, credential::Credential};
use crate::{
    Error, ErrorKind,
    client::http::{shared_error::copy_of, transport::IdentitySlot},
};

/// A future that an [`Issuer`] returns.
pub(crate) type IssueFuture<'a> = Pin<Box<dyn Future<Output = Result<Credential, Error>> + Send + 'a>>;

/// A source of credentials.
pub(crate) trait Issuer: Send + Sync + 'static {
    /// Issues a credential. `previous` is the one that has expired or was rejected.
    fn issue(&self, previous: Option<Arc<Credential>>) -> IssueFuture<'_>;
}

/// An [`AuthSource`] that calls an [`Issuer`] when it needs a credential.
pub(crate) struct RenewedAuth {
    shared: Arc<Shared>,
}

struct Shared {
    issuer: Box<dyn Issuer>,
    /// The slot from which the transport takes the client certificate.
    identity: IdentitySlot,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Credential>>,
    /// When the issuer last returned.
    issued_at: Option<Instant>,
    /// Whether the server rejected the current credential.
    is_rejected: bool,
    last_rejected: Option<Arc<Credential>>,
    run: Option<Run>,
}

/// A running call of the issuer.
struct Run {
    outcome: watch::Receiver<Option<Outcome>>,
    task: AbortHandle,
}

type Outcome = Result<Arc<Credential>, Arc<Error>>;

enum Next {
    Use(Arc<Credential>),
    WaitFor(watch::Receiver<Option<Outcome>>),
}

impl RenewedAuth {
    /// Creates a source from an issuer. Client certificates are stored in `identity`.
    pub(crate) fn new(issuer: impl Issuer, identity: IdentitySlot) -> Self {
        Self { shared: Arc::new(Shared { issuer: Box::new(issuer), identity, state: Mutex::default() }) }
    }

    async fn credential(&self) -> Result<Arc<Credential>, Error> {
        for _ in 0..MAX_LOST_RUNS {
            let mut outcome = match self.shared.next() {
                Next::Use(credential) => return Ok(credential),
                Next::WaitFor(outcome) => outcome,
            };
            // If the sender was dropped, so was the runtime of the run; this runtime starts it again.
            if let Ok(outcome) = outcome.wait_for(Option::is_some).await
                && let Some(outcome) = &*outcome
            {
                return outcome.clone().map_err(|error| copy_of(&error));
            }
        }
        Err(Error::new(ErrorKind::Canceled, "requesting credentials was canceled"))
    }
}

impl AuthSource for RenewedAuth {
    fn authorization(&self) -> AuthFuture<'_> {
        Box::pin(async { Ok(self.credential().await?.header.clone()) })
    }

    fn rejected(&self, used: Option<&HeaderValue>) -> bool {
        self.shared.lock().rejected(used)
    }
}

impl Drop for RenewedAuth {
    fn drop(&mut self) {
        if let Some(run) = self.shared.lock().run.take() {
            run.task.abort();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current credential if it is valid, or else the run that issues the next one.
    fn next(self: &Arc<Self>) -> Next {
        let mut state = self.lock();
        if let Some(current) = state.usable() {
            return Next::Use(current);
        }
        if let Some(run) = &state.run
            && run.outcome.has_changed().is_ok()
        {
            return Next::WaitFor(run.outcome.clone());
        }
        let (sender, outcome) = watch::channel(None);
        let (shared, previous) = (Arc::clone(self), state.current.clone());
        let task = tokio::spawn(async move {
            let issued = shared.issuer.issue(previous).await;
            let outcome = shared.finish(issued);
            sender.send_replace(Some(outcome));
        });
        state.run = Some(Run { outcome: outcome.clone(), task: task.abort_handle() });
        Next::WaitFor(outcome)
    }

    fn finish(&self, issued: Result<Credential, Error>) -> Outcome {
        let mut state = self.lock();
        state.run = None;
        state.issued_at = Some(Instant::now());
        match issued {
            Ok(credential) => {
                let credential = Arc::new(credential);
                self.identity.set(credential.certificate.clone());
                state.current = Some(Arc::clone(&credential));
                state.is_rejected = false;
                Ok(credential)
            }
            Err(error) => match state.usable() {
                Some(current) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot renew credentials, using the current ones"
                    );
                    Ok(current)
                }
                None => Err(Arc::new(error)),
            },
        }
    }
}

impl State {
    fn usable(&self) -> Option<Arc<Credential>> {
        let current = self.current.as_ref().filter(|_| !self.is_rejected)?;
        let usable = match current.time_left() {
            None => true,
            Some(Duration::ZERO) => false,
            // An issuer that returns credentials close to their expiry must not be called by every request.
            Some(left) => left > LEEWAY || self.issued_within(PAUSE),
        };
        usable.then(|| Arc::clone(current))
    }

    fn rejected(&mut self, used: Option<&HeaderValue>) -> bool {
        let Some(current) = &self.current else { return true };
        if current.header.as_ref() != used || self.is_rejected {
            return true;
        }
        // An issuer that returned the same credential again is not called for each rejected request.
        let again = self.last_rejected.as_ref().is_some_and(|last| last.is_same(current));
        if again && self.issued_within(PAUSE) {
            return false;
        }
        self.last_rejected = Some(Arc::clone(current));
        self.is_rejected = true;
        true
    }

    fn issued_within(&self, time: Duration) -> bool {
        self.issued_at.is_some_and(|at| at.elapsed() < time)
    }
}

impl fmt::Debug for RenewedAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewedAuth").field("current", &self.shared.lock().current).finish_non_exhaustive()
    }
}

/// How long before its expiry a credential is renewed: requests take time, and clocks differ.
const LEEWAY: Duration = Duration::from_secs(30);
/// The minimum time between calls of an issuer that has nothing newer.
const PAUSE: Duration = Duration::from_secs(10);
const MAX_LOST_RUNS: usize = 3;

#[cfg(test)]
mod tests;
