//! Authentication by token or client certificate. There is no authorization: every authenticated user may do everything.

use std::collections::HashMap;

use http::{HeaderMap, header::AUTHORIZATION};
use klient_core::Status;

use crate::Result;

/// The users of a server.
#[derive(Clone, Default)]
pub(crate) struct Authentication {
    /// Whether requests without credentials are accepted.
    pub(crate) off: bool,
    pub(crate) tokens: HashMap<String, String>,
}

/// Marks a request of a connection whose client certificate was verified.
#[derive(Clone, Debug)]
pub(crate) struct Certified;

impl Authentication {
    /// Refuses requests without known credentials.
    pub(crate) fn check(&self, headers: &HeaderMap, certified: bool) -> Result<()> {
        if self.off || certified {
            return Ok(());
        }
        match bearer(headers).and_then(|token| self.user_of(token)) {
            Some(_) => Ok(()),
            None => Err(Box::new(Status::unauthorized("Unauthorized"))),
        }
    }

    /// Returns the user of a token.
    pub(crate) fn user_of(&self, token: &str) -> Option<&str> {
        self.tokens.get(token.trim()).map(String::as_str)
    }

    /// Returns the user of an authenticated request. Without a token it is the user of the server's own client certificate.
    pub(crate) fn user(&self, headers: &HeaderMap) -> &str {
        bearer(headers).and_then(|token| self.user_of(token)).unwrap_or(ADMINISTRATOR)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// The user of the client certificate in the server's own kubeconfig.
pub(crate) const ADMINISTRATOR: &str = "kubernetes-admin";
