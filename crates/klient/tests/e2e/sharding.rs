//! Replicas whose caches hold only their own objects, on real servers that can and cannot select these objects.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Controller, Manager, Patch, SharedInformer,
    controller::{Outcome, Request},
    metrics::Registry,
    shard::{ShardKey, ShardOptions, Shards, Slot},
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use crate::{cluster::or_skip, faults::OwnServer};

const OBJECTS: usize = 100;
const HALF: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";

/// A replica of a controller that does nothing.
struct Replica {
    informer: SharedInformer<ConfigMap>,
    shards: Shards,
    stop: oneshot::Sender<()>,
    task: JoinHandle<klient::Result<()>>,
}

impl Replica {
    async fn start(client: &Client) -> Self {
        let registry = Registry::new();
        let informer = SharedInformer::new(Api::<ConfigMap>::namespaced(client.clone(), "default"));
        let builder = Controller::builder("maps", informer.clone()).registry(registry.clone());
        let builder = builder.sharded(ShardKey::uid()).cache_own_shard();
        let controller = builder.reconcile(async |request: Request<ConfigMap>| {
            assert!(request.object()?.is_some(), "{} looks deleted", request.key());
            Ok::<_, klient::Error>(Outcome::Done)
        });
        let options = ShardOptions::default()
            .lease_duration(Duration::from_secs(3))
            .renew_deadline(Duration::from_secs(2))
            .retry_period(Duration::from_millis(300))
            .settle(Duration::from_millis(500))
            .registry(registry.clone());
        let shards = Shards::new(client.clone(), "default", "maps", options).unwrap();
        let manager = Manager::builder().registry(registry).shards(shards.clone()).controller(controller);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(manager.build().await.unwrap().run_until(async { drop(stopped.await) }));
        Self { informer, shards, stop, task }
    }

    fn uids(&self) -> BTreeSet<String> {
        self.informer.lister().list().iter().map(|object| object.uid().unwrap().into_owned()).collect()
    }

    async fn wait_for_slots(&self, open: usize) {
        let waiting = self.shards.wait_until(|status| status.open == open && status.moves.is_empty());
        assert!(timeout(Duration::from_secs(60), waiting).await.is_ok(), "{}", self.shards.status());
    }

    /// Waits until a condition of the cache holds.
    async fn wait_for_cache(&self, holds: impl Fn(&Self) -> bool) {
        let mut events = self.informer.events();
        let waiting = async {
            while !holds(self) {
                events.next().await.unwrap();
            }
        };
        assert!(timeout(Duration::from_secs(60), waiting).await.is_ok(), "{:?}", self.informer.status());
    }
}

/// Runs two replicas. Returns how many objects and events of the other replica each has received.
async fn dropped_by_two_replicas(client: &Client) -> [u64; 2] {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut uids = BTreeSet::new();
    for number in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("map-{number}")}});
        uids.extend(maps.create(&serde_json::from_value(map).unwrap()).await.unwrap().metadata.uid);
    }
    let anna = Replica::start(client).await;
    anna.wait_for_slots(256).await;
    assert_eq!(anna.uids(), uids);
    let berta = Replica::start(client).await;
    berta.wait_for_slots(128).await;
    let of_berta = berta.uids();
    anna.wait_for_cache(|anna| anna.uids().is_disjoint(&of_berta)).await;
    assert_eq!(anna.uids().union(&of_berta).cloned().collect::<BTreeSet<_>>(), uids);
    let member = berta.shards.status().member;
    assert!(of_berta.iter().all(|uid| berta.shards.owner_of_slot(Slot::of_uid(uid)).as_ref() == Some(&member)));

    for number in 0..OBJECTS {
        maps.patch(&format!("map-{number}"), Patch::merge(json!({"data": {"n": "1"}}))).await.unwrap();
    }
    let is_changed = |replica: &Replica| {
        let objects = replica.informer.lister().list();
        objects.iter().all(|object| object.decode().unwrap().data.is_some())
    };
    anna.wait_for_cache(is_changed).await;
    berta.wait_for_cache(is_changed).await;
    let dropped = [&anna, &berta].map(|replica| replica.informer.status().dropped);

    drop(anna.stop);
    anna.task.await.unwrap().unwrap();
    berta.wait_for_slots(256).await;
    assert_eq!(berta.uids(), uids);
    drop(berta.stop);
    berta.task.await.unwrap().unwrap();
    dropped
}

/// Lists half of the objects. Returns the selector that the server says it obeyed, and the UIDs.
async fn half(client: &Client) -> (Value, Vec<String>) {
    let request = client.rest().get().path("/api/v1/namespaces/default/configmaps").param("shardSelector", HALF);
    let list: Value = request.accept("application/json").value().await.unwrap();
    let uids =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned());
    (list["metadata"]["shardInfo"]["selector"].clone(), uids.collect())
}

#[tokio::test]
async fn server_selects_the_objects_of_each_replica() {
    let server = or_skip!(OwnServer::start(&[("feature-gates", "ShardedListAndWatch=true")]).await);
    let client = server.client();
    assert_eq!(dropped_by_two_replicas(&client).await, [0, 0]);
    let (obeyed, uids) = half(&client).await;
    assert_eq!(obeyed, HALF);
    assert!(!uids.is_empty() && uids.len() < OBJECTS);
    assert!(uids.iter().all(|uid| Slot::of_uid(uid).index() < 128), "the server has another hash");
}

#[tokio::test]
async fn replicas_drop_what_the_server_does_not_select() {
    let server = or_skip!(OwnServer::start(&[]).await);
    let client = server.client();
    let [anna, berta] = dropped_by_two_replicas(&client).await;
    assert!(anna > 0 && berta > 0, "{anna}, {berta}");
    let (obeyed, uids) = half(&client).await;
    assert_eq!((obeyed, uids.len()), (Value::Null, OBJECTS));
}
