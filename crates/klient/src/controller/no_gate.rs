//! The gate of a queue in a library without the HTTP half, which has no shards: every key passes.

use klient_core::ObjectKey;

use super::permit::Permit;

/// A gate that is always open.
#[derive(Default)]
pub(super) struct Gate {}

/// The admission of a key to its turn.
pub(super) struct Admission;

impl Gate {
    pub(super) fn is_open(&self, _key: &ObjectKey) -> bool {
        true
    }

    pub(super) fn is_closed(&self, _key: &ObjectKey) -> bool {
        false
    }

    pub(super) fn admit(&self, _key: &ObjectKey) -> Option<Admission> {
        Some(Admission)
    }

    pub(super) fn succeeded(&self, _key: &ObjectKey) {}
}

impl Admission {
    pub(super) fn permit(&self, permit: &Permit) -> Permit {
        permit.clone()
    }
}
