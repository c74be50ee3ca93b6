//! The lock that candidates compete for: a record that one of them holds at a time.
//!
//! Invariant of an implementation: a write succeeds only if the record still has the given version.

use std::{future::Future, time::Duration};

use k8s_openapi::jiff::Timestamp;

use crate::Error;

/// A store for the record of an election.
///
/// [`LeaseLock`](super::LeaseLock) stores the record in a Lease. After a future was dropped, its write may or may not be stored.
#[doc(alias = "resourcelock.Interface")]
pub trait LeaderLock: Send + Sync {
    /// Returns the record, if it exists.
    fn get(&self) -> impl Future<Output = Result<Option<VersionedRecord>, Error>> + Send;

    /// Creates the record. Fails if one exists.
    fn create(&self, record: &LeaderRecord) -> impl Future<Output = Result<VersionedRecord, Error>> + Send;

    /// Replaces the record. Fails with a conflict if its version is not `version` any more.
    fn update(
        &self,
        version: &str,
        record: &LeaderRecord,
    ) -> impl Future<Output = Result<VersionedRecord, Error>> + Send;

    /// Returns the name of the lock, for logs and metrics.
    #[doc(alias = "Describe")]
    fn name(&self) -> String;
}

/// A record, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedRecord {
    /// The record.
    pub record: LeaderRecord,
    /// The version of the record: a decimal number that every write raises, also if the record was deleted before.
    /// [`FencingToken`](super::FencingToken)s are such numbers.
    pub version: String,
}

/// The record of an election: its leader, and when it was last renewed.
#[doc(alias = "LeaderElectionRecord")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderRecord {
    /// The identity of the leader. Empty if the lease was released.
    pub holder: String,
    /// How long other candidates wait after the last change that they have seen.
    pub lease_duration: Duration,
    /// When this leader acquired the lease, by its own clock. Informational only.
    pub acquired: Timestamp,
    /// When the leader last renewed the lease, by its own clock. Informational only.
    pub renewed: Timestamp,
    /// How often the leader has changed.
    pub transitions: i32,
}
