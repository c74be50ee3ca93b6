//! Informers of the real server, while objects change, watches are cut, and the server is killed.
//!
//! `KLIENT_CHURN_OBJECTS` and `KLIENT_CHURN_RUNS` make the test larger, for example 10000 and 20. A run for every
//! commit is smaller.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use klient::{
    Api, Error, ErrorKind, InformerFactory, ObjectKey, Patch, Resource, SharedInformer, WatchEvent,
    client::{ListStream, Watch},
    informer::{CachedObject, Event, FirstRead, InformerState, ListWatch, ObjectFormat, Registration, WatchEvents},
    options::{ListOptions, WatchOptions},
    wire::{ManagedFields, RawObject},
};
use klient_harness::Server;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    cluster::{both_clients, or_skip},
    faults::OwnServer,
};

/// An API whose watches can be cut.
struct Cuttable<K> {
    api: Api<K>,
    cuts: watch::Sender<u64>,
}

struct CuttableWatch<K> {
    watch: Watch<K>,
    cuts: watch::Receiver<u64>,
    cut: bool,
}

impl<K: Resource> ListWatch for Cuttable<K> {
    type Kind = K;
    type List = ListStream<K>;
    type Watch = CuttableWatch<K>;

    async fn list(&self, options: ListOptions, managed_fields: ManagedFields) -> Result<ListStream<K>, Error> {
        ListWatch::list(&self.api, options, managed_fields).await
    }

    async fn watch(&self, options: WatchOptions, managed_fields: ManagedFields) -> Result<CuttableWatch<K>, Error> {
        let cuts = self.cuts.subscribe();
        Ok(CuttableWatch { watch: ListWatch::watch(&self.api, options, managed_fields).await?, cuts, cut: false })
    }

    fn describe(&self) -> String {
        ListWatch::describe(&self.api)
    }
}

impl<K: Resource> WatchEvents for CuttableWatch<K> {
    async fn next(&mut self) -> Option<Result<WatchEvent<RawObject>, Error>> {
        if self.cut {
            return None;
        }
        tokio::select! {
            biased;
            _ = self.cuts.changed() => {
                self.cut = true;
                Some(Err(Error::new(ErrorKind::Transport, "cut")))
            }
            event = self.watch.next_raw() => event,
        }
    }

    fn is_ended(&self) -> bool {
        self.cut || self.watch.is_ended()
    }
}

type Versions = BTreeMap<ObjectKey, String>;

/// The state that a handler derives from its events, and the first impossible event.
#[derive(Default)]
struct Heard {
    known: Versions,
    impossible: Option<String>,
}

impl Heard {
    fn take<K: Resource>(&mut self, event: &Event<K>) {
        let version = |object: &CachedObject<K>| object.resource_version().as_str().to_owned();
        let key = event.key().clone();
        let possible = match event {
            Event::Added { object, .. } => self.known.insert(key, version(object)).is_none(),
            Event::Updated { old, new } => self.known.insert(key, version(new)) == Some(version(old)),
            Event::Deleted(_) => self.known.remove(&key).is_some(),
        };
        if !possible {
            self.impossible.get_or_insert(format!("{event:?}"));
        }
    }
}

/// One informer with a handler that checks its events.
struct Follower<K: Resource> {
    informer: SharedInformer<K>,
    heard: Arc<Mutex<Heard>>,
    _registration: Registration<K>,
}

impl<K: Resource> Follower<K> {
    fn new(informer: SharedInformer<K>) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let log = Arc::clone(&heard);
        let registration = informer.add_handler(move |event: &Event<K>| log.lock().unwrap().take(event));
        informer.start();
        Self { informer, heard, _registration: registration }
    }

    async fn assert_equal(&self, what: &str, list: &(Versions, klient::object::ResourceVersion)) {
        let seen = tokio::time::timeout(Duration::from_secs(120), self.informer.wait_until_seen(&list.1)).await;
        assert!(seen.is_ok(), "{what} does not catch up: {:?}", self.informer.status());
        let cached = self.informer.lister().list();
        let cached: Versions =
            cached.iter().map(|object| (object.key().clone(), object.resource_version().as_str().to_owned())).collect();
        assert_eq!(cached, list.0, "{what}");
        // A separate task calls the handler after the cache is updated.
        let told = async {
            while self.heard.lock().unwrap().known != list.0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(60), told).await.is_ok(),
            "{what}'s handler does not catch up"
        );
        let heard = self.heard.lock().unwrap();
        assert_eq!(heard.impossible, None, "{what}'s handler received an impossible event");
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"churn": "yes"}}, "data": {"n": "0"}})).unwrap()
}

