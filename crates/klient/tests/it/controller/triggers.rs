//! Which events queue which keys, and with which reasons.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use klient::{
    Api, Controller, Patch,
    controller::{Outcome, Predicate, ReasonKind, Request, Source},
    informer::Event,
    metrics::Registry,
    object::DynamicObject,
    resource::{GroupKind, Scope},
};
use serde_json::{Value, json};

use super::{Running, builder, done, factory, key};
use crate::informer::World;

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(str::to_owned).into()
}

async fn create_secret(world: &World, name: &str, owners: Value) -> Secret {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let secret = json!({"metadata": {"name": name, "ownerReferences": owners}});
    secrets.create(&serde_json::from_value(secret).unwrap()).await.unwrap()
}

/// Returns a reference to a config map. The owner has to exist: the server's garbage collector deletes orphans.
async fn owner(world: &World, name: &str, controls: bool) -> Value {
    let map = world.maps.get(name).await.unwrap();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": map.metadata.uid, "controller": controls})
}

#[tokio::test(start_paused = true)]
async fn controller_reconciles_existing_changed_and_deleted_objects() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let mut running = Running::start(builder(&world), |_| done());
    assert_eq!(running.next_n(2).await, set(["a: configmaps default/a found", "b: configmaps default/b found"]));
    world.create("c").await;
    assert_eq!(running.next().await, "c: configmaps default/c added");
    let version = world.set("a", "1").await;
    let call = running.call().await;
    assert_eq!(call.reasons().to_string(), "configmaps default/a changed");
    assert_eq!(call.reasons().iter().next().unwrap().resource_version, version.as_str().parse().ok());
    assert_eq!(call.object().unwrap().unwrap().data.as_ref().unwrap()["n"], "1");
    world.delete("a").await;
    let call = running.call().await;
    assert_eq!(call.reasons().to_string(), "configmaps default/a deleted");
    assert!(call.object().unwrap().is_none());
    running.quiet_for(Duration::from_secs(3600)).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_merges_events_into_one_reconcile() {
    let world = World::start().await;
    world.create("a").await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let mut running = Running::start(builder(&world), move |_| {
        let held = std::sync::Arc::clone(&held);
        async move {
            held.acquire().await?.forget();
            Ok(Outcome::Done)
        }
    });
    running.call().await;
    let informer = factory(&world).core_v1().config_maps();
    informer.start();
    for value in 1..=5 {
        world.set("a", &value.to_string()).await;
    }
    running.controller.request(key("a"));
    // The first reconcile is still running. All events meanwhile become one more.
    running.quiet_for(Duration::from_secs(10)).await;
    gate.add_permits(10);
    let call = running.call().await;
    assert_eq!(call.reasons().len(), 2, "{call:?}");
    assert!(call.reasons().has(ReasonKind::Updated) && call.reasons().has(ReasonKind::Requested), "{call:?}");
    assert_eq!(call.object().unwrap().unwrap().data.as_ref().unwrap()["n"], "5");
    running.quiet_for(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn owns_reconciles_the_controlling_owner() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let mut running = Running::start(builder(&world).owns(factory(&world).core_v1().secrets()), |_| done());
    running.next_n(2).await;
    let owners = json!([owner(&world, "a", true).await, owner(&world, "b", false).await]);
    create_secret(&world, "s", owners).await;
    assert_eq!(running.next().await, "a: secrets default/s added");
    create_secret(&world, "unowned", json!([])).await;
    // An owner of another group with the same kind and name is another object.
    let mut foreign = owner(&world, "a", true).await;
    foreign["apiVersion"] = json!("example.com/v1");
    foreign["uid"] = json!("another");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    create_secret(&world, "foreign", json!([foreign])).await;
    running.quiet_for(Duration::from_secs(60)).await;
    secrets.delete("s").await.unwrap();
    assert_eq!(running.next().await, "a: secrets default/s deleted");
}

#[tokio::test(start_paused = true)]
async fn owns_reconciles_old_and_new_owner() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let mut running = Running::start(builder(&world).owns(factory(&world).core_v1().secrets()), |_| done());
    running.next_n(2).await;
    create_secret(&world, "s", json!([owner(&world, "a", true).await])).await;
    running.next().await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let handed = Patch::merge(json!({"metadata": {"ownerReferences": [owner(&world, "b", true).await]}}));
    secrets.patch("s", handed).await.unwrap();
    assert_eq!(running.next_n(2).await, set(["a: secrets default/s changed", "b: secrets default/s changed"]));
}

#[tokio::test(start_paused = true)]
async fn owns_any_reconciles_all_owners() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let mut running = Running::start(builder(&world).owns_any(factory(&world).core_v1().secrets()), |_| done());
    running.next_n(2).await;
    let owners = json!([owner(&world, "a", true).await, owner(&world, "b", false).await]);
    create_secret(&world, "s", owners).await;
    assert_eq!(running.next_n(2).await, set(["a: secrets default/s added", "b: secrets default/s added"]));
}

