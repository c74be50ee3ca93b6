//! The permission of a controller to act: always, or while this process leads.

#[cfg(feature = "client")]
use crate::election::Leadership;

/// A permission to act.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit {
    #[cfg(feature = "client")]
    leadership: Option<Leadership>,
}

impl Permit {
    /// Creates a permission that is valid while this process leads.
    #[cfg(feature = "client")]
    pub(crate) fn of(leadership: Leadership) -> Self {
        Self { leadership: Some(leadership) }
    }

    #[cfg(feature = "client")]
    pub(super) fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Returns whether the permission is still valid.
    pub(super) fn is_valid(&self) -> bool {
        #[cfg(feature = "client")]
        let is_valid = self.leadership.as_ref().is_none_or(Leadership::may_run);
        #[cfg(not(feature = "client"))]
        let is_valid = true;
        is_valid
    }
}
