//! Authentication by token or client certificate. There is no authorization: every authenticated user may do everything.

use std::collections::HashMap;

use http::{HeaderMap, header::AUTHORIZATION};
use klient_core::Status;
use subtle::ConstantTimeEq as _;

use crate::Result;

/// The users of a server.
#[derive(Clone, Default)]
pub(crate) struct Authentication {
    /// Whether requests without credentials are accepted.
    pub(crate) off: bool,
    pub(crate) tokens: HashMap<String, String>,
}

/// Marks a request whose credentials were verified when it arrived on a socket.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated;

impl Authentication {
    /// Refuses requests without known credentials.
    pub(crate) fn check(&self, headers: &HeaderMap, is_authenticated: bool) -> Result<()> {
        if self.off || is_authenticated {
            return Ok(());
        }
        match bearer(headers).and_then(|token| self.user_of(token)) {
            Some(_) => Ok(()),
            None => Err(Box::new(Status::unauthorized("Unauthorized"))),
        }
    }

    /// Returns the user of a token.
    pub(crate) fn user_of(&self, token: &str) -> Option<&str> {
        // All tokens are compared, so that the time does not tell how many there are before the right one.
        let known = self.tokens.iter().filter(|(known, _)| is_same_token(token, known));
        known.fold(None, |_, (_, user)| Some(user.as_str()))
    }

    /// Returns the user of an authenticated request. Without a token it is the user of the server's own client certificate.
    pub(crate) fn user(&self, headers: &HeaderMap) -> &str {
        bearer(headers).and_then(|token| self.user_of(token)).unwrap_or(ADMINISTRATOR)
    }
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// The user of the client certificate in the server's own kubeconfig.
pub(crate) const ADMINISTRATOR: &str = "kubernetes-admin";

/// Compares a given token with a known one, in a time that depends on their lengths only.
pub(crate) fn is_same_token(given: &str, known: &str) -> bool {
    given.trim().as_bytes().ct_eq(known.as_bytes()).into()
}
