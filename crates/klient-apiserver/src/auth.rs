//! Who asks. Whoever is known may do everything: there are no roles here.

use std::collections::HashMap;

use http::{HeaderMap, header::AUTHORIZATION};
use klient_core::Status;

use crate::Result;

/// Whom a server knows.
#[derive(Clone, Default)]
pub(crate) struct Authentication {
    /// Whether everybody is let in.
    pub(crate) off: bool,
    pub(crate) tokens: HashMap<String, String>,
}

/// A client certificate that was checked already.
#[derive(Clone, Debug)]
pub(crate) struct Certified;

impl Authentication {
    /// Refuses whom it does not know.
    pub(crate) fn check(&self, headers: &HeaderMap, certified: bool) -> Result<()> {
        if self.off || certified {
            return Ok(());
        }
        match bearer(headers).and_then(|token| self.user_of(token)) {
            Some(_) => Ok(()),
            None => Err(Box::new(Status::unauthorized("Unauthorized"))),
        }
    }

    /// Whom a token belongs to.
    pub(crate) fn user_of(&self, token: &str) -> Option<&str> {
        self.tokens.get(token.trim()).map(String::as_str)
    }

    /// Who asks, of those who were let in: without a token it is whom the server's own certificate is made out to.
    pub(crate) fn user(&self, headers: &HeaderMap) -> &str {
        bearer(headers).and_then(|token| self.user_of(token)).unwrap_or(ADMINISTRATOR)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Whom the client certificate of the server's own kubeconfig is made out to.
pub(crate) const ADMINISTRATOR: &str = "kubernetes-admin";
