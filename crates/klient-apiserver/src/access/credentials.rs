//! Static tokens and their users.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use http::{HeaderMap, header::AUTHORIZATION};
use subtle::ConstantTimeEq as _;

use super::User;

/// The users that a server knows by their tokens.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    users: HashMap<String, Arc<User>>,
}

impl Tokens {
    /// Adds a token and its user.
    pub(crate) fn add(&mut self, token: String, user: User) {
        self.users.insert(token, user.authenticated());
    }

    /// Returns whether there are no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the user of a token.
    pub(crate) fn user_of(&self, token: &str) -> Option<Arc<User>> {
        // All tokens are compared, so that the time does not tell how many there are before the right one.
        let known = self.users.iter().filter(|(known, _)| is_same_token(token, known));
        known.fold(None, |_, (_, user)| Some(Arc::clone(user)))
    }
}

/// Returns the bearer token of a request. An empty one is none, but one that is not text is a token that the server does not know.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let token = headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")?;
    Some(String::from_utf8_lossy(token)).filter(|token| !token.trim().is_empty())
}

/// Compares a given token with a known one, in a time that depends on their lengths only.
pub(crate) fn is_same_token(given: &str, known: &str) -> bool {
    given.trim().as_bytes().ct_eq(known.as_bytes()).into()
}
