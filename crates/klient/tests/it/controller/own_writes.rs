//! Reconciles wait until the cache shows the writes of the last reconcile of the same key.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
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
