//! Why a key is reconciled.

use std::{fmt, sync::Arc};

use klient_core::ObjectKey;

/// One reason for a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// What happened.
    pub cause: Cause,
    /// To what: which resource and which object of it, such as `deployments.apps` and `shop/web`. Nothing for what
    /// did not happen to an object.
    pub object: Option<(Arc<str>, ObjectKey)>,
    /// The version of that object, if it is a number.
    pub resource_version: Option<u64>,
}

/// What makes a reconcile necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// An object was there when the controller began.
    Initial,
    /// An object was made.
    Added,
    /// An object changed.
    Updated,
    /// An object is gone.
    Deleted,
    /// An object is shown again, unchanged.
    Resync,
    /// The last reconcile failed.
    Retry,
    /// The last reconcile asked for it.
    Requeued,
    /// Somebody asked the controller for it.
    Requested,
}

/// The reasons for one reconcile: everything that happened since the last one began.
///
/// A few are kept, the others counted. It is empty if what asked for this reconcile was told to the one before, which had
/// already begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    // Nearly always there is one, which needs no memory of its own.
    first: Option<Reason>,
    others: Vec<Reason>,
    left_out: usize,
}

impl Reason {
    pub(super) fn of(cause: Cause) -> Self {
        Self { cause, object: None, resource_version: None }
    }
}

impl Reasons {
    /// How many reasons are kept at most.
    pub const LIMIT: usize = 8;

    /// The reasons, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        self.first.iter().chain(&self.others)
    }

    /// How many there were, those included that are not kept.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len() + self.left_out
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether one of those that are kept has this cause.
    pub fn has(&self, cause: Cause) -> bool {
        self.iter().any(|reason| reason.cause == cause)
    }

    /// Adds one. Of the same cause and object, the newest state is kept.
    pub(super) fn add(&mut self, reason: Reason) {
        let mut known = self.first.iter_mut().chain(&mut self.others);
        if let Some(known) = known.find(|known| known.cause == reason.cause && known.object == reason.object) {
            *known = reason;
        } else if self.first.is_none() {
            self.first = Some(reason);
        } else if self.others.len() + 1 < Self::LIMIT {
            self.others.push(reason);
        } else {
            self.left_out += 1;
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.cause {
            Cause::Initial => "found",
            Cause::Added => "added",
            Cause::Updated => "changed",
            Cause::Deleted => "deleted",
            Cause::Resync => "resync",
            Cause::Retry => "retry",
            Cause::Requeued => "requeued",
            Cause::Requested => "requested",
        };
        match &self.object {
            Some((resource, key)) => write!(f, "{resource} {key} {cause}"),
            None => f.write_str(cause),
        }
    }
}

/// In a line, for logs.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reason) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{reason}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(name: &str, version: u64) -> Reason {
        let object = Some(("pods".into(), ObjectKey::namespaced("shop", name)));
        Reason { cause: Cause::Updated, object, resource_version: Some(version) }
    }

    #[test]
    fn a_change_of_the_same_object_is_the_same_reason_with_a_newer_version() {
        let mut reasons = Reasons::default();
        reasons.add(changed("a", 1));
        reasons.add(changed("b", 2));
        reasons.add(changed("a", 3));
        assert_eq!(reasons.iter().cloned().collect::<Vec<_>>(), [changed("a", 3), changed("b", 2)]);
        assert_eq!(reasons.to_string(), "pods shop/a changed, pods shop/b changed");
    }

    #[test]
    fn a_few_reasons_are_kept_and_the_others_counted() {
        let mut reasons = Reasons::default();
        for number in 0..20 {
            reasons.add(changed(&format!("pod-{number}"), number));
        }
        assert_eq!((reasons.iter().count(), reasons.len()), (Reasons::LIMIT, 20));
        assert!(reasons.to_string().ends_with("pods shop/pod-7 changed and 12 more"), "{reasons}");
    }
}
