//! Violations of rules, and the error that lists them.

use std::fmt;

use crate::custom::Reason;

/// A rule that an object violates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The path to the field, such as `spec.ports[0].name`; empty for the whole object.
    pub path: String,
    /// The expression.
    pub rule: String,
    /// The message of the rule, or the error of its evaluation.
    pub message: String,
    /// The reason that the rule gives.
    pub reason: Reason,
    /// Whether the rule was evaluated.
    pub kind: ViolationKind,
}

/// Why a rule is not satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViolationKind {
    /// The rule is false.
    Violated,
    /// The evaluation failed, as it would on the server: for example, the rule reads a field that is absent.
    Failed,
    /// The rule is malformed, or uses parts of CEL that cannot be evaluated on the client, such as `cel.bind` and `sortBy`. The
    /// server may accept the object.
    Unsupported,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} (rule `{}`, {:?})", self.message, self.rule, self.reason)
    }
}

/// An error that lists the rules which an object violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidObject {
    pub(super) kind: String,
    pub(super) violations: Vec<Violation>,
}

impl InvalidObject {
    /// Returns the kind of the object.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the violations, of which there is at least one.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

impl fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} violates {} of its rules", self.kind, self.violations.len())?;
        self.violations.iter().try_for_each(|violation| write!(f, "; {violation}"))
    }
}

impl std::error::Error for InvalidObject {}
