//! Whether a controller may act: always, or while this process leads.

#[cfg(feature = "client")]
use crate::election::Leadership;

/// Leave to act.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit {
    #[cfg(feature = "client")]
    leadership: Option<Leadership>,
}

impl Permit {
    /// Leave to act while this process leads.
    #[cfg(feature = "client")]
    pub(crate) fn of(leadership: Leadership) -> Self {
        Self { leadership: Some(leadership) }
    }

    #[cfg(feature = "client")]
    pub(super) fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Whether it holds still.
    pub(super) fn holds(&self) -> bool {
        #[cfg(feature = "client")]
        let holds = self.leadership.as_ref().is_none_or(Leadership::may_run);
        #[cfg(not(feature = "client"))]
        let holds = true;
        holds
    }
}
