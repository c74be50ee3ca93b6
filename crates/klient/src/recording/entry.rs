//! The entries of a recording, and their form as JSON lines.

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    time::Duration,
};

use klient_core::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Error, ErrorKind,
    controller::{Reason, ReasonKind},
};

/// A recording that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The first line.
    pub header: Header,
    /// The entries, in the order in which they happened.
    pub entries: Vec<Entry>,
}

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// `recording`.
    pub klient: String,
    /// The version of the format: 1.
    pub version: u32,
    /// When the recording began, as RFC 3339.
    pub started: String,
    /// Whether the recording goes back to the start of the process. If it does not, the first entries are the state of the caches at its
    /// start.
    pub whole: bool,
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Microseconds since the recording began.
    pub at: u64,
    /// The event.
    #[serde(flatten)]
    pub step: Step,
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// A cache received an object.
    Object {
        /// The resource of the cache, such as `deployments.apps`.
        resource: String,
        /// The change of the object.
        change: Change,
        /// The object, or the last known state of a deleted one.
        object: Value,
    },
    /// An event added a key to a controller's queue.
    Queued {
        /// The name of the controller.
        controller: String,
        /// The key.
        key: ObjectKey,
        /// The event.
        reason: StepReason,
    },
    /// A reconcile began.
    Started {
        /// The number of the reconcile.
        turn: u64,
        /// The name of the controller.
        controller: String,
        /// The key.
        key: ObjectKey,
        /// The reasons.
        reasons: Vec<StepReason>,
        /// The number of failures before.
        failures: u32,
        /// The resource version of the object in the cache, if it was there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<String>,
    },
    /// A reconcile sent a request and received the response.
    Request {
        /// The number of the reconcile.
        turn: u64,
        /// The HTTP method.
        method: String,
        /// The path with its query.
        path: String,
        /// The body of the request, if it is JSON or an object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
        /// The HTTP status, if there was a response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The object that was read, the metadata of the object that was written, or the status of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Value>,
        /// The error, if there was no response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A reconcile ended.
    Ended {
        /// The number of the reconcile.
        turn: u64,
        /// How it ended.
        #[serde(flatten)]
        end: TurnEnd,
    },
    /// Entries are missing here, because they could not be written in time.
    Lost {
        /// The number of entries.
        entries: u64,
    },
}

/// The change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was in the first list, or in the cache when the recording begins.
    Found,
    /// It was created.
    Added,
    /// It changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEnd {
    /// It succeeded.
    Done,
    /// It succeeded, and asked for another one after a delay.
    RequeueAfter {
        /// The delay in milliseconds.
        milliseconds: u64,
    },
    /// It failed.
    Failed {
        /// The error with its causes.
        error: String,
    },
    /// It panicked.
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// It took too long.
    TimedOut,
    /// It was dropped, because this process does not lead any more or its shard has another owner.
    NotPermitted,
}

/// An event as a reason of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReason {
    /// The kind of event, as in [`Reason`]'s text: `changed`, `retry` and so on.
    pub kind: String,
    /// The source of the event, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The object that changed, if the event is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The resource version of that object, if it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<u64>,
}

impl StepReason {
    /// Returns whether both are about the same event, whatever the version of its object.
    pub fn is_same_event(&self, other: &Self) -> bool {
        (&self.kind, &self.source, &self.object) == (&other.kind, &other.source, &other.object)
    }

    /// Returns this reason for a queue; `None` if its kind is not known.
    pub fn to_reason(&self) -> Option<Reason> {
        let kind = KINDS.iter().find(|kind| Reason::new(**kind).to_string() == self.kind)?;
        let mut reason = Reason::new(*kind);
        reason.source = self.source.as_deref().map(Into::into);
        (reason.object, reason.resource_version) = (self.object.clone(), self.resource_version);
        Some(reason)
    }
}

impl From<&Reason> for StepReason {
    fn from(reason: &Reason) -> Self {
        Self {
            kind: Reason::new(reason.kind).to_string(),
            source: reason.source.as_deref().map(str::to_owned),
            object: reason.object.clone(),
            resource_version: reason.resource_version,
        }
    }
}

impl fmt::Display for StepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source} ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object} ")?;
        }
        f.write_str(&self.kind)
    }
}

