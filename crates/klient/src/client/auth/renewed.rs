//! Credentials that are issued, expire, and are issued again.
//!
//! However many requests need one at the same time, the issuer is asked once, in a task of its own: a caller that goes
//! away takes nothing from the others. The task ends with this source. A credential that the server rejects is renewed
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
    client::http::{shared_error::told, transport::IdentitySlot},
};

/// A future that an [`Issuer`] returns.
pub(crate) type IssueFuture<'a> = Pin<Box<dyn Future<Output = Result<Credential, Error>> + Send + 'a>>;

/// Where credentials come from.
pub(crate) trait Issuer: Send + Sync + 'static {
    /// Gives a credential; `previous` is the one that will not do any longer.
    fn issue(&self, previous: Option<Arc<Credential>>) -> IssueFuture<'_>;
}

/// An [`AuthSource`] that asks an [`Issuer`] when it has to.
pub(crate) struct RenewedAuth {
    shared: Arc<Shared>,
}

struct Shared {
    issuer: Box<dyn Issuer>,
    /// Where the transport looks for the certificate.
    identity: IdentitySlot,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Credential>>,
    /// When the issuer last answered.
    asked: Option<Instant>,
    /// The server does not accept the current one.
    is_rejected: bool,
    last_rejected: Option<Arc<Credential>>,
    run: Option<Run>,
}

/// The issuer at work.
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
    /// Credentials from that issuer; certificates among them are put into `identity`.
    pub(crate) fn new(issuer: impl Issuer, identity: IdentitySlot) -> Self {
        Self { shared: Arc::new(Shared { issuer: Box::new(issuer), identity, state: Mutex::default() }) }
    }

    async fn credential(&self) -> Result<Arc<Credential>, Error> {
        for _ in 0..MAX_LOST_RUNS {
            let mut outcome = match self.shared.next() {
                Next::Use(credential) => return Ok(credential),
                Next::WaitFor(outcome) => outcome,
            };
            // If the sender is gone, so is the runtime that the run was on; this one runs it again.
            if let Ok(outcome) = outcome.wait_for(Option::is_some).await
                && let Some(outcome) = &*outcome
            {
                return outcome.clone().map_err(|error| told(&error));
            }
        }
        Err(Error::new(ErrorKind::Canceled, "getting credentials was stopped"))
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

    /// The current credential if it will do, or else the run that brings the next one.
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
        state.asked = Some(Instant::now());
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
                    tracing::warn!(error = &error as &dyn std::error::Error, "credentials are not renewed yet");
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
            // An issuer that keeps credentials to their last second must not be asked by every request until then.
            Some(left) => left > LEEWAY || self.asked_within(PAUSE),
        };
        usable.then(|| Arc::clone(current))
    }

    fn rejected(&mut self, used: Option<&HeaderValue>) -> bool {
        let Some(current) = &self.current else { return true };
        if current.header.as_ref() != used || self.is_rejected {
            return true;
        }
        // An issuer that gave the same again is not asked for each request that a server rejects.
        let again = self.last_rejected.as_ref().is_some_and(|last| last.is_same(current));
        if again && self.asked_within(PAUSE) {
            return false;
        }
        self.last_rejected = Some(Arc::clone(current));
        self.is_rejected = true;
        true
    }

    fn asked_within(&self, time: Duration) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < time)
    }
}

impl fmt::Debug for RenewedAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewedAuth").field("current", &self.shared.lock().current).finish_non_exhaustive()
    }
}

/// How long before its end a credential is renewed: requests take time, and clocks differ.
const LEEWAY: Duration = Duration::from_secs(30);
/// How long an issuer is left alone that has nothing better than what there is.
const PAUSE: Duration = Duration::from_secs(10);
const MAX_LOST_RUNS: usize = 3;

#[cfg(test)]
mod tests;