/// Writes random changes until it is stopped. Failures of the server are ignored.
async fn churn(maps: Api<ConfigMap>, names: usize, seed: u64, stop: Arc<AtomicBool>, writes: Arc<AtomicU64>) {
    let mut state = seed;
    while !stop.load(Ordering::Relaxed) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let name = format!("m{}", (state >> 33) as usize % names);
        let change = json!({"data": {"n": state.to_string()}});
        let outcome = match state >> 61 {
            0 => maps.delete(&name).await.map(drop),
            1 | 2 => maps.create(&map(&name)).await.map(drop),
            _ => maps.patch(&name, Patch::merge(change)).await.map(drop),
        };
        match outcome {
            Ok(()) => drop(writes.fetch_add(1, Ordering::Relaxed)),
            Err(error) if error.kind() == ErrorKind::Transport => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(_) => {}
        }
    }
}

async fn fill(maps: &Api<ConfigMap>, names: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let maps = maps.clone();
        tasks.spawn(async move {
            for name in (worker..names).step_by(8) {
                maps.create(&map(&format!("m{name}"))).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_equal_the_server_after_any_faults() {
    let names = number("KLIENT_CHURN_OBJECTS", 300);
    let mut server = or_skip!(OwnServer::start(&[]).await);
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    fill(&maps, names).await;
    let cuts = watch::Sender::new(0);
    for run in 0..number("KLIENT_CHURN_RUNS", 1) {
        let source = || Cuttable { api: Api::<ConfigMap>::namespaced(server.client(), "default"), cuts: cuts.clone() };
        let listed = Follower::new(SharedInformer::new(source()));
        let watched = Follower::new(SharedInformer::builder(source()).first_read(FirstRead::WatchList).build());
        let decoded = Follower::new(
            SharedInformer::builder(source()).object_format(ObjectFormat::Decoded).page_size(100).build(),
        );
        let metadata = Cuttable { api: maps.metadata(), cuts: cuts.clone() };
        let metadata = Follower::new(SharedInformer::builder(metadata).build());
        listed.informer.wait_for_sync().await.unwrap();

        let (stop, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut writers = tokio::task::JoinSet::new();
        for seed in 0..4 {
            let maps = Api::namespaced(server.client(), "default");
            writers.spawn(churn(maps, names, run as u64 * 10 + seed, Arc::clone(&stop), Arc::clone(&writes)));
        }
        for round in 0..6 {
            // At least one write must happen between faults.
            let before = writes.load(Ordering::Relaxed);
            while writes.load(Ordering::Relaxed) < before + 100 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if round % 3 == 2 {
                server.with(Server::kill).await;
                server.with(Server::restart).await.unwrap();
            } else {
                cuts.send_modify(|cuts| *cuts += 1);
            }
        }
        stop.store(true, Ordering::Relaxed);
        while let Some(done) = writers.join_next().await {
            done.unwrap();
        }
        // The version of an object in the caches, which they will therefore see.
        let _ = maps.delete("last").await;
        maps.create(&map("last")).await.unwrap();
        let list = maps.list().await.unwrap();
        let last = list.iter().find(|map| map.metadata.name.as_deref() == Some("last")).unwrap();
        let version = last.metadata.resource_version.clone().unwrap().into();
        let state = list.iter().map(|map| (ObjectKey::of(map), map.metadata.resource_version.clone().unwrap()));
        let expected = (state.collect::<Versions>(), version);
        listed.assert_equal("the one that lists", &expected).await;
        watched.assert_equal("the one whose watch begins with the state", &expected).await;
        decoded.assert_equal("the one that decodes and pages", &expected).await;
        metadata.assert_equal("the one of metadata", &expected).await;
        assert_eq!(listed.informer.status().state, InformerState::Synced);
        assert_eq!(listed.informer.status().decode_errors, 0);
    }
}

#[tokio::test]
async fn informers_of_built_in_kinds_sync_in_either_encoding() {
    for (form, client) in or_skip!(both_clients()) {
        for first_read in [FirstRead::List, FirstRead::WatchList] {
            let factory = InformerFactory::new(client.clone());
            let api = Api::cluster(client.clone());
            let namespaces = factory.of_with(api, |builder| builder.first_read(first_read));
            let roles = factory.rbac_v1().cluster_roles();
            let accounts = factory.core_v1().service_accounts();
            factory.start();
            factory.wait_for_sync().await.unwrap();
            let cached: &SharedInformer<Namespace> = &namespaces;
            let default = cached.lister().get(&ObjectKey::cluster("default")).unwrap();
            assert_eq!(default.decode().unwrap().status.as_ref().unwrap().phase.as_deref(), Some("Active"), "{form}");
            assert!(roles.lister().len() > 50);
            let listed: Api<ServiceAccount> = Api::all(client.clone());
            let listed = listed.list().await.unwrap();
            assert_eq!(accounts.lister().is_empty(), listed.items.is_empty());
            factory.shutdown().await;
        }
    }
}
