//! The steps that a drain reports.

use std::{fmt, time::Duration};

use klient_core::ObjectKey;

use super::filter::{Left, Refusal};
use crate::Error;

/// A step of a [`Drain`](super::Drain). Its text is a line for people.
#[derive(Debug)]
#[non_exhaustive]
pub enum DrainStep<'a> {
    /// The node is unschedulable, and was not before.
    Cordoned,
    /// The node could not be made unschedulable. The drain goes on, as kubectl's does.
    CordonFailed(&'a Error),
    /// A pod stays on the node.
    Left {
        /// The pod.
        pod: &'a ObjectKey,
        /// The reason.
        why: Left,
    },
    /// A pod is removed although it would be refused without an option.
    Overridden {
        /// The pod.
        pod: &'a ObjectKey,
        /// The refusal that the option overrides.
        why: Refusal,
    },
    /// A pod is about to be evicted, or deleted.
    Evicting {
        /// The pod.
        pod: &'a ObjectKey,
    },
    /// The server does not evict a pod now, mostly because of a disruption budget.
    Blocked {
        /// The pod.
        pod: &'a ObjectKey,
        /// The error, whose status names the budget.
        error: &'a Error,
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// A pod is gone. `left` pods are not yet.
    Gone {
        /// The pod.
        pod: &'a ObjectKey,
        /// The number of pods that are left.
        left: usize,
    },
    /// A pod could not be evicted. The others still are.
    Failed {
        /// The pod.
        pod: &'a ObjectKey,
        /// The reason.
        error: &'a Error,
    },
}

impl fmt::Display for DrainStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => f.write_str("cordoned"),
            Self::CordonFailed(error) => write!(f, "could not be cordoned: {error}"),
            Self::Left { pod, why } => write!(f, "{pod} stays: {why}"),
            Self::Overridden { pod, why } => write!(f, "{pod} is removed although {why}"),
            Self::Evicting { pod } => write!(f, "evicting {pod}"),
            Self::Blocked { pod, error, retry_after } => {
                write!(f, "{pod} cannot be evicted yet, next attempt in {} s: {error}", retry_after.as_secs())
            }
            Self::Gone { pod, left } => write!(f, "{pod} is gone, {left} left"),
            Self::Failed { pod, error } => write!(f, "{pod} could not be evicted: {error}"),
        }
    }
}
