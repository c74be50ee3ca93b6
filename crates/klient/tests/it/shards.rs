//! Several managers that share the keys of a controller, on the embedded server with a paused clock.

mod bad_input;
mod caches;
mod handover;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use klient::{
    Api, Controller, InformerFactory, Manager, ObjectKey,
    controller::{Outcome, Request},
    election::{ElectionOptions, LeaderElector, LeaseLock},
    introspection::{KeyState, ShardReport},
    metrics::Registry,
    shard::{ShardKey, ShardOptions, ShardStatus, Shards},
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::informer::World;

const GROUP: &str = "maps";

/// Who reconciles which key now, and who did last. Fails if two replicas reconcile one key at once.
#[derive(Clone, Default)]
struct Ledger(Arc<LedgerInner>);

#[derive(Default)]
struct LedgerInner {
    entries: Mutex<BTreeMap<ObjectKey, Entry>>,
    changed: watch::Sender<u64>,
    problems: Mutex<Vec<String>>,
}

#[derive(Default, Clone)]
struct Entry {
    running: Option<String>,
    last: Option<String>,
    token: u64,
    count: u64,
    /// The data that the last reconcile saw.
    seen: Option<String>,
}

/// A reconcile that is running; it ends also if its future is dropped.
struct Running {
    ledger: Ledger,
    key: ObjectKey,
}

impl Ledger {
    fn begin(&self, replica: &str, request: &Request<ConfigMap>) -> Running {
        let token = request.grant().expect("the controller is sharded").token();
        let mut entries = self.0.entries.lock().unwrap();
        let entry = entries.entry(request.key().clone()).or_default();
        let mut problems = self.0.problems.lock().unwrap();
        if let Some(other) = &entry.running {
            problems.push(format!("{replica} and {other} reconcile {} at once", request.key()));
        }
        if entry.token > token || (entry.token == token && entry.last.as_deref().is_some_and(|last| last != replica)) {
            problems.push(format!("{replica} has token {token} for {}, after {}", request.key(), entry.token));
        }
        entry.token = token;
        entry.running = Some(replica.to_owned());
        entry.last = Some(replica.to_owned());
        entry.count += 1;
        let data = request.object().unwrap().and_then(|map| map.data.clone());
        entry.seen = data.and_then(|data| data.get("n").cloned());
        self.0.changed.send_modify(|number| *number += 1);
        Running { ledger: self.clone(), key: request.key().clone() }
    }

    /// Waits until a condition of the entries holds.
    async fn wait(&self, holds: impl Fn(&BTreeMap<ObjectKey, Entry>) -> bool) {
        let mut changes = self.0.changed.subscribe();
        let waiting = async {
            while !holds(&self.0.entries.lock().unwrap()) {
                changes.changed().await.unwrap();
            }
        };
        timeout(Duration::from_secs(120), waiting).await.expect("the reconciles do not happen");
    }

    /// Waits until a replica reconciles a key.
    async fn wait_while_running(&self, key: &ObjectKey, replica: &str) {
        self.wait(|entries| entries.get(key).is_some_and(|entry| entry.running.as_deref() == Some(replica))).await;
    }

    fn check(&self) {
        assert_eq!(*self.0.problems.lock().unwrap(), Vec::<String>::new());
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.0.entries.lock().unwrap().values() {
            *counts.entry(entry.last.clone().unwrap()).or_default() += 1;
        }
        counts
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ledger.0.entries.lock().unwrap().get_mut(&self.key).unwrap().running = None;
        self.ledger.0.changed.send_modify(|number| *number += 1);
    }
}

/// A manager with one sharded controller.
struct Replica {
    shards: Shards,
    controller: Controller<ConfigMap>,
    registry: Registry,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<klient::Result<()>>,
}

impl Replica {
    async fn start(world: &World, ledger: &Ledger, name: &str) -> Self {
        Self::start_with(world, ledger, name, ShardKey::object(), Duration::from_millis(50)).await
    }

