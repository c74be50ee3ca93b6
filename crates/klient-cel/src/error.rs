//! Errors of evaluations, with the texts of the real server.

use std::fmt;

use kube_cel::cel::ExecutionError;

/// An error of an evaluation. Its text is the one that the real server shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError {
    message: String,
    is_too_expensive: bool,
    is_undeclared: bool,
}

impl EvaluationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_too_expensive: false, is_undeclared: false }
    }

    pub(crate) fn too_expensive() -> Self {
        Self { is_too_expensive: true, ..Self::new("operation cancelled: actual cost limit exceeded") }
    }

    pub(crate) fn undeclared(name: &str) -> Self {
        Self { is_undeclared: true, ..Self::new(format!("no such attribute(s): {name}")) }
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    pub(crate) fn no_such_key(key: &str) -> Self {
        Self::new(format!("no such key: {key}"))
    }

    /// Returns whether the expression uses a name that has no value here.
    #[must_use]
    pub fn is_undeclared(&self) -> bool {
        self.is_undeclared
    }

    /// Returns whether the budget is exhausted.
    #[must_use]
    pub fn is_too_expensive(&self) -> bool {
        self.is_too_expensive
    }
}

impl From<ExecutionError> for EvaluationError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::NoSuchKey(key) => Self::no_such_key(&key),
            ExecutionError::NoSuchOverload
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::NotSupportedAsMethod { .. }
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::InvalidArgumentCount { .. }
            | ExecutionError::ValuesNotComparable(..)
            | ExecutionError::UnsupportedUnaryOperator(..)
            | ExecutionError::UnsupportedBinaryOperator(..) => Self::no_such_overload(),
            ExecutionError::UndeclaredReference(name) => Self::undeclared(&name),
            ExecutionError::DivisionByZero(_) => Self::new("division by zero"),
            ExecutionError::RemainderByZero(_) => Self::new("modulus by zero"),
            ExecutionError::Overflow(..) => Self::new("integer overflow"),
            ExecutionError::FunctionError { message, .. } => Self::new(message),
            other => Self::new(other.to_string()),
        }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}
