//! The failed attempts of a request before the last one, for the message of its error.

use crate::Error;

/// The failures of a request's earlier attempts, stored as an extension of the last response.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct EarlierFailures {
    attempts: u32,
    /// Each failure in words, and how often it was seen in a row.
    failures: Vec<(String, u32)>,
}

impl EarlierFailures {
    pub(super) fn push(&mut self, failure: String) {
        self.attempts += 1;
        match self.failures.last_mut() {
            Some((last, times)) if *last == failure => *times += 1,
            _ => self.failures.push((failure, 1)),
        }
    }

    /// Adds the number of attempts and the failures to the message of the last error.
    pub(super) fn added_to(&self, error: Error) -> Error {
        if self.failures.is_empty() {
            return error;
        }
        let failures: Vec<String> = self
            .failures
            .iter()
            .map(|(failure, times)| if *times == 1 { failure.clone() } else { format!("{failure}, {times} times") })
            .collect();
        error.with_note(format!("attempt {}; before: {}", self.attempts + 1, failures.join(", ")))
    }
}