    /// Starts a replica whose reconciles take some time.
    async fn start_with(world: &World, ledger: &Ledger, name: &str, key: ShardKey<ConfigMap>, takes: Duration) -> Self {
        let registry = Registry::new();
        let controller = controller(world, ledger, name, key, takes, &registry, 8);
        Self::run(controller, shards(world, name, &registry), registry).await
    }

    /// Starts a replica that reconciles all objects of a test at the same time, so that every handover has some to wait for.
    async fn start_busy(world: &World, ledger: &Ledger, name: &str, takes: Duration) -> Self {
        let registry = Registry::new();
        let controller = controller(world, ledger, name, ShardKey::object(), takes, &registry, 64);
        Self::run(controller, shards(world, name, &registry), registry).await
    }

    /// Runs a manager with a controller.
    async fn run(controller: Controller<ConfigMap>, shards: Shards, registry: Registry) -> Self {
        let builder = Manager::builder().registry(registry.clone()).shards(shards.clone());
        let manager = builder.controller(controller.clone()).build().await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
        Self { shards, controller, registry, stop: Some(stop), task }
    }

    fn status(&self) -> ShardStatus {
        self.shards.status()
    }

    async fn wait(&self, holds: impl Fn(&ShardStatus) -> bool) {
        let waiting = timeout(Duration::from_secs(120), self.shards.wait_until(holds)).await;
        assert!(waiting.is_ok(), "the status does not change: {:?}", self.status());
    }

    /// Shuts the replica down in order.
    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap().unwrap();
    }

    /// Ends the replica without any notice.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn controller(
    world: &World,
    ledger: &Ledger,
    name: &str,
    key: ShardKey<ConfigMap>,
    takes: Duration,
    registry: &Registry,
    workers: usize,
) -> Controller<ConfigMap> {
    let factory = InformerFactory::new(world.client.clone()).namespace("default");
    let (ledger, name) = (ledger.clone(), name.to_owned());
    Controller::builder("maps", factory.core_v1().config_maps())
        .registry(registry.clone())
        .workers(workers)
        .sharded(key)
        .reconcile(move |request: Request<ConfigMap>| {
            let (ledger, name) = (ledger.clone(), name.clone());
            async move {
                let running = ledger.begin(&name, &request);
                sleep(takes).await;
                drop(running);
                Ok::<_, klient::Error>(Outcome::Done)
            }
        })
}

fn shards(world: &World, identity: &str, registry: &Registry) -> Shards {
    let options = ShardOptions::default().registry(registry.clone());
    Shards::new(world.client.clone(), "default", GROUP, options).unwrap().identity(identity)
}

async fn create_maps(world: &World, count: usize) {
    for number in 0..count {
        world.create(&format!("map-{number}")).await;
    }
}

fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.client.clone(), "default")
}