/// Writes the time and what happened in one line, without contents of objects.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} s  {}", Duration::from_micros(self.at).as_secs_f64(), self.step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { resource, change, object } => {
                let change = match change {
                    Change::Found => "found",
                    Change::Added => "added",
                    Change::Updated => "changed",
                    Change::Deleted => "deleted",
                };
                let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
                let key = ObjectKey::namespaced(text("namespace"), text("name"));
                write!(f, "{resource} {key} {change}, version {}", text("resourceVersion"))
            }
            Self::Queued { controller, key, reason } => write!(f, "{controller} queued {key} because of {reason}"),
            Self::Started { turn, controller, key, reasons, failures, .. } => {
                write!(f, "#{turn} {controller} reconciles {key} because of: ")?;
                for (index, reason) in reasons.iter().enumerate() {
                    write!(f, "{}{reason}", if index == 0 { "" } else { ", " })?;
                }
                match failures {
                    0 => Ok(()),
                    failures => write!(f, " (after {failures} failures)"),
                }
            }
            Self::Request { turn, method, path, status, response, error, .. } => {
                write!(f, "#{turn} {method} {path}")?;
                match (status, error) {
                    (Some(status), _) => write!(f, " {status}")?,
                    (None, error) => write!(f, " failed: {}", error.as_deref().unwrap_or("no response"))?,
                }
                let message = response.as_ref().filter(|_| status.is_none_or(|status| status >= 400));
                match message.and_then(|response| response["message"].as_str()) {
                    Some(message) => write!(f, " {message}"),
                    None => Ok(()),
                }
            }
            Self::Ended { turn, end } => write!(f, "#{turn} {end}"),
            Self::Lost { entries } => write!(f, "{entries} entries are missing"),
        }
    }
}

impl Step {
    /// Returns the object, queued key or reconciled key of this entry. Requests and ends have the key of their reconcile.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Object { object, .. } => {
                let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
                Some(ObjectKey::namespaced(text("namespace"), text("name")))
            }
            Self::Queued { key, .. } | Self::Started { key, .. } => Some(key.clone()),
            Self::Request { .. } | Self::Ended { .. } | Self::Lost { .. } => None,
        }
    }

    /// Returns the number of the reconcile that this entry is part of, if any.
    pub fn turn(&self) -> Option<u64> {
        match self {
            Self::Started { turn, .. } | Self::Request { turn, .. } | Self::Ended { turn, .. } => Some(*turn),
            Self::Object { .. } | Self::Queued { .. } | Self::Lost { .. } => None,
        }
    }
}

impl fmt::Display for TurnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::RequeueAfter { milliseconds } => write!(f, "requeue after {milliseconds} ms"),
            Self::Failed { error } => write!(f, "failed: {error}"),
            Self::Panicked { message } => write!(f, "panicked: {message}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotPermitted => f.write_str("not permitted any more"),
        }
    }
}

impl Recording {
    /// Reads a recording from a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not a recording, or is of a later version. A last line that was cut off is ignored: the
    /// process may have been killed while it wrote.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let context = |error: Error| error.context(format!("cannot read recording {}", path.display()));
        let file = std::fs::File::open(path)
            .map_err(|error| context(Error::new(ErrorKind::Invalid, "cannot open the file").with_source(error)))?;
        Self::read(file).map_err(context)
    }

    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub fn read(from: impl Read) -> Result<Self, Error> {
        let mut lines = BufReader::new(from).split(b'\n');
        let mut next = || {
            let line = lines.next().transpose();
            line.map_err(|error| Error::new(ErrorKind::Invalid, "cannot read a line").with_source(error))
        };
        let first = next()?.unwrap_or_default();
        let header: Header = serde_json::from_slice(&first)
            .map_err(|error| Error::new(ErrorKind::Decode, "line 1 is no header of a recording").with_source(error))?;
        if header.klient != "recording" || header.version != VERSION {
            let message = format!(
                "expected a recording of version {VERSION}, found {:?} of version {}",
                header.klient, header.version
            );
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let (mut entries, mut broken) = (Vec::new(), None);
        let mut number = 1;
        while let Some(line) = next()? {
            number += 1;
            if line.is_empty() {
                continue;
            }
            if let Some(error) = broken {
                return Err(error);
            }
            match serde_json::from_slice(&line) {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    let message = format!("line {number} is no entry of a recording");
                    broken = Some(Error::new(ErrorKind::Decode, message).with_source(error));
                }
            }
        }
        Ok(Self { header, entries })
    }

    /// Writes the recording.
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer.
    pub fn write(&self, mut to: impl Write) -> std::io::Result<()> {
        write_line(&mut to, &self.header)?;
        self.entries.iter().try_for_each(|entry| write_line(&mut to, entry))
    }
}

