//! The reasons to reconcile a key.

use std::{fmt, sync::Arc};

use klient_core::ObjectKey;

/// One reason to reconcile a key.
///
/// ```
/// use klient::controller::{Reason, ReasonKind};
///
/// assert_eq!(Reason::new(ReasonKind::Requeued).to_string(), "requeued");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// The kind of event.
    pub kind: ReasonKind,
    /// The source of the event: a resource such as `deployments.apps`, or the name of a
    /// [stream of keys](super::ControllerBuilder::keys_from).
    pub source: Option<Arc<str>>,
    /// The object that changed, if the event is about one.
    pub object: Option<ObjectKey>,
    /// The resource version of that object, if it is a number.
    pub resource_version: Option<u64>,
}

/// The kind of event that makes a reconcile necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasonKind {
    /// An object existed when the controller started.
    Initial,
    /// An object was created.
    Added,
    /// An object changed.
    Updated,
    /// An object was deleted.
    Deleted,
    /// A periodic resync of an unchanged object.
    Resync,
    /// The last reconcile failed.
    Retry,
    /// The last reconcile asked for another one after some time.
    Requeued,
    /// The program called [`Controller::request`](super::Controller::request).
    Requested,
    /// A [stream of keys](super::ControllerBuilder::keys_from) returned the key.
    External,
    /// This replica took the key over from another one, or began to work.
    TakenOver,
}

/// The reasons for one reconcile: all events since the last one began.
///
/// The first [`LIMIT`](Self::LIMIT) reasons are stored, and the others are counted. There are no reasons if the event that queued
/// this reconcile was already among the reasons of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    // Nearly always there is one reason, which needs no allocation of its own.
    first: Option<Reason>,
    others: Vec<Reason>,
    not_stored: usize,
}

impl Reason {
    /// Creates a reason without a source or an object.
    pub fn new(kind: ReasonKind) -> Self {
        Self { kind, source: None, object: None, resource_version: None }
    }
}

impl ReasonKind {
    /// Returns the word that logs and reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "found",
            Self::Added => "added",
            Self::Updated => "changed",
            Self::Deleted => "deleted",
            Self::Resync => "resync",
            Self::Retry => "retry",
            Self::Requeued => "requeued",
            Self::Requested => "requested",
            Self::External => "event",
            Self::TakenOver => "taken over",
        }
    }
}

impl Reasons {
    /// The number of reasons that are stored at most.
    pub const LIMIT: usize = 8;

    /// Returns the stored reasons, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        self.first.iter().chain(&self.others)
    }

    /// Returns the number of reasons, including those that are not stored.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len() + self.not_stored
    }

    /// Returns whether there are no reasons.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns whether one of the stored reasons is of this kind.
    pub fn has(&self, kind: ReasonKind) -> bool {
        self.iter().any(|reason| reason.kind == kind)
    }

    /// Adds a reason. It replaces an older one of the same kind and object.
    pub(super) fn add(&mut self, reason: Reason) {
        let mut known = self.first.iter_mut().chain(&mut self.others);
        let is_same = |known: &Reason| {
            known.kind == reason.kind && known.object == reason.object && known.source == reason.source
        };
        if let Some(known) = known.find(|known| is_same(known)) {
            *known = reason;
        } else if self.first.is_none() {
            self.first = Some(reason);
        } else if self.others.len() + 1 < Self::LIMIT {
            self.others.push(reason);
        } else {
            self.not_stored += 1;
        }
    }
}

impl From<Reason> for Reasons {
    fn from(reason: Reason) -> Self {
        Self { first: Some(reason), ..Self::default() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source} ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object} ")?;
        }
        f.write_str(self.kind.as_str())
    }
}

/// Writes the reasons in one line, for logs.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{reason}")?;
        }
        match self.not_stored {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(name: &str, version: u64) -> Reason {
        Reason {
            kind: ReasonKind::Updated,
            source: Some("pods".into()),
            object: Some(ObjectKey::namespaced("shop", name)),
            resource_version: Some(version),
        }
    }

    #[test]
    fn reasons_keep_the_newest_version_of_each_object() {
        let mut reasons = Reasons::default();
        reasons.add(changed("a", 1));
        reasons.add(changed("b", 2));
        reasons.add(changed("a", 3));
        assert_eq!(reasons.iter().cloned().collect::<Vec<_>>(), [changed("a", 3), changed("b", 2)]);
        assert_eq!(reasons.to_string(), "pods shop/a changed, pods shop/b changed");
    }

    #[test]
    fn reasons_count_those_beyond_the_limit() {
        let mut reasons = Reasons::default();
        for number in 0..20 {
            reasons.add(changed(&format!("pod-{number}"), number));
        }
        assert_eq!((reasons.iter().count(), reasons.len()), (Reasons::LIMIT, 20));
        assert!(reasons.to_string().ends_with("pods shop/pod-7 changed and 12 more"), "{reasons}");
    }

    #[test]
    fn reason_of_a_stream_names_its_source() {
        let reason = Reason { source: Some("webhook".into()), ..Reason::new(ReasonKind::External) };
        assert_eq!(reason.to_string(), "webhook event");
    }
}