#[tokio::test(start_paused = true)]
async fn owns_finds_cluster_scoped_owners_typed_and_dynamic() {
    let world = World::start().await;
    let namespaces: Api<Namespace> = Api::cluster(world.client.clone());
    let team = namespaces.get("default").await.unwrap();
    let (typed_calls, mut typed) = tokio::sync::mpsc::unbounded_channel();
    let (dynamic_calls, mut dynamic) = tokio::sync::mpsc::unbounded_channel();
    let factory = factory(&world);
    let first = Controller::builder("typed", factory.core_v1().namespaces())
        .registry(Registry::new())
        .owns(factory.core_v1().secrets())
        .reconcile(move |request: Request<Namespace>| {
            typed_calls.send((request.key().clone(), request.reasons().to_string())).unwrap();
            done()
        });
    let resource = klient::resource::ApiResource::of::<Namespace>();
    let second = Controller::builder("dynamic", factory.dynamic(resource))
        .registry(Registry::new())
        .owner_kind(GroupKind::new("", "Namespace"), Scope::Cluster)
        .owns(factory.core_v1().secrets())
        .reconcile(move |request: Request<DynamicObject>| {
            dynamic_calls.send((request.key().clone(), request.reasons().to_string())).unwrap();
            done()
        });
    let both = async {
        let running = (first.run_until(std::future::pending()), second.run_until(std::future::pending()));
        let _ = tokio::join!(running.0, running.1);
    };
    let test = async {
        // The namespaces that exist from the beginning.
        let there = namespaces.list().await.unwrap().items.len();
        for _ in 0..there {
            assert!(typed.recv().await.unwrap().1.ends_with("found"));
            assert!(dynamic.recv().await.unwrap().1.ends_with("found"));
        }
        let reference = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": team.metadata.uid, "controller": true});
        create_secret(&world, "s", json!([reference])).await;
        let expected = (klient::ObjectKey::cluster("default"), "secrets default/s added".to_owned());
        assert_eq!(typed.recv().await.unwrap(), expected);
        assert_eq!(dynamic.recv().await.unwrap(), expected);
    };
    tokio::select! {
        () = both => panic!("they run for ever"),
        () = crate::informer::within(test) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_mapping_sees_old_and_new_state() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let label = |event: &Event<Secret>, keys: &mut klient::controller::Keys<'_>| {
        let mut add = |object: &klient::informer::CachedObject<Secret>| {
            if let Some(name) = object.label("for") {
                keys.add(key(&name));
            }
        };
        if let Event::Updated { old, .. } = event {
            add(old);
        }
        add(event.object());
    };
    let mut running = Running::start(builder(&world).watches(factory(&world).core_v1().secrets(), label), |_| done());
    running.next_n(2).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let secret = json!({"metadata": {"name": "s", "labels": {"for": "a"}}});
    secrets.create(&serde_json::from_value(secret).unwrap()).await.unwrap();
    assert_eq!(running.next().await, "a: secrets default/s added");
    let moved = Patch::merge(json!({"metadata": {"labels": {"for": "b"}}}));
    secrets.patch("s", moved).await.unwrap();
    assert_eq!(running.next_n(2).await, set(["a: secrets default/s changed", "b: secrets default/s changed"]));
}

#[tokio::test(start_paused = true)]
async fn controller_counts_events_that_predicates_ignore() {
    let world = World::start().await;
    world.create_with("a", json!({"team": "bar"})).await;
    let registry = Registry::new();
    let source = Source::new(factory(&world).core_v1().config_maps())
        .only(Predicate::labels_changed())
        .only(Predicate::<ConfigMap>::new(|event| event.key().name() != "ignored"));
    let mut running = Running::start(Controller::builder("maps", source).registry(registry.clone()), |_| done());
    running.next().await;
    world.set("a", "1").await;
    world.create("ignored").await;
    let label = Patch::merge(json!({"metadata": {"labels": {"team": "kitchen"}}}));
    world.maps.patch("a", label).await.unwrap();
    assert_eq!(running.next().await, "a: configmaps default/a changed");
    running.quiet_for(Duration::from_secs(60)).await;
    let metrics = registry.render();
    assert!(metrics.contains("klient_controller_filtered_events_total{controller=\"maps\"} 2"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn resync_reconciles_all_objects_periodically() {
    let world = World::start().await;
    world.create("a").await;
    let source = Source::new(factory(&world).core_v1().config_maps()).resync(Duration::from_secs(30));
    let mut running = Running::start(Controller::builder("maps", source).registry(Registry::new()), |_| done());
    assert_eq!(running.next().await, "a: configmaps default/a found");
    let began = tokio::time::Instant::now();
    for round in 1..=3 {
        assert_eq!(running.next().await, "a: configmaps default/a resync");
        let passed = began.elapsed().as_secs_f64();
        assert!((passed - 30.0 * f64::from(round)).abs() < 2.0, "{passed}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_have_priority_over_initial_objects() {
    let world = World::start().await;
    for number in 0..20 {
        world.create(&format!("old-{number}")).await;
    }
    let slow = || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Outcome::Done)
    };
    let mut running = Running::start(builder(&world), move |_| slow());
    running.next().await;
    world.create("new").await;
    // A worker may have taken another key already.
    let next = [running.next().await, running.next().await];
    assert!(next.contains(&"new: configmaps default/new added".to_owned()), "{next:?}");
    assert_eq!(running.next_n(18).await.len(), 18);
}
