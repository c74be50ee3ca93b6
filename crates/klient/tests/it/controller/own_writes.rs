//! Reconciles wait until the cache shows the writes of the last reconcile of the same key.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use klient::{
    Api, Controller, Patch, SharedInformer, WatchEvent,
    controller::{Outcome, Request},
    metrics::Registry,
};
use serde_json::json;
use tokio::time::Instant;

use super::{Running, builder, done, factory};
use crate::informer::{
    World,
    source::{Page, Source as Scripted, bookmark, object},
    within,
};

/// Returns a controller on a scripted source: its writes appear in the cache when the test says so.
fn scripted(source: &Scripted, limit: Duration) -> Running {
    let informer = SharedInformer::new(source.clone());
    let builder = Controller::builder("maps", informer).registry(Registry::new()).wait_for_own_writes(limit);
    Running::start(builder, |request| {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": request.name(), "namespace": "n", "resourceVersion": "9"}}),
        )
        .unwrap();
        if request.reasons().to_string().contains("found") {
            request.wrote(&map);
        }
        done()
    })
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_until_cache_shows_last_write() {
    let source = Scripted::default();
    let events = source.list(Page::new("5", &[("a", "5")])).watch();
    let mut running = scripted(&source, Duration::from_secs(3600));
    let key = running.call().await.key().clone();
    running.controller.request(key);
    running.quiet_for(Duration::from_secs(20)).await;
    events.send(Ok(WatchEvent::Modified(object("a", "8")))).unwrap();
    running.quiet_for(Duration::from_secs(20)).await;
    events.send(Ok(WatchEvent::Modified(object("a", "9")))).unwrap();
    let call = running.call().await;
    assert_eq!(call.cached().unwrap().resource_version().as_str(), "9");
    // All events meanwhile are one reconcile.
    assert_eq!(call.reasons().to_string(), "requested, configmaps n/a changed");
    assert_eq!(running.controller.status().stale, 0);
}

