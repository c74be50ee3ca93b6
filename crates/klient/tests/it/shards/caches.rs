//! Caches that hold only the objects of their own replica.

use std::future::pending;

use klient::{
    Patch, SharedInformer,
    informer::{EventStream, RelistReason},
    shard::Slot,
};
use klient_apiserver::Fault;
use serde_json::json;

use super::*;

/// A replica whose cache holds only its own objects. Each of its reconciles fails the test if it does not see its object: nothing is deleted
/// in these tests.
struct Narrowed {
    replica: Replica,
    informer: SharedInformer<ConfigMap>,
    events: EventStream<ConfigMap>,
}

impl Narrowed {
    async fn start(world: &World, ledger: &Ledger, name: &str, key: ShardKey<ConfigMap>) -> Self {
        Self::start_with(world, ledger, name, key, Duration::from_millis(50), ShardOptions::default()).await
    }

    async fn start_with(
        world: &World,
        ledger: &Ledger,
        name: &str,
        key: ShardKey<ConfigMap>,
        takes: Duration,
        options: ShardOptions,
    ) -> Self {
        let (registry, informer) = (Registry::new(), world.informer());
        let controller = checking(ledger, name, takes, &informer, &registry)(key);
        let shards = Shards::new(world.client.clone(), "default", GROUP, options.registry(registry.clone()));
        let shards = shards.unwrap().identity(name);
        let replica = Replica::run(controller, shards, registry).await;
        Self { events: informer.events(), replica, informer }
    }

    fn names(&self) -> BTreeSet<String> {
        self.informer.lister().list().iter().map(|object| object.key().name().to_owned()).collect()
    }

    /// Waits until a condition of the names in the cache holds.
    async fn wait_for_names(&mut self, holds: impl Fn(&BTreeSet<String>) -> bool) {
        while !holds(&self.names()) {
            let next = timeout(Duration::from_secs(120), self.events.next()).await;
            assert!(next.is_ok(), "the cache has {:?}", self.names());
        }
    }
}

/// Returns a builder of a controller whose reconciles report objects that they do not see, at their beginning and at their end.
fn checking(
    ledger: &Ledger,
    name: &str,
    takes: Duration,
    informer: &SharedInformer<ConfigMap>,
    registry: &Registry,
) -> impl FnOnce(ShardKey<ConfigMap>) -> Controller<ConfigMap> {
    let (ledger, name, informer, registry) = (ledger.clone(), name.to_owned(), informer.clone(), registry.clone());
    move |key| {
        let builder = Controller::builder("maps", informer).registry(registry).workers(8).sharded(key);
        builder.cache_own_shard().reconcile(move |request: Request<ConfigMap>| {
            let (ledger, name) = (ledger.clone(), name.clone());
            async move {
                let running = ledger.begin(&name, &request);
                let first = request.object()?.is_some();
                sleep(takes).await;
                if !first || request.object()?.is_none() {
                    let problem = format!("{name} sees {} as deleted", request.key());
                    ledger.0.problems.lock().unwrap().push(problem);
                }
                drop(running);
                Ok::<_, klient::Error>(Outcome::Done)
            }
        })
    }
}

fn all_names(count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("map-{number}")).collect()
}

/// Starts two replicas, and waits until each has its half of the slots.
async fn two(world: &World, ledger: &Ledger, key: fn() -> ShardKey<ConfigMap>) -> (Narrowed, Narrowed) {
    let anna = Narrowed::start(world, ledger, "anna", key()).await;
    anna.replica.wait(|status| status.open == 256).await;
    let berta = Narrowed::start(world, ledger, "berta", key()).await;
    berta.replica.wait(|status| status.open == 128).await;
    anna.replica.wait(|status| status.open == 128 && status.draining == 0).await;
    (anna, berta)
}

