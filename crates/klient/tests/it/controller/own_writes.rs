//! A key's next reconcile sees what its last one wrote.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{
    Api, Patch, WatchEvent,
    controller::{Controller, Outcome, Request},
    informer::SharedInformer,
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

/// A controller on a scripted source: what it has written shows when the test says so.
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
async fn the_next_reconcile_waits_until_the_cache_shows_the_write() {
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
    // All of it is one reconcile.
    assert_eq!(call.reasons().to_string(), "requested, configmaps n/a changed");
    assert_eq!(running.controller.status().stale, 0);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_shows_a_write_that_the_informer_does_not_select() {
    let source = Scripted::default();
    let events = source.list(Page::new("5", &[("a", "5")])).watch();
    let mut running = scripted(&source, Duration::from_secs(3600));
    let key = running.call().await.key().clone();
    running.controller.request(key);
    running.quiet_for(Duration::from_secs(20)).await;
    events.send(bookmark("9", false)).unwrap();
    assert_eq!(running.told().await, "a: requested");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_shows_nothing_delays_a_reconcile_for_a_limited_time_and_is_counted() {
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
    assert_eq!(began.elapsed().as_secs(), 2, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn writes_through_the_client_are_noted_by_themselves() {
    // With the waiting turned off, the same test shows old state: it does test something.
    assert!(stale_reads(Duration::from_secs(5)).await == 0);
    assert!(stale_reads(Duration::ZERO).await > 0);
}

/// How many of some reconciles did not see what the one before had written.
async fn stale_reads(limit: Duration) -> usize {
    let world = World::start().await;
    world.create("a").await;
    // The cache is always a second late.
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
            // A new watch begins, late again.
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
async fn an_object_that_was_made_or_deleted_is_seen_so_by_the_next_reconcile() {
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
            // From the cache alone: it must be right each time.
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
