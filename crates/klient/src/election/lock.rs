//! What candidates compete for: a record that one of them writes at a time.
//!
//! What must hold for an implementation: a write succeeds only if the record is still the one of that version.

use std::{future::Future, time::Duration};

use k8s_openapi::jiff::Timestamp;

use crate::Error;

/// Where the record is kept.
///
/// [`LeaseLock`](super::LeaseLock) keeps it in a Lease. Dropping a future may leave a write done or not done.
#[doc(alias = "resourcelock.Interface")]
pub trait LeaderLock: Send + Sync {
    /// Reads the record, if there is one.
    fn get(&self) -> impl Future<Output = Result<Option<Held>, Error>> + Send;

    /// Writes the first record; fails if there is one.
    fn create(&self, record: &LeaderRecord) -> impl Future<Output = Result<Held, Error>> + Send;

    /// Replaces the record of that version; fails if it is another one by now.
    fn update(&self, version: &str, record: &LeaderRecord) -> impl Future<Output = Result<Held, Error>> + Send;

    /// What it is called, in logs and metrics.
    fn name(&self) -> String;
}

/// A record, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What was written.
    pub record: LeaderRecord,
    /// Which write it is from.
    pub version: String,
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderRecord {
    /// The leader; empty if it has left.
    pub holder: String,
    /// How long others wait after the last change that they have seen.
    pub lease_duration: Duration,
    /// When this leader began, by its own clock. For people only.
    pub acquired: Timestamp,
    /// When it was last written, by the leader's clock. For people only.
    pub renewed: Timestamp,
    /// How often another one has begun to lead.
    pub transitions: i32,
}
