//! The result of a replay.

use std::fmt;

use klient::{ObjectKey, recording::TurnEnd};

/// The result of a replay.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The reconciles, in the order in which they began.
    pub turns: Vec<Turn>,
    /// The differences between the run of the code and the recording.
    pub differences: Vec<Difference>,
}

/// A reconcile of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// The name of the controller.
    pub controller: String,
    /// The key.
    pub key: ObjectKey,
    /// The reasons, as text.
    pub reasons: String,
    /// The requests, as method, path and status.
    pub requests: Vec<String>,
    /// How it ended; `None` if it had not ended at the end of the recording.
    pub end: Option<TurnEnd>,
}

/// Something that the code did differently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The line of the recording.
    pub line: usize,
    /// The sort of difference.
    pub kind: DifferenceKind,
    /// The message for people: the expected and the found behaviour.
    pub message: String,
}

/// The sort of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// An event did not queue a key that it queued before.
    NotQueued,
    /// An event queued a key that it did not queue before.
    AlsoQueued,
    /// A key was not ready for a reconcile.
    NotReady,
    /// A reconcile had other reasons.
    Reasons,
    /// A reconcile did not send a request.
    NotSent,
    /// A reconcile sent a request that it did not send before.
    AlsoSent,
    /// A request had another body.
    Body,
    /// A request had another response.
    Response,
    /// A reconcile ended in another way.
    End,
    /// An object of the recording could not be stored.
    Object,
}

impl Report {
    /// Returns whether the code did what it did when it was recorded.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, reasons, requests, end } = self;
        write!(f, "{controller} {key} because of: {reasons}")?;
        for request in requests {
            write!(f, "; {request}")?;
        }
        match end {
            Some(end) => write!(f, "; {end}"),
            None => f.write_str("; still running"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} reconciles, {} differences", self.turns.len(), self.differences.len())?;
        for difference in &self.differences {
            writeln!(f, "- {difference}")?;
        }
        for turn in &self.turns {
            writeln!(f, "  {turn}")?;
        }
        Ok(())
    }
}
