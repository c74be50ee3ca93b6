//! Reasons why a value does not fit its schema.

use std::fmt;

/// A reason why a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the value, such as `.spec.ports[port=80]`. Empty for the whole object.
    pub path: String,
    /// The reason, in the words of the API server.
    pub message: String,
}

/// All reasons why a value does not fit its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub(super) fn one(message: impl Into<String>) -> Self {
        Self(vec![Problem { path: String::new(), message: message.into() }])
    }

    /// Puts a path element before the path of each problem.
    pub(super) fn below(mut self, element: &dyn fmt::Display) -> Self {
        for problem in &mut self.0 {
            problem.path.insert_str(0, &element.to_string());
        }
        self
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns an error if there are problems.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [one] => one.fmt(f),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for Problems {}
