//! The permission of a controller to act: always, while this process leads, or while a slot belongs to it.

#[cfg(feature = "client")]
use crate::{
    election::Leadership,
    shard::{Grant, SlotPermit},
};

/// A permission to act.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit {
    #[cfg(feature = "client")]
    leadership: Option<Leadership>,
    #[cfg(feature = "client")]
    slot: Option<SlotPermit>,
}

impl Permit {
    /// Creates a permission that is valid while this process leads.
    #[cfg(feature = "client")]
    pub(crate) fn of(leadership: Leadership) -> Self {
        Self { leadership: Some(leadership), slot: None }
    }

    #[cfg(feature = "client")]
    pub(super) fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Limits the permission to the time for which a slot belongs to this process.
    #[cfg(feature = "client")]
    pub(super) fn on_slot(mut self, slot: SlotPermit) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Returns the right to the slot of the key, if the controller is sharded.
    #[cfg(feature = "client")]
    pub(super) fn grant(&self) -> Option<Grant> {
        self.slot.clone().map(Grant::new)
    }

    /// Waits until the slot is taken away from this process. Never ready without a slot: leadership ends by dropping all work.
    pub(super) async fn revoked(&self) {
        #[cfg(feature = "client")]
        if let Some(slot) = &self.slot {
            return slot.revoked().await;
        }
        std::future::pending::<()>().await;
    }

    /// Returns whether the permission is for one slot, which may be taken away.
    pub(super) fn is_revocable(&self) -> bool {
        #[cfg(feature = "client")]
        let is_revocable = self.slot.is_some();
        #[cfg(not(feature = "client"))]
        let is_revocable = false;
        is_revocable
    }

    /// Notes the version of a write, for the next owner of the slot.
    pub(super) fn wrote(&self, resource: &str, version: u64) {
        #[cfg(feature = "client")]
        if let Some(slot) = &self.slot {
            slot.wrote(resource, version);
        }
        #[cfg(not(feature = "client"))]
        let _ = (resource, version);
    }

    /// Returns whether the permission is still valid.
    pub(super) fn is_valid(&self) -> bool {
        #[cfg(feature = "client")]
        let is_valid = self.leadership.as_ref().is_none_or(Leadership::may_run)
            && self.slot.as_ref().is_none_or(SlotPermit::is_valid);
        #[cfg(not(feature = "client"))]
        let is_valid = true;
        is_valid
    }
}
