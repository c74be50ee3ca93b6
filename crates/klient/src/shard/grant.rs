//! The right under which a reconcile of a sharded controller runs, for the reconciler to see.

use std::fmt;

use super::{board::SlotPermit, slot::Slot};

/// The right of a replica to reconcile the keys of one slot, until it ends.
///
/// A reconcile is not polled any more when its grant has ended. That does not cover a request that was sent just before:
/// where that matters, write the [`token`](Self::token) along, and let the receiver refuse lower ones.
#[derive(Clone)]
pub struct Grant {
    permit: SlotPermit,
}

impl Grant {
    pub(crate) fn new(permit: SlotPermit) -> Self {
        Self { permit }
    }

    /// Returns the slot of the key.
    pub fn slot(&self) -> Slot {
        self.permit.slot()
    }

    /// Returns a number that identifies this grant. Each grant of the same slot has a higher one than all before it.
    pub fn token(&self) -> u64 {
        self.permit.token()
    }

    /// Returns whether work may still run, if only to finish.
    pub fn is_valid(&self) -> bool {
        self.permit.is_valid()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("slot", &self.slot().index()).field("token", &self.token()).finish()
    }
}
