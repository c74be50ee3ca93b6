//! Why a key is not reconciled: one test per reason.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Controller, Patch, SharedInformer,
    controller::{HistoryLimits, Outcome, Predicate, Source, Terminal},
    introspection::{KeyState, KeyStory, Phase, TurnOutcome},
    metrics::Registry,
};
use klient_apiserver::Fault;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Running, builder, done, factory, key};
use crate::informer::{
    World,
    source::{Page, Source as Scripted, object_with},
    within,
};

fn history() -> HistoryLimits {
    HistoryLimits::default()
}

/// Waits until the story of a key satisfies a condition.
async fn story(running: &Running, name: &str, holds: impl Fn(&KeyStory) -> bool) -> KeyStory {
    story_of(running, &format!("default/{name}"), holds).await
}

async fn story_of(running: &Running, key: &str, holds: impl Fn(&KeyStory) -> bool) -> KeyStory {
    let mut last = None;
    let waiting = async {
        loop {
            let story = running.controller.explain(&key.parse().unwrap());
            if holds(&story) {
                return story;
            }
            last = Some(story);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), waiting).await {
        Ok(story) => story,
        Err(_) => panic!("{last:#?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn reconciled_key_is_done_with_reasons_and_version() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world).history(history()), |_| done());
    running.call().await;
    let version = world.set("a", "1").await;
    running.call().await;
    let story = story(&running, "a", |story| story.turn_count == 2).await;
    assert!(matches!(story.state, KeyState::Done { .. }), "{story:#?}");
    assert_eq!(story.object.as_ref().unwrap().resource_version, version.to_string());
    let [newest, oldest] = &story.turns[..] else { panic!("{story:#?}") };
    assert_eq!((newest.outcome, newest.seen_version), (TurnOutcome::Succeeded, version.as_str().parse().ok()));
    assert_eq!((newest.reasons[0].kind.as_str(), oldest.reasons[0].kind.as_str()), ("changed", "found"));
    assert_eq!(newest.reasons[0].object.as_deref(), Some("default/a"));
    assert!(newest.queued_for.is_some(), "{newest:?}");
    assert!(story.summary.starts_with("reconciled "), "{}", story.summary);
}

#[tokio::test(start_paused = true)]
async fn key_in_backoff_names_its_last_error() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world).history(history()), |_| async { Err("no quota left".into()) });
    for _ in 0..8 {
        running.call().await;
    }
    let story = story(&running, "a", |story| matches!(story.state, KeyState::Backoff { .. })).await;
    let KeyState::Backoff { retry_in, failures, error } = &story.state else { panic!("{story:#?}") };
    assert!(*retry_in > 0.0 && *failures >= 8, "{story:#?}");
    assert_eq!(error.as_deref(), Some("no quota left"));
    assert_eq!(story.turns[0].outcome, TurnOutcome::Failed);
    assert!(story.turns[0].next_in.is_some());
    assert_eq!(story.pending[0].kind, "retry");
    let report = running.controller.report();
    assert_eq!((report.failing[0].key.as_str(), report.queue.failing), ("default/a", 1));
}

#[tokio::test(start_paused = true)]
async fn terminal_failure_waits_for_a_change() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world).history(history()), |_| async {
        Err(Terminal::new("replicas must not be negative").into())
    });
    running.call().await;
    let story = story(&running, "a", |story| matches!(story.state, KeyState::Failed { .. })).await;
    assert!(story.summary.ends_with("before something changes: replicas must not be negative"), "{}", story.summary);
}

#[tokio::test(start_paused = true)]
async fn requeued_key_is_scheduled() {
    let world = World::start().await;
    world.create("a").await;
    let hour = Duration::from_secs(3600);
    let mut running =
        Running::start(builder(&world).history(history()), move |_| async move { Ok(Outcome::RequeueAfter(hour)) });
    running.call().await;
    let story = story(&running, "a", |story| matches!(story.state, KeyState::Scheduled { .. })).await;
    assert_eq!(story.turns[0].next_in, Some(3600.0));
    assert_eq!(story.pending[0].kind, "requeued");
}

