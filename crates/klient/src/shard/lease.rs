//! The Leases of a group: one for the group with the table, and one for each member. And the store that has them.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::table::{seal, unseal};
use crate::Error;

/// A Lease of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupLease {
    pub(super) name: String,
    /// The resource version; empty before the Lease was created.
    pub(super) version: String,
    /// The UID, so that an update never creates a Lease again that was deleted.
    pub(super) uid: String,
    pub(super) holder: String,
    pub(super) duration: Duration,
    /// The annotation: a table, or the record of a member.
    pub(super) data: String,
}

impl GroupLease {
    /// Returns the version as a number, to compare two states of one Lease.
    pub(super) fn number(&self) -> u64 {
        self.version.parse().unwrap_or(0)
    }
}

/// The record in the annotation of a member's Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) phase: Phase,
    /// The name of the process for people, such as that of its pod.
    #[serde(default)]
    pub(super) identity: String,
    /// The newest table that the member obeys: all of its work on slots that the table does not give it has ended.
    pub(super) obeyed: u64,
    pub(super) weight: u32,
    /// The shard key of each sharded controller, to notice members that disagree.
    pub(super) keys: BTreeMap<String, String>,
    /// The newest version that the member wrote, by resource. Another member begins when its caches have these.
    pub(super) wrote: BTreeMap<String, u64>,
}

/// The phase of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    #[default]
    Working,
    /// The member gives its slots away.
    Leaving,
    /// The member released its Lease after all of its work had ended.
    Released,
    /// A coordinator ended the member, which had been silent for the duration of its lease.
    Fenced,
}

impl Record {
    pub(super) fn encode(&self) -> String {
        seal(self)
    }

    /// Reads the record of a Lease. A record that was edited by hand is like an empty one: it acknowledges nothing.
    pub(super) fn decode(text: &str) -> Option<Self> {
        unseal(text)
    }
}

/// The Leases of a group by name, at one moment.
pub(super) type View = BTreeMap<String, GroupLease>;

/// A store of the Leases of a group.
///
/// Writes are conditional on the version of the Lease. After a future was dropped, its write may or may not be stored.
pub(super) trait GroupStore: Send + Sync {
    /// Waits until the view is complete.
    fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the Leases as this process last saw them. The view may be old, but never mixes two moments.
    fn view(&self) -> Arc<View>;

    /// Returns a receiver of changes of the view.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Reads one Lease from the server.
    fn get(&self, name: &str) -> impl Future<Output = Result<Option<GroupLease>, Error>> + Send;

    /// Creates a Lease. Fails if one with this name exists.
    fn create(&self, lease: &GroupLease) -> impl Future<Output = Result<GroupLease, Error>> + Send;

    /// Replaces a Lease. Fails if its version has changed.
    fn update(&self, lease: &GroupLease) -> impl Future<Output = Result<GroupLease, Error>> + Send;

    /// Deletes a Lease. Fails if its version has changed.
    fn delete(&self, lease: &GroupLease) -> impl Future<Output = Result<(), Error>> + Send;
}