#[tokio::test(start_paused = true)]
async fn bookmark_shows_write_outside_the_selector() {
    let source = Scripted::default();
    let events = source.list(Page::new("5", &[("a", "5")])).watch();
    let mut running = scripted(&source, Duration::from_secs(3600));
    let key = running.call().await.key().clone();
    running.controller.request(key);
    running.quiet_for(Duration::from_secs(20)).await;
    events.send(bookmark("9", false)).unwrap();
    assert_eq!(running.next().await, "a: requested");
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_for_stale_cache_only_up_to_the_limit() {
    let source = Scripted::default();
    let _events = source.list(Page::new("5", &[("a", "5"), ("b", "5")])).watch();
    let mut running = scripted(&source, Duration::from_secs(2));
    let key = running.call().await.key().clone();
    let began = Instant::now();
    running.controller.request(key.clone());
    while running.call().await.key() != &key {}
    assert_eq!(began.elapsed().as_secs(), 2);
    assert_eq!(running.controller.status().stale, 1);
    running.controller.request(key);
    running.call().await;
    assert_eq!(began.elapsed().as_secs(), 2, "the wait is not repeated");
}

#[tokio::test(start_paused = true)]
async fn reconcile_sees_writes_through_the_client() {
    // Without the wait, the same scenario has stale reads: the test can fail.
    assert!(stale_reads(Duration::from_secs(5)).await == 0);
    assert!(stale_reads(Duration::ZERO).await > 0);
}

/// Returns how many of ten reconciles did not see the write of the one before.
async fn stale_reads(limit: Duration) -> usize {
    let world = World::start().await;
    world.create("a").await;
    // The cache is always one second late.
    world.server.inject(klient_apiserver::Fault::delay(Duration::from_secs(1)).on_watches(true));
    let maps = world.maps.clone();
    let builder = builder(&world).wait_for_own_writes(limit);
    let last = std::sync::Arc::new(std::sync::Mutex::new(String::from("0")));
    let (found, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let server = world.server.clone();
    let running = Running::start(builder, move |request| {
        let read = request.object().unwrap().unwrap().data.as_ref().unwrap()["n"].clone();
        let (maps, last, found, server) = (maps.clone(), std::sync::Arc::clone(&last), found.clone(), server.clone());
        async move {
            let written = last.lock().unwrap().clone();
            found.send(read != written).unwrap();
            let next = (written.parse::<u32>().unwrap() + 1).to_string();
            // The next watch is late again.
            server.end_watches();
            maps.patch("a", Patch::merge(json!({"data": {"n": next}}))).await?;
            *last.lock().unwrap() = next;
            Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
        }
    });
    let mut stale = 0;
    for _ in 0..10 {
        stale += usize::from(within(seen.recv()).await.unwrap());
    }
    drop(running);
    stale
}

#[tokio::test(start_paused = true)]
async fn reconcile_sees_its_own_creates_and_deletes() {
    let world = World::start().await;
    world.create("a").await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let informer = factory(&world).core_v1().secrets();
    let lister = informer.lister();
    let server = world.server.clone();
    server.inject(klient_apiserver::Fault::delay(Duration::from_secs(1)).on_watches(true));
    let builder = builder(&world).watches(informer, |_, _| {}).wait_for_own_writes(Duration::from_secs(60));
    let api = secrets.clone();
    let mut running = Running::start(builder, move |_: &Request<ConfigMap>| {
        let (secrets, lister, server) = (api.clone(), lister.clone(), server.clone());
        async move {
            server.end_watches();
            // The decision depends on the cache alone, which must be right each time.
            if lister.is_empty() {
                let secret = serde_json::from_value(json!({"metadata": {"name": "s"}}))?;
                secrets.create(&secret).await?;
            } else {
                secrets.delete("s").await?;
            }
            Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
        }
    });
    for _ in 0..10 {
        assert_eq!(running.call().await.failures(), 0);
    }
    let status = running.controller.status();
    assert_eq!((status.failed, status.stale), (0, 0));
    drop(running);
    assert!(secrets.list().await.unwrap().items.len() < 2);
}

/// A controller of maps in the namespaces `a` and `b`, with one informer each. Every reconcile changes its map once more, at most
/// three times.
async fn time_of_chains(limit: Duration) -> Duration {
    let world = World::start().await;
    let client = world.client.clone();
    let in_namespace = |namespace: &str| Api::<ConfigMap>::namespaced(client.clone(), namespace);
    for namespace in ["a", "b"] {
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::cluster(client.clone()).create(&object).await.unwrap();
        for number in 0..5 {
            let map: ConfigMap =
                serde_json::from_value(json!({"metadata": {"name": format!("m-{number}")}, "data": {"n": "0"}}))
                    .unwrap();
            in_namespace(namespace).create(&map).await.unwrap();
        }
    }
    let own_keys = |event: &klient::informer::Event<ConfigMap>, keys: &mut klient::controller::Keys<'_>| {
        keys.add(event.key().clone());
    };
    let builder = Controller::builder("maps", in_namespace("a"))
        .registry(Registry::new())
        .watches(in_namespace("b"), own_keys)
        .wait_for_own_writes(limit);
    let writer = client.clone();
    let mut running = Running::start(builder, move |request| {
        let maps = Api::<ConfigMap>::namespaced(writer.clone(), request.namespace());
        let name = request.name().to_owned();
        async move {
            let map = maps.get(&name).await?;
            let turns: u32 = map.data.unwrap()["n"].parse()?;
            if turns < 3 {
                maps.patch(&name, Patch::merge(json!({"data": {"n": (turns + 1).to_string()}}))).await?;
            }
            Ok(Outcome::Done)
        }
    });
    let began = Instant::now();
    while running.controller.status().succeeded < 40 {
        running.call().await;
        tokio::task::yield_now().await;
    }
    assert_eq!(running.controller.status().stale, 0, "a reconcile gave up waiting");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_only_for_the_informer_of_its_namespace() {
    let took = time_of_chains(Duration::from_secs(2)).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn reconcile_accepts_the_longest_wait_for_own_writes() {
    let took = time_of_chains(Duration::MAX).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn reconcile_does_not_wait_for_objects_outside_the_selector() {
    let world = World::start().await;
    world.create_with("a", json!({"app": "web"})).await;
    let informer = SharedInformer::builder(world.maps.clone()).labels("app=web").build();
    let builder = Controller::builder("maps", informer).registry(Registry::new());
    let maps = world.maps.clone();
    let mut running = Running::start(builder.wait_for_own_writes(Duration::from_secs(3600)), move |_| {
        let maps = maps.clone();
        async move {
            let other: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "other-"}}))?;
            maps.create(&other).await?;
            Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
        }
    });
    let began = Instant::now();
    for _ in 0..5 {
        running.call().await;
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_for_a_version_that_is_not_a_number() {
    let source = Scripted::default();
    let events = source.list(Page::new("v-5", &[("a", "v-5")])).watch();
    let informer = SharedInformer::new(source.clone());
    let builder = Controller::builder("maps", informer).registry(Registry::new());
    let mut running = Running::start(builder.wait_for_own_writes(Duration::from_secs(3600)), |request| {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": request.name(), "namespace": "n", "resourceVersion": "v-9"}}),
        )
        .unwrap();
        request.wrote(&map);
        done()
    });
    let key = running.call().await.key().clone();
    running.controller.request(key);
    running.quiet_for(Duration::from_secs(20)).await;
    events.send(Ok(WatchEvent::Modified(object("a", "v-9")))).unwrap();
    assert_eq!(running.call().await.cached().unwrap().resource_version().as_str(), "v-9");
}