async fn caches_part_the_objects(key: fn() -> ShardKey<ConfigMap>) {
    let (world, ledger) = (World::start().await, Ledger::default());
    for number in 0..60 {
        let labels = json!({"tenant": format!("t-{}", number % 20)});
        world.create_with(&format!("map-{number}"), labels).await;
    }
    let (mut anna, berta) = two(&world, &ledger, key).await;
    let of_berta = berta.names();
    let of_anna = all_names(60).difference(&of_berta).cloned().collect();
    // The objects of slots that moved leave the cache after their reconciles have ended.
    anna.wait_for_names(|names| *names == of_anna).await;
    assert!(!of_anna.is_empty() && !of_berta.is_empty());
    // Both follow the changes of their own objects, and only those.
    for number in 0..60 {
        world.set(&format!("map-{number}"), "1").await;
    }
    ledger.wait(|entries| entries.len() == 60 && entries.values().all(|e| e.seen.as_deref() == Some("1"))).await;
    assert_eq!(ledger.counts(), [("anna".to_owned(), of_anna.len()), ("berta".to_owned(), of_berta.len())].into());
    assert_eq!((anna.names(), berta.names()), (of_anna.clone(), of_berta.clone()));
    // A key that is requested belongs to one of both. The other one must not take its object for deleted.
    for name in all_names(60) {
        let key = ObjectKey::namespaced("default", &name);
        anna.replica.controller.request(key.clone());
        berta.replica.controller.request(key);
    }
    ledger.wait(|entries| entries.values().all(|entry| entry.count >= 3)).await;
    assert_eq!((ledger.counts()["anna"], ledger.counts()["berta"]), (of_anna.len(), of_berta.len()));
    ledger.check();

    anna.replica.stop().await;
    let mut berta = berta;
    assert_eq!(berta.replica.status().open, 256);
    berta.wait_for_names(|names| *names == all_names(60)).await;
    ledger.wait(|entries| entries.values().all(|entry| entry.last.as_deref() == Some("berta"))).await;
    berta.replica.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn narrowed_caches_part_objects_by_uid() {
    caches_part_the_objects(ShardKey::uid).await;
}

#[tokio::test(start_paused = true)]
async fn narrowed_caches_part_objects_by_key() {
    caches_part_the_objects(ShardKey::object).await;
}

#[tokio::test(start_paused = true)]
async fn narrowed_caches_part_objects_by_label() {
    caches_part_the_objects(|| ShardKey::label("tenant")).await;
}

#[tokio::test(start_paused = true)]
async fn narrowed_cache_takes_over_from_a_dead_replica() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 40).await;
    let (anna, mut berta) = two(&world, &ledger, ShardKey::uid).await;
    anna.replica.kill().await;
    drop(anna.informer);
    let lists = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&lists);
    world.server.inject(Fault::internal_error().on_watches(false).when(move |method, path, _| {
        if method == http::Method::GET && path.contains("/configmaps?") {
            recorded.lock().unwrap().push(path.to_owned());
        }
        false
    }));
    // The last writes of the dead replica are in no Lease: the list has to be of the most recent state.
    for number in 0..40 {
        world.set(&format!("map-{number}"), "1").await;
    }
    berta.replica.wait(|status| status.open == 256).await;
    assert_eq!(berta.names(), all_names(40), "slots are open and their objects are not cached");
    ledger.wait(|entries| entries.values().all(|e| e.last.as_deref() == Some("berta"))).await;
    berta.wait_for_names(|names| *names == all_names(40)).await;
    // Without a version, a list is of the most recent state, which has all writes of the last owner.
    let lists = lists.lock().unwrap().clone();
    assert!(!lists.is_empty() && lists.iter().all(|list| !list.contains("resourceVersion=")), "{lists:?}");
    let relists = berta.informer.status().relists;
    assert_eq!(relists.keys().copied().collect::<Vec<_>>(), [RelistReason::Initial, RelistReason::Resharded]);
    berta.replica.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn object_stays_cached_until_its_reconcile_has_ended() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 60).await;
    // Reconciles are running whenever slots move, and end before they would be dropped.
    let takes = Duration::from_secs(5);
    let start = |name| Narrowed::start_with(&world, &ledger, name, ShardKey::object(), takes, ShardOptions::default());
    let anna = start("anna").await;
    anna.replica.wait(|status| status.open == 256).await;
    let mut berta = start("berta").await;
    anna.replica.wait(|status| status.draining > 0).await;
    berta.replica.wait(|status| status.open == 128).await;
    ledger.wait(|entries| entries.len() == 60).await;
    anna.replica.stop().await;
    berta.wait_for_names(|names| *names == all_names(60)).await;
    berta.replica.kill().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn object_moves_to_another_cache_with_its_label() {
    let (world, ledger) = (World::start().await, Ledger::default());
    // Reconciles take so long that one is running when its object moves.
    let takes = Duration::from_secs(4);
    let label = || ShardKey::label("tenant");
    let options = ShardOptions::default;
    let mut anna = Narrowed::start_with(&world, &ledger, "anna", label(), takes, options()).await;
    anna.replica.wait(|status| status.open == 256).await;
    let mut berta = Narrowed::start_with(&world, &ledger, "berta", label(), takes, options()).await;
    berta.replica.wait(|status| status.open == 128).await;
    anna.replica.wait(|status| status.open == 128).await;
    let tenant_of = |replica: &Replica| {
        let member = Some(replica.status().member);
        let mut tenants = (0..100).map(|number| format!("t-{number}"));
        tenants.find(|tenant| replica.shards.owner_of_slot(Slot::of_text(tenant)) == member).unwrap()
    };
    let (first, second) = (tenant_of(&anna.replica), tenant_of(&berta.replica));
    world.create_with("web", json!({"tenant": first})).await;
    let key = ObjectKey::namespaced("default", "web");
    ledger.wait_while_running(&key, "anna").await;
    assert!(anna.names().contains("web") && !berta.names().contains("web"));

    let label = |tenant: &str| Patch::merge(json!({"metadata": {"labels": {"tenant": tenant}}}));
    world.maps.patch("web", label(&second)).await.unwrap();
    berta.wait_for_names(|names| names.contains("web")).await;
    // The replica that reconciles the object sees it to the end.
    assert!(anna.names().contains("web"));
    let status = anna.replica.status();
    assert_eq!((status.changed_keys, status.last_changed_key), (1, Some(key.clone())));
    ledger.0.problems.lock().unwrap().retain(|problem| !problem.contains("at once"));
    anna.wait_for_names(|names| !names.contains("web")).await;
    ledger.wait(|entries| entries[&key].last.as_deref() == Some("berta") && entries[&key].running.is_none()).await;

    // And back, without a reconcile.
    world.maps.patch("web", label(&first)).await.unwrap();
    anna.wait_for_names(|names| names.contains("web")).await;
    berta.wait_for_names(|names| !names.contains("web")).await;
    ledger.wait(|entries| entries[&key].last.as_deref() == Some("anna") && entries[&key].running.is_none()).await;
    // An object that is deleted while it belongs to a replica is not cached any more.
    world.delete("web").await;
    anna.wait_for_names(BTreeSet::is_empty).await;
    let deletions = |problem: &String| problem.contains("deleted");
    assert!(!ledger.0.problems.lock().unwrap().iter().any(deletions));
    anna.replica.stop().await;
    berta.replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slot_stays_closed_until_its_objects_are_listed() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 20).await;
    let anna = Narrowed::start(&world, &ledger, "anna", ShardKey::uid()).await;
    anna.replica.wait(|status| status.open == 256).await;
    let path = "/api/v1/namespaces/default/configmaps";
    world.server.inject(Fault::internal_error().on_path(path).on_watches(false));
    let mut berta = Narrowed::start(&world, &ledger, "berta", ShardKey::uid()).await;
    berta.replica.wait(|status| status.opening == 128).await;
    assert!(berta.informer.has_synced(), "a cache of no slots is complete");
    // Far longer than the limit for writes of other replicas.
    let open = timeout(Duration::from_secs(60), berta.replica.shards.wait_until(|status| status.open > 0)).await;
    assert!(open.is_err(), "slots are open although their objects were never listed");
    let status = berta.replica.status();
    let awaited = status.awaited.clone().unwrap();
    assert!(awaited.starts_with("a list of the configmaps of 128 slots for controller \"maps\": "), "{awaited}");
    assert!(status.to_string().contains(", 128 opening, waiting for a list of"), "{status}");
    assert_eq!((status.opening, berta.names().len()), (128, 0));

    world.server.clear_faults();
    berta.replica.wait(|status| status.open == 128).await;
    assert_eq!(berta.replica.status().awaited, None);
    berta.wait_for_names(|names| !names.is_empty()).await;
    anna.replica.stop().await;
    berta.replica.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn replica_without_slots_lists_nothing() {
    let (world, ledger) = (World::start().await, Ledger::default());
    create_maps(&world, 5).await;
    let options = ShardOptions::default().weight(0);
    let takes = Duration::from_millis(1);
    let idle = Narrowed::start_with(&world, &ledger, "idle", ShardKey::uid(), takes, options).await;
    let anna = Narrowed::start(&world, &ledger, "anna", ShardKey::uid()).await;
    anna.replica.wait(|status| status.open == 256).await;
    ledger.wait(|entries| entries.len() == 5).await;
    let status = idle.informer.status();
    assert_eq!((status.relists, status.objects, status.events), ([(RelistReason::Initial, 1)].into(), 0, 0));
    let reads = world.server.requests();
    // Both a list and a watch have this path, and only the other replica sent them.
    assert_eq!(reads[&("GET".to_owned(), "/api/v1/namespaces/default/configmaps".to_owned())], 2);
    assert!(idle.informer.has_synced());
    idle.replica.stop().await;
    anna.replica.stop().await;
    ledger.check();
}