pub(super) fn write_line(to: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Creates a file that other users cannot read: recordings have the contents of objects.
pub(super) fn create_private(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The version of the format.
pub(super) const VERSION: u32 = 1;

const KINDS: [ReasonKind; 10] = [
    ReasonKind::Initial,
    ReasonKind::Added,
    ReasonKind::Updated,
    ReasonKind::Deleted,
    ReasonKind::Resync,
    ReasonKind::Retry,
    ReasonKind::Requeued,
    ReasonKind::Requested,
    ReasonKind::External,
    ReasonKind::TakenOver,
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recording() -> Recording {
        let key = ObjectKey::namespaced("shop", "web");
        let reason = StepReason {
            kind: "changed".to_owned(),
            source: Some("pods".to_owned()),
            object: Some(key.clone()),
            resource_version: Some(7),
        };
        let steps = [
            Step::Object {
                resource: "pods".to_owned(),
                change: Change::Updated,
                object: json!({"metadata": {"name": "web"}}),
            },
            Step::Queued { controller: "c".to_owned(), key: key.clone(), reason: reason.clone() },
            Step::Started {
                turn: 1,
                controller: "c".to_owned(),
                key,
                reasons: vec![reason],
                failures: 2,
                seen: Some("7".to_owned()),
            },
            Step::Request {
                turn: 1,
                method: "PUT".to_owned(),
                path: "/api/v1/namespaces/shop/pods/web".to_owned(),
                body: Some(json!({"spec": {}})),
                status: Some(409),
                response: None,
                error: None,
            },
            Step::Ended { turn: 1, end: TurnEnd::RequeueAfter { milliseconds: 1500 } },
            Step::Lost { entries: 3 },
        ];
        let header = Header {
            klient: "recording".to_owned(),
            version: VERSION,
            started: "2026-01-01T00:00:00Z".to_owned(),
            whole: true,
        };
        let entries = (0..).zip(steps).map(|(at, step)| Entry { at, step }).collect();
        Recording { header, entries }
    }

    #[test]
    fn recording_is_read_as_it_was_written() {
        let mut text = Vec::new();
        recording().write(&mut text).unwrap();
        assert_eq!(Recording::read(&text[..]).unwrap(), recording());
    }

    #[test]
    fn line_that_was_cut_off_is_ignored_at_the_end_only() {
        let mut text = Vec::new();
        recording().write(&mut text).unwrap();
        let cut = Recording::read(&text[..text.len() - 8]).unwrap();
        assert_eq!(cut.entries.len(), recording().entries.len() - 1);
        let mut broken = text.clone();
        broken.truncate(text.len() - 8);
        broken.extend_from_slice(b"\n");
        broken.extend_from_slice(&text[text.len() - 30..]);
        let error = Recording::read(&broken[..]).unwrap_err().to_string();
        assert!(error.contains("line 7"), "{error}");
    }

    #[test]
    fn file_of_a_later_version_is_refused() {
        let text = br#"{"klient":"recording","version":2,"started":"","whole":true}"#;
        let error = Recording::read(&text[..]).unwrap_err().to_string();
        assert_eq!(error, "expected a recording of version 1, found \"recording\" of version 2");
        assert!(Recording::read(&b"apiVersion: v1"[..]).is_err());
    }

    #[test]
    fn entry_is_one_line_without_contents() {
        let shown: Vec<String> = recording().entries.iter().map(|entry| entry.step.to_string()).collect();
        let expected = [
            "pods web changed, version ",
            "c queued shop/web because of pods shop/web changed",
            "#1 c reconciles shop/web because of: pods shop/web changed (after 2 failures)",
            "#1 PUT /api/v1/namespaces/shop/pods/web 409",
            "#1 requeue after 1500 ms",
            "3 entries are missing",
        ];
        assert_eq!(shown, expected);
        assert_eq!(recording().entries[5].to_string(), "    0.000005 s  3 entries are missing");
    }

    #[test]
    fn reason_survives_the_file() {
        for kind in KINDS {
            let reason = Reason { source: Some("pods".into()), resource_version: Some(1), ..Reason::new(kind) };
            assert_eq!(StepReason::from(&reason).to_reason(), Some(reason));
        }
    }
}
