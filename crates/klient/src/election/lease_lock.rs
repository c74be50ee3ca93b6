//! A leader lock in a Lease object.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};

use super::{LeaderLock, LeaderRecord, VersionedRecord};
use crate::{
    Error, ErrorKind,
    client::{Api, Client},
};

/// A leader lock in a Lease, in client-go's format: candidates of both libraries can compete for one Lease.
///
/// ```no_run
/// use klient::{Client, election::LeaseLock};
///
/// # fn main() -> Result<(), klient::Error> {
/// let lock = LeaseLock::new(Client::infer()?, "shop", "website-controller").label("app", "website-controller");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LeaseLock {
    api: Api<Lease>,
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    /// The Lease as it was last read or written: fields of other writers are kept in updates.
    seen: Mutex<Option<Lease>>,
}

impl LeaseLock {
    /// Creates a lock on the Lease with this name. The Lease is created when it is first acquired.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            labels: BTreeMap::new(),
            seen: Mutex::default(),
        }
    }

    /// Adds a label to the Lease.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    fn seen(&self, lease: Lease) -> VersionedRecord {
        let record = versioned_record(&lease);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
        record
    }

    /// Returns the Lease of this version with another record, if that is the version that was last seen.
    fn changed(&self, version: &str, record: &LeaderRecord) -> Option<Lease> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut lease = seen.filter(|lease| lease.metadata.resource_version.as_deref() == Some(version))?;
        self.write(&mut lease, record);
        Some(lease)
    }

    fn write(&self, lease: &mut Lease, record: &LeaderRecord) {
        let spec = lease.spec.get_or_insert_default();
        let seconds = record.lease_duration.as_secs().max(1);
        *spec = LeaseSpec {
            holder_identity: Some(record.holder.clone()),
            lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
            acquire_time: Some(MicroTime(record.acquired)),
            renew_time: Some(MicroTime(record.renewed)),
            lease_transitions: Some(record.transitions),
            ..spec.clone()
        };
        if !self.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.labels.clone());
        }
    }
}

impl LeaderLock for LeaseLock {
    async fn get(&self) -> Result<Option<VersionedRecord>, Error> {
        let lease = self.api.get_opt(&self.name).await?;
        Ok(lease.map(|lease| self.seen(lease)))
    }

    async fn create(&self, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        let mut lease = Lease::default();
        lease.metadata.name = Some(self.name.clone());
        self.write(&mut lease, record);
        Ok(self.seen(self.api.create(&lease).await?))
    }

    async fn update(&self, version: &str, record: &LeaderRecord) -> Result<VersionedRecord, Error> {
        let lease = self.changed(version, record);
        let lease = lease.ok_or_else(|| Error::new(ErrorKind::Conflict, "lease has changed since it was last read"))?;
        Ok(self.seen(self.api.update(&lease).await?))
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Returns the record in a Lease. A Lease without a holder counts as released.
fn versioned_record(lease: &Lease) -> VersionedRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let time = |time: Option<MicroTime>| time.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    VersionedRecord {
        record: LeaderRecord {
            holder: spec.holder_identity.unwrap_or_default(),
            lease_duration: Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0)),
            acquired: time(spec.acquire_time),
            renewed: time(spec.renew_time),
            transitions: spec.lease_transitions.unwrap_or(0),
        },
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}
