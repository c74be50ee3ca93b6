//! The limit of what an evaluation may cost.

use crate::EvaluationError;

/// The units of cost that are left. A step costs one unit, and reading ten characters of a text one.
///
/// The units are those of the real server. They bound the time of an evaluation: a unit takes well under a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// Returns a budget of a number of units.
    #[must_use]
    pub const fn new(units: u64) -> Self {
        Self { left: units, spent: 0 }
    }

    /// Returns the budget of one expression among several that share this one: at most `most` units.
    #[must_use]
    pub fn part(&self, most: u64) -> Self {
        Self::new(self.left.min(most))
    }

    /// Deducts what a [`part`](Self::part) has spent.
    pub fn deduct(&mut self, part: &Self) {
        // Nothing may be left.
        let _ = self.spend(part.spent);
    }

    /// Returns the number of units that were spent.
    #[must_use]
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Returns the number of units that are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn spend(&mut self, units: u64) -> Result<(), EvaluationError> {
        self.spent = self.spent.saturating_add(units);
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvaluationError::too_expensive())
            }
        }
    }
}