#[tokio::test(start_paused = true)]
async fn queued_key_counts_those_before_it() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let mut running = Running::start(builder(&world).history(history()), move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await?.forget();
            Ok(Outcome::Done)
        }
    });
    let first = running.call().await.name().to_owned();
    let stories: Vec<KeyStory> = ["a", "b", "c"].iter().map(|name| running.controller.explain(&key(name))).collect();
    let mut ahead = Vec::new();
    for story in &stories {
        match &story.state {
            KeyState::InProcess { again: false, .. } => assert_eq!(story.key, format!("default/{first}")),
            KeyState::Ready { ahead: before, workers: 1, busy: 1, .. } => ahead.push(*before),
            other => panic!("{other:?}"),
        }
    }
    ahead.sort_unstable();
    assert_eq!(ahead, [0, 1]);
    world.set(&first, "1").await;
    let again = story(&running, &first, |story| matches!(story.state, KeyState::InProcess { again: true, .. })).await;
    assert!(again.summary.contains("another turn follows"), "{}", again.summary);
    assert_eq!(running.controller.report().running[0].key, format!("default/{first}"));
    opened.add_permits(4);
}

#[tokio::test(start_paused = true)]
async fn ignored_change_names_its_predicate() {
    let world = World::start().await;
    world.create("a").await;
    let source = Source::from(factory(&world).core_v1().config_maps())
        .only(Predicate::new(|_| true).named("all"))
        .only(Predicate::labels_changed());
    let builder = Controller::builder("maps", source).registry(Registry::new()).history(history());
    let mut running = Running::start(builder, |_| done());
    running.call().await;
    story(&running, "a", |story| matches!(story.state, KeyState::Done { .. })).await;
    let version = world.set("a", "1").await;
    let story = story(&running, "a", |story| matches!(story.state, KeyState::Filtered { .. })).await;
    let KeyState::Filtered { event } = &story.state else { panic!("{story:#?}") };
    assert_eq!((event.predicate.as_str(), event.source.as_str(), event.count), ("labels_changed", "configmaps", 1));
    assert_eq!(event.resource_version, version.as_str().parse().ok());
    assert_eq!(running.controller.report().filtered, 1);
}

#[tokio::test(start_paused = true)]
async fn own_write_that_a_predicate_ignores_leaves_a_key_done() {
    let world = World::start().await;
    world.create("a").await;
    let source = Source::from(factory(&world).core_v1().config_maps()).only(Predicate::labels_changed());
    let builder = Controller::builder("maps", source).registry(Registry::new()).history(history());
    let maps = world.maps.clone();
    let mut running = Running::start(builder, move |_| {
        let maps = maps.clone();
        async move {
            maps.patch("a", Patch::merge(json!({"data": {"n": "9"}}))).await?;
            Ok(Outcome::Done)
        }
    });
    running.call().await;
    let story = story(&running, "a", |story| story.filtered.is_some() && story.turn_count == 1).await;
    assert!(matches!(story.state, KeyState::Done { .. }), "{story:#?}");
    let write = &story.turns[0].writes[0];
    assert_eq!((write.resource.as_str(), write.object.as_str()), ("configmaps", "default/a"));
    assert_eq!(write.resource_version.as_ref(), story.object.as_ref().map(|object| &object.resource_version));
}

#[tokio::test(start_paused = true)]
async fn key_waits_for_its_own_write() {
    let source = Scripted::default();
    let _events = source.list(Page::new("5", &[("a", "5")])).watch();
    let builder = Controller::builder("maps", SharedInformer::new(source.clone()))
        .registry(Registry::new())
        .wait_for_own_writes(Duration::from_secs(3600))
        .history(history());
    let mut running = Running::start(builder, |request| {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": request.name(), "namespace": "n", "resourceVersion": "9"}}),
        )
        .unwrap();
        request.wrote(&map);
        done()
    });
    let key = running.call().await.key().clone();
    running.controller.request(key.clone());
    running.quiet_for(Duration::from_secs(20)).await;
    let story = running.controller.explain(&key);
    let KeyState::WaitingForOwnWrite { waiting_for, at_most, write } = &story.state else { panic!("{story:#?}") };
    assert!(*waiting_for >= 19.0 && *at_most > 3500.0, "{story:#?}");
    assert_eq!((write.object.as_str(), write.resource_version.as_deref()), ("n/a", Some("9")));
    assert!(story.summary.contains("until the cache shows its own write of configmaps n/a (9)"), "{}", story.summary);
}

#[tokio::test(start_paused = true)]
async fn controller_without_its_first_list_names_the_resource() {
    let world = World::start().await;
    world.server.inject(Fault::internal_error().on_path("/api/v1/namespaces/default/configmaps"));
    let running = Running::start(builder(&world).history(history()), |_| done());
    let denied = |story: &KeyStory| matches!(&story.state, KeyState::NotSynced { error: Some(_), .. });
    let story = story(&running, "a", denied).await;
    let KeyState::NotSynced { resource, informer, .. } = &story.state else { panic!("{story:#?}") };
    assert_eq!((resource.as_str(), informer.as_str()), ("configmaps", "syncing"));
    assert_eq!(running.controller.report().phase, Phase::Syncing);
}

