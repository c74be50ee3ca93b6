//! The Leases of a group in a cluster: read by an informer with a label selector, written by their versions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp};
use klient_core::ObjectKey;
use tokio::sync::watch;

use super::lease::{GroupLease, GroupStore, View};
use crate::{
    Error,
    client::{Api, Client},
    informer::{Event, Registration, SharedInformer},
};

/// The Leases of a group in a namespace.
pub(super) struct LeaseStore {
    api: Api<Lease>,
    namespace: String,
    group: String,
    informer: SharedInformer<Lease>,
    _registration: Registration<Lease>,
    changed: watch::Sender<u64>,
    view: Mutex<Option<(u64, Arc<View>)>>,
}

impl LeaseStore {
    pub(super) fn new(client: Client, namespace: &str, group: &str) -> Self {
        let api = Api::namespaced(client, namespace);
        let informer = SharedInformer::builder(api.clone()).labels(format!("{GROUP_LABEL}={group}")).build();
        let changed = watch::Sender::new(0u64);
        let sender = changed.clone();
        let registration =
            informer.add_handler(move |_: &Event<Lease>| sender.send_modify(|number| *number = number.wrapping_add(1)));
        Self {
            api,
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            informer,
            _registration: registration,
            changed,
            view: Mutex::default(),
        }
    }

    /// Returns the Lease to write: labels and other fields that this process does not set stay as they were last seen.
    fn to_lease(&self, lease: &GroupLease) -> Lease {
        let key = ObjectKey::namespaced(&self.namespace, &lease.name);
        let known = self.informer.lister().get(&key).and_then(|lease| lease.decode().ok());
        let mut object = known.map(|lease| Lease::clone(&lease)).unwrap_or_default();
        let metadata = &mut object.metadata;
        metadata.name = Some(lease.name.clone());
        // An update by UID is refused if the Lease was deleted; without one, it would create the Lease again.
        metadata.uid = Some(lease.uid.clone()).filter(|uid| !uid.is_empty());
        metadata.resource_version = Some(lease.version.clone()).filter(|version| !version.is_empty());
        metadata.managed_fields = None;
        metadata.labels.get_or_insert_default().insert(GROUP_LABEL.to_owned(), self.group.clone());
        metadata.annotations.get_or_insert_default().insert(RECORD.to_owned(), lease.data.clone());
        let spec = object.spec.get_or_insert_default();
        let seconds = lease.duration.as_secs().max(1);
        let now = MicroTime(Timestamp::now());
        if spec.holder_identity.as_ref() != Some(&lease.holder) {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
        }
        spec.holder_identity = Some(lease.holder.clone());
        spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        spec.renew_time = Some(now);
        object
    }
}

impl GroupStore for LeaseStore {
    async fn ready(&self) -> Result<(), Error> {
        self.informer.start();
        self.informer.wait_for_sync().await
    }

    fn view(&self) -> Arc<View> {
        let number = *self.changed.borrow();
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, view)) = view.as_ref().filter(|(of, _)| *of == number) {
            return Arc::clone(view);
        }
        let leases = self.informer.lister().list();
        let leases = leases.iter().filter_map(|lease| Some(from_lease(&*lease.decode().ok()?)));
        let new = Arc::new(leases.map(|lease| (lease.name.clone(), lease)).collect::<BTreeMap<_, _>>());
        *view = Some((number, Arc::clone(&new)));
        new
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    async fn get(&self, name: &str) -> Result<Option<GroupLease>, Error> {
        Ok(self.api.get_opt(name).await?.map(|lease| from_lease(&lease)))
    }

    async fn create(&self, lease: &GroupLease) -> Result<GroupLease, Error> {
        Ok(from_lease(&self.api.create(&self.to_lease(lease)).await?))
    }

    async fn update(&self, lease: &GroupLease) -> Result<GroupLease, Error> {
        Ok(from_lease(&self.api.update(&self.to_lease(lease)).await?))
    }

    async fn delete(&self, lease: &GroupLease) -> Result<(), Error> {
        self.api.delete(&lease.name).uid(&lease.uid).resource_version(lease.version.as_str()).await?;
        Ok(())
    }
}

fn from_lease(lease: &Lease) -> GroupLease {
    let metadata = &lease.metadata;
    let spec = lease.spec.clone().unwrap_or_default();
    let data = metadata.annotations.as_ref().and_then(|annotations| annotations.get(RECORD)).cloned();
    let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    GroupLease {
        name: metadata.name.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(seconds.min(MAX_SECONDS)),
        data: data.unwrap_or_default(),
    }
}

/// The label of all Leases of a group, with the name of the group.
const GROUP_LABEL: &str = "shard.klient/group";
/// The annotation with the table of the group, or with the record of a member.
const RECORD: &str = "shard.klient/record";
/// A day: a longer duration can only be an edit by hand.
const MAX_SECONDS: u64 = 24 * 60 * 60;
