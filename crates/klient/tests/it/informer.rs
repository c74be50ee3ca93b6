//! Informers on the embedded server, and on sources that tests control.

mod blocking;
mod factory;
mod faults;
mod fifo;
mod handlers;
mod model;
mod namespaces;
mod reading;
mod reflector;
pub(crate) mod source;
mod store;
mod sync;
mod unreadable;
mod versions;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ObjectKey, Patch, SharedInformer,
    informer::{Event, EventStream, Tombstone},
    object::ResourceVersion,
};
use klient_apiserver::ApiServer;
use serde_json::json;

use crate::support::embedded;

/// A server and its config maps.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) maps: Api<ConfigMap>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::of(ApiServer::start().await.unwrap())
    }

    pub(crate) fn of(server: ApiServer) -> Self {
        let client = embedded::client(&server);
        Self { maps: Api::namespaced(client.clone(), "default"), server, client }
    }

    /// Creates a config map, and returns its version.
    pub(crate) async fn create(&self, name: &str) -> ResourceVersion {
        self.create_with(name, json!({})).await
    }

    pub(crate) async fn create_with(&self, name: &str, labels: serde_json::Value) -> ResourceVersion {
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "data": {"n": "0"}})).unwrap();
        version(&self.maps.create(&map).await.unwrap())
    }

    pub(crate) async fn set(&self, name: &str, value: &str) -> ResourceVersion {
        let patch = Patch::merge(json!({"data": {"n": value}}));
        version(&self.maps.patch(name, patch.clone()).await.unwrap())
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.maps.delete(name).await.unwrap();
    }

    /// Returns the number of list and watch requests.
    pub(crate) fn reads(&self) -> u64 {
        let requests = self.server.requests();
        requests.iter().filter(|((method, _), _)| method == "GET").map(|(_, count)| count).sum()
    }

    pub(crate) fn informer(&self) -> SharedInformer<ConfigMap> {
        SharedInformer::new(self.maps.clone())
    }

    pub(crate) async fn synced(&self) -> SharedInformer<ConfigMap> {
        let informer = self.informer();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        informer
    }

    /// Returns keys and versions of the server's objects, and the version of their list.
    pub(crate) async fn state(&self) -> (BTreeMap<ObjectKey, ResourceVersion>, ResourceVersion) {
        let list = self.maps.list().await.unwrap();
        let at = list.resource_version();
        (list.iter().map(|map| (ObjectKey::of(map), version(map))).collect(), at)
    }

    /// Waits until the cache has the server's current version, and checks that both have the same objects.
    pub(crate) async fn assert_equal(&self, informer: &SharedInformer<ConfigMap>) {
        let (expected, at) = self.state().await;
        within(informer.wait_until_seen(&at)).await.unwrap();
        assert_eq!(cached(informer), expected);
    }
}

pub(crate) fn version(map: &ConfigMap) -> ResourceVersion {
    map.metadata.resource_version.clone().unwrap().into()
}

pub(crate) fn cached(informer: &SharedInformer<ConfigMap>) -> BTreeMap<ObjectKey, ResourceVersion> {
    let objects = informer.lister().list();
    objects.iter().map(|object| (object.key().clone(), object.resource_version())).collect()
}

/// Fails a test that hangs. The limit is half an hour because a paused clock runs ahead while nothing else happens.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(1800), future).await.expect("timed out")
}

/// Returns an event in short: `+a` added, `*a` added with the first list, `~a 0>1` updated, `-a` deleted, `?a` deleted with the
/// last known state.
pub(crate) fn short(event: &Event<ConfigMap>) -> String {
    let value = |object: &klient::informer::CachedObject<ConfigMap>| {
        object.decode().unwrap().data.as_ref().and_then(|data| data.get("n").cloned()).unwrap_or_default()
    };
    let name = event.key().name();
    match event {
        Event::Added { in_initial_list: true, .. } => format!("*{name}"),
        Event::Added { .. } => format!("+{name}"),
        Event::Updated { old, new } => format!("~{name} {}>{}", value(old), value(new)),
        Event::Deleted(Tombstone::Final(_)) => format!("-{name}"),
        Event::Deleted(Tombstone::LastKnown(_)) => format!("?{name}"),
    }
}

pub(crate) async fn next(events: &mut EventStream<ConfigMap>) -> String {
    short(&within(events.next()).await.expect("the informer has stopped"))
}

pub(crate) async fn next_n(events: &mut EventStream<ConfigMap>, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(next(events).await);
    }
    seen
}