#[tokio::test(start_paused = true)]
async fn missing_object_is_not_cached_or_not_covered() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world).history(history()), |_| done());
    running.call().await;
    story(&running, "b", |story| story.state == KeyState::NotCached { covered: true }).await;
    let elsewhere = running.controller.explain(&"kube-system/b".parse().unwrap());
    assert_eq!(elsewhere.state, KeyState::NotCached { covered: false });
    world.delete("a").await;
    running.call().await;
    let deleted = story(&running, "a", |story| story.turn_count == 2).await;
    assert!(matches!(deleted.state, KeyState::Done { .. }), "{deleted:#?}");
    assert!(deleted.object.is_none());
}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_read_is_named_with_its_error() {
    let source = Scripted::default();
    source.list(Page::of("5", [object_with("a", "5", "bad")]));
    let _events = source.watch();
    let informer = SharedInformer::builder(source.clone())
        .transform(|map: &mut ConfigMap| assert!(map.data.as_ref().unwrap()["n"] != "bad", "not this object"))
        .build();
    let builder = Controller::builder("maps", informer).registry(Registry::new()).history(history());
    let running = Running::start(builder, |_| done());
    let unreadable = |story: &KeyStory| matches!(&story.state, KeyState::Unreadable { error: Some(_) });
    let story = story_of(&running, "n/a", unreadable).await;
    assert!(story.summary.starts_with("the object cannot be read"), "{}", story.summary);
    assert_eq!(story.informers[0].unreadable_keys, ["n/a"]);
}

#[tokio::test(start_paused = true)]
async fn stopped_controller_explains_that_it_stopped() {
    let world = World::start().await;
    let controller = builder(&world).reconcile(|_| async { Ok::<_, klient::Error>(Outcome::Done) });
    assert_eq!(controller.explain(&key("a")).state, KeyState::NotStarted);
    controller.run_until(async {}).await.unwrap();
    assert_eq!(controller.explain(&key("a")).state, KeyState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn key_without_history_is_idle() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world), |_| done());
    running.call().await;
    let story = story(&running, "a", |story| story.state == KeyState::Idle).await;
    assert!(!story.has_history && story.turns.is_empty(), "{story:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_object_without_an_event_names_its_informer() {
    let world = World::start().await;
    world.create("a").await;
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    // The handler hangs in this predicate: the cache has the change, and no event reaches the key. The other tasks of its thread go on.
    let slow =
        Predicate::on_update(move |_, _| tokio::task::block_in_place(|| blocked.lock().unwrap().recv().is_err()));
    let source = Source::from(factory(&world).core_v1().config_maps()).only(slow);
    let builder = Controller::builder("maps", source).registry(Registry::new()).history(history());
    let mut running = Running::start(builder, |_| done());
    running.call().await;
    story(&running, "a", |story| matches!(story.state, KeyState::Done { .. })).await;
    world.set("a", "1").await;
    let late = story(&running, "a", |story| matches!(story.state, KeyState::NoEvent { .. })).await;
    let KeyState::NoEvent { informer, informer_event_ago } = &late.state else { panic!("{late:#?}") };
    assert_eq!((informer.as_str(), informer_event_ago.is_some()), ("synced", true));
    drop(release);
    story(&running, "a", |story| story.turn_count == 2).await;
}

#[tokio::test(start_paused = true)]
async fn hot_loop_is_found_and_search_is_limited() {
    let world = World::start().await;
    for number in 0..20 {
        world.create(&format!("map-{number}")).await;
    }
    let maps = world.maps.clone();
    let mut running = Running::start(builder(&world).history(history()), move |request| {
        let (maps, name) = (maps.clone(), request.name().to_owned());
        async move {
            if name == "map-7" {
                // A counter in the object itself: each turn causes the next one.
                let count: u64 = maps.get(&name).await?.data.and_then(|data| data["n"].parse().ok()).unwrap_or(0);
                maps.patch(&name, Patch::merge(json!({"data": {"n": (count + 1).to_string()}}))).await?;
            }
            Ok(Outcome::Done)
        }
    });
    within(async {
        while running.controller.report().hot_loops.is_empty() {
            running.call().await;
        }
    })
    .await;
    let hot = running.controller.report().hot_loops;
    assert_eq!((hot.len(), hot[0].key.as_str()), (1, "default/map-7"));
    assert_eq!(running.controller.search_keys("map-1", 5).len(), 5);
    assert_eq!(running.controller.search_keys("map-19", 5).len(), 1);
}