#[tokio::test(start_paused = true)]
async fn replica_explains_that_another_one_has_a_key() {
    let world = World::start().await;
    let ledger = Ledger::default();
    for number in 0..20 {
        world.create(&format!("map-{number}")).await;
    }
    let (a, b) = tokio::join!(Replica::start(&world, &ledger, "a"), Replica::start(&world, &ledger, "b"));
    let is_shared = |status: &ShardStatus| status.moves.is_empty() && status.open > 0 && status.open < 256;
    a.wait(is_shared).await;
    b.wait(is_shared).await;
    let states = |replica: &Replica| {
        let keys = (0..20).map(|number| ObjectKey::namespaced("default", &format!("map-{number}")));
        keys.map(|key| replica.controller.explain(&key).state).collect::<Vec<KeyState>>()
    };
    let is_other = |state: &KeyState| matches!(state, KeyState::OtherShard { .. });
    for (of_a, of_b) in states(&a).iter().zip(&states(&b)) {
        assert!(is_other(of_a) != is_other(of_b), "{of_a:?}, {of_b:?}");
    }
    assert!(states(&a).iter().any(is_other) && states(&b).iter().any(is_other));
    let report = ShardReport::from(&a.status());
    assert_eq!((report.members.len(), report.members.values().sum::<usize>()), (2, 256));
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn replicas_share_keys_and_rebalance_when_one_joins() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 60).await;
    let anna = Replica::start(&world, &ledger, "anna").await;
    ledger.wait(|entries| entries.len() == 60).await;
    assert_eq!(ledger.counts(), [("anna".to_owned(), 60)].into());
    assert!(anna.status().coordinates);

    let berta = Replica::start(&world, &ledger, "berta").await;
    berta.wait(|status| status.open == 128 && status.moves.is_empty()).await;
    anna.wait(|status| status.open == 128).await;
    let of_anna = (0..60).filter(|number| {
        let key = ObjectKey::namespaced("default", &format!("map-{number}"));
        anna.shards.owner_of(&key) == Some(anna.status().member)
    });
    let of_anna = of_anna.count();
    assert!((15..45).contains(&of_anna), "{of_anna}");
    // Both reconcile each change of their own keys, and no other.
    for number in 0..60 {
        world.set(&format!("map-{number}"), "1").await;
    }
    ledger.wait(|entries| entries.values().all(|entry| entry.seen.as_deref() == Some("1"))).await;
    assert_eq!(ledger.counts()["anna"], of_anna);
    assert_eq!(ledger.counts()["berta"], 60 - of_anna);

    let status = berta.status();
    assert_eq!(status.members.iter().map(|member| member.slots).collect::<Vec<_>>(), [128, 128]);
    let names: BTreeSet<&str> = status.members.iter().map(|member| member.identity.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["anna", "berta"]));
    assert_eq!((status.orphans, status.draining, status.problem.clone()), (0, 0, None));
    assert!(status.to_string().starts_with("128 of 256 slots, 2 members, table "), "{status}");
    let metrics = berta.registry.render();
    assert!(metrics.contains("klient_shard_owned_slots{group=\"maps\"} 128"), "{metrics}");
    assert!(metrics.contains("klient_shard_gained_slots_total{group=\"maps\"} 128"), "{metrics}");
    assert_eq!(berta.controller.status().failed, 0);
    ledger.check();
    berta.stop().await;
    anna.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn led_controller_runs_beside_sharded_ones() {
    let (world, ledger) = (World::start().await, Ledger::default());
    world.create("a").await;
    let (sender, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let mut stops = Vec::new();
    for name in ["anna", "berta"] {
        let registry = Registry::new();
        let sharded = controller(&world, &ledger, name, ShardKey::object(), Duration::from_millis(1), &registry, 8);
        let sender = sender.clone();
        let led = Controller::builder("led", world.maps.clone()).registry(registry.clone()).reconcile(
            move |request: Request<ConfigMap>| {
                assert!(request.leadership().is_some() && request.grant().is_none());
                sender.send(name).unwrap();
                async { Ok::<_, klient::Error>(Outcome::Done) }
            },
        );
        let lock = LeaseLock::new(world.client.clone(), "default", "lock");
        let elector = LeaderElector::new(lock, name, ElectionOptions::default().registry(registry.clone())).unwrap();
        let builder = Manager::builder().registry(registry.clone()).shards(shards(&world, name, &registry));
        let manager = builder.elected_by(elector).controller(sharded).controller(led).build().await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push((stop, tokio::spawn(manager.run_until(async { drop(stopped.await) }))));
    }
    ledger.wait(|entries| entries.len() == 1).await;
    let leader = calls.recv().await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert!(calls.try_recv().is_err(), "both replicas run the controller that is led, {leader} first");
    for (stop, task) in stops {
        drop(stop);
        task.await.unwrap().unwrap();
    }
    ledger.check();
}
