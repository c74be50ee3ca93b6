//! One line of a log.

use std::{fmt, sync::Arc};

use k8s_openapi::jiff::Timestamp;

/// A line of a container's log. Its text is the line with the names of pod and container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// The name of the pod.
    pub pod: Arc<str>,
    /// The name of the container.
    pub container: Arc<str>,
    /// The time at which the container wrote the line, as its runtime recorded it.
    pub time: Option<Timestamp>,
    /// The line, without its time and its end.
    pub text: String,
    /// Whether lines before this one may be missing: they were rotated away, or the container restarted more than once, while there was no
    /// connection.
    pub is_after_gap: bool,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.pod, self.container, self.text)
    }
}

/// Splits a line into the time that the server put in front of it, and the rest.
pub(super) fn split(line: &str) -> (Option<Timestamp>, &str) {
    let (stamp, rest) = line.split_once(' ').unwrap_or((line, ""));
    match stamp.parse() {
        Ok(time) => (Some(time), rest),
        Err(_) => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_split_from_the_text() {
        let time: Timestamp = "2026-01-02T03:04:05.000000006Z".parse().unwrap();
        assert_eq!(split("2026-01-02T03:04:05.000000006Z a b"), (Some(time), "a b"));
        assert_eq!(split("2026-01-02T03:04:05.000000006Z"), (Some(time), ""));
        assert_eq!(split("2026-01-02T03:04:05.000000006Z  indented"), (Some(time), " indented"));
        assert_eq!(split("no time"), (None, "no time"));
        assert_eq!(split(""), (None, ""));
    }
}
