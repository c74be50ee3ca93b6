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
        let token = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        match token {
            Some(token) if self.tokens.contains_key(token.trim()) => Ok(()),
            _ => Err(Box::new(Status::unauthorized("Unauthorized"))),
        }
    }
}