#[tokio::test(start_paused = true)]
async fn deletion_reaches_the_reconciler_of_a_narrowed_cache() {
    let (world, registry) = (World::start().await, Registry::new());
    let (sender, mut deleted) = tokio::sync::mpsc::unbounded_channel();
    let informer = world.informer();
    let builder = Controller::builder("maps", informer.clone()).registry(registry.clone());
    let controller = builder.sharded(ShardKey::object()).cache_own_shard().reconcile(move |request: Request<_>| {
        if request.cached().is_none() {
            sender.send(request.key().name().to_owned()).unwrap();
        }
        async { Ok::<_, klient::Error>(Outcome::Done) }
    });
    let replica = Replica::run(controller, shards(&world, "anna", &registry), registry).await;
    replica.wait(|status| status.open == 256).await;
    informer.wait_until_seen(&world.create("web").await).await.unwrap();
    world.delete("web").await;
    assert_eq!(timeout(Duration::from_secs(60), deleted.recv()).await.unwrap().unwrap(), "web");
    replica.stop().await;
}

#[tokio::test]
async fn informer_that_others_read_is_not_narrowed() {
    let world = World::start().await;
    let registry = Registry::new();
    let build = |informer: SharedInformer<ConfigMap>, key: Option<ShardKey<ConfigMap>>| {
        let mut builder = Controller::builder("maps", informer).registry(registry.clone()).cache_own_shard();
        if let Some(key) = key {
            builder = builder.sharded(key);
        }
        let controller = builder.reconcile(|_: Request<ConfigMap>| pending::<klient::Result<Outcome>>());
        let other = Controller::builder("other", world.maps.clone()).registry(registry.clone());
        let other = other.sharded(ShardKey::object());
        let other = other.reconcile(|_: Request<ConfigMap>| pending::<klient::Result<Outcome>>());
        let builder = Manager::builder().registry(registry.clone()).shards(shards(&world, "anna", &registry));
        let manager = builder.controller(other).controller(controller).build();
        async { manager.await.unwrap_err().to_string() }
    };
    let factory = InformerFactory::new(world.client.clone()).namespace("default");
    let error = build(factory.core_v1().config_maps(), Some(ShardKey::uid())).await;
    assert!(error.contains("cannot cache only its own shard: its informer belongs to a factory"), "{error}");
    let error = build(world.synced().await, Some(ShardKey::uid())).await;
    assert!(error.contains("its informer was started before the manager was built: build the"), "{error}");
    let error = build(world.informer(), None).await;
    assert!(error.contains("call `sharded` on its builder"), "{error}");
}
