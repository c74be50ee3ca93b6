//! Role-based access control: decisions by the roles and bindings in the store.
//!
//! `index` has the rules by subject, `rule` matches one rule, `escalation` guards writes of roles and bindings, and `aggregation` fills in
//! the rules of roles that select others. The index follows the store: every change of the four kinds updates it before the change's
//! response is sent. The loader of `bootstrap` is for a new server.

mod aggregation;
pub(crate) mod bootstrap;
mod escalation;
mod index;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::{PoisonError, RwLock};

use self::index::Index;
pub(crate) use self::{
    aggregation::after_role_change,
    index::{Grant, Held, Kind},
    rule::Rule,
};
use super::{Attributes, User, user::MASTERS};
use crate::store::Store;

/// The roles and bindings of a server.
#[derive(Default)]
pub(crate) struct Rbac {
    index: RwLock<Index>,
}

/// The outcome of a decision.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// The action is allowed, by a binding unless the user is an administrator.
    Allowed(Option<Grant>),
    /// Nothing allows the action. These bindings refer to roles that do not exist.
    Denied(Vec<String>),
}

impl Decision {
    /// Returns whether the action is allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Returns the reason, as responses and the audit log show it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Allowed(None) => String::new(),
            Self::Allowed(Some(grant)) => format!("RBAC: allowed by {grant}"),
            Self::Denied(missing) if missing.is_empty() => String::new(),
            Self::Denied(missing) => format!("RBAC: {}", aggregate(missing)),
        }
    }
}

impl Rbac {
    /// Decides about an action.
    pub(crate) fn decide(&self, user: &User, action: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allowed(None);
        }
        self.read().decide(user, action)
    }

    /// Returns the rules of a user in a namespace, and the names of missing roles. An empty namespace is the cluster.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> Held {
        self.read().rules_of(user, namespace)
    }

    /// Reads all roles and bindings.
    pub(crate) fn load(&self, store: &Store) {
        for kind in Kind::ALL {
            for stored in store.list(kind.table(), "").objects {
                self.refresh(store, kind, &kind.key_of(&stored));
            }
        }
    }

    /// Reads an object again. The newest state is read under the lock, so that the order of concurrent calls does not matter.
    pub(crate) fn refresh(&self, store: &Store, kind: Kind, key: &str) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        match store.get(kind.table(), key) {
            Some(stored) => index.put(kind, key, &stored.value()),
            None => index.remove(kind, key),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins messages as Go joins errors: each once, in brackets if there are several.
pub(crate) fn aggregate(messages: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for message in messages {
        if !seen.contains(&message.as_str()) {
            seen.push(message);
        }
    }
    if seen.len() == 1 { seen[0].to_owned() } else { format!("[{}]", seen.join(", ")) }
}
