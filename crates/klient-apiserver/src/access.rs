//! Who may do what: the users of a server, how a request proves who sent it, and what they may do.
//!
//! Every request has a [`User`], found before anything else happens: by `credentials` (tokens), `certificate` (client certificates) or `issuer`
//! (tokens of service accounts, which `jwt` signs). A request from the same process that has no credentials is the administrator's, unless
//! the server has tokens of its own. `impersonation` replaces the user, and `rbac` decides. Without RBAC everything is allowed, and a
//! request costs no more than a look at its headers.

pub(crate) mod attributes;
mod certificate;
mod credentials;
mod impersonation;
mod issuer;
mod jwt;
mod permissions;
pub(crate) mod rbac;
mod user;

use std::sync::Arc;

use http::HeaderMap;
use klient_core::Status;

pub(crate) use self::{
    attributes::{Attributes, RequestInfo},
    certificate::subject,
    credentials::{bearer, is_same_token},
    impersonation::Impersonated,
    issuer::Bound,
    jwt::ALGORITHM,
    rbac::{Decision, Rule, aggregate},
    user::AUTHENTICATED,
};
use self::{
    credentials::Tokens,
    impersonation::LastModes,
    issuer::{Accepted, Issuer},
    permissions::Recorder,
    rbac::{Held, Rbac},
};
pub use self::{permissions::UsedPermissions, user::User};
use crate::{Result, server::Core};

/// The users of a server and their permissions.
pub(crate) struct Access {
    tokens: Tokens,
    pub(crate) issuer: Issuer,
    /// The roles and bindings, if they decide.
    pub(crate) rbac: Option<Rbac>,
    modes: LastModes,
    recorder: Option<Recorder>,
}

/// The settings of a new server.
#[derive(Default)]
pub(crate) struct AccessSettings {
    pub(crate) tokens: Tokens,
    pub(crate) rbac: bool,
    pub(crate) issuer: Option<String>,
    pub(crate) records: bool,
}

impl AccessSettings {
    pub(crate) fn build(self, folder: Option<&std::path::Path>) -> Access {
        Access {
            tokens: self.tokens,
            issuer: Issuer::new(self.issuer, folder),
            rbac: self.rbac.then(Rbac::default),
            modes: LastModes::default(),
            recorder: self.records.then(Recorder::default),
        }
    }
}

impl Access {
    /// Decides about an action.
    pub(crate) fn decide(&self, user: &User, action: &Attributes<'_>) -> Decision {
        match &self.rbac {
            Some(rbac) => rbac.decide(user, action),
            None => Decision::Allowed(None),
        }
    }

    /// Returns an error for an action that is not allowed.
    fn require(&self, user: &User, action: &Attributes<'_>) -> Result<()> {
        match self.decide(user, action) {
            Decision::Allowed(_) => Ok(()),
            denied => Err(action.forbidden(user, &denied.reason())),
        }
    }

    /// Returns the rules of a user in a namespace.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> Held {
        match &self.rbac {
            Some(rbac) => rbac.rules_of(user, namespace),
            None => Held { rules: Rule::everything().to_vec(), missing: Vec::new() },
        }
    }

    /// Records an action, if actions are recorded.
    pub(crate) fn record(&self, user: &User, action: &Attributes<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.add(user, action);
        }
    }

    /// Returns the recorded actions.
    pub(crate) fn used(&self) -> UsedPermissions {
        self.recorder.as_ref().map(Recorder::used).unwrap_or_default()
    }

    /// Returns whether a request with these headers needs no check at all.
    pub(crate) fn is_open(&self, headers: &HeaderMap) -> bool {
        self.rbac.is_none() && self.recorder.is_none() && !impersonation::is_requested(headers)
    }
}

impl Core {
    /// Returns the user of a request in this process.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<User>> {
        let access = &self.access;
        let token = bearer(headers);
        let token = token.as_deref();
        if let Some(user) = token.and_then(|token| self.user_of_token(token)) {
            return Ok(user);
        }
        // A signed token is never taken for no credentials: it has expired, or is not the server's.
        let is_bad = token.is_some_and(|token| access.rbac.is_some() || token.matches('.').count() == 2);
        match token {
            _ if is_bad => Err(Box::new(Status::unauthorized("Unauthorized"))),
            _ if access.tokens.is_empty() => Ok(User::administrator()),
            None if access.rbac.is_some() => Ok(User::anonymous()),
            _ => Err(Box::new(Status::unauthorized("Unauthorized"))),
        }
    }

    /// Returns the user of a token.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<Arc<User>> {
        self.review_token(token, &[]).ok().map(|accepted| accepted.user)
    }

    /// Reviews a token for audiences, or for the server itself. The error is the real server's message.
    pub(crate) fn review_token(&self, token: &str, audiences: &[String]) -> std::result::Result<Accepted, String> {
        let issuer = &self.access.issuer;
        let own = [issuer.url.clone()];
        let wanted = if audiences.is_empty() { &own[..] } else { audiences };
        if wanted.contains(&issuer.url)
            && let Some(user) = self.access.tokens.user_of(token)
        {
            return Ok(Accepted { user, audiences: own.to_vec() });
        }
        match issuer.review(&self.store, token.trim(), wanted, self.clock.now()) {
            None => Err("invalid bearer token".to_owned()),
            Some(reviewed) => reviewed.map_err(|why| format!("[invalid bearer token, {why}]")),
        }
    }
}
