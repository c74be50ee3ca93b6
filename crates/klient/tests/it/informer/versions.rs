//! Servers whose resource version goes back: restored from a backup, or restarted without their data.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    SharedInformer,
    informer::{InformerState, RelistReason},
};
use tokio::time::Instant;

use super::{
    World,
    model::Cuttable,
    next, next_n,
    source::{Page, Source, added, bookmark, broken, deleted, object_with},
    within,
};

fn started(source: &Source) -> SharedInformer<ConfigMap> {
    let informer = SharedInformer::new(source.clone());
    informer.start();
    informer
}

/// Waits until the source has received so many requests.
async fn requests(source: &Source, count: usize) -> Vec<String> {
    within(async {
        while source.requests().len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    source.requests()
}

/// Checks that an informer at version 50 has relisted a server that is at version 4.
async fn assert_relisted(informer: &SharedInformer<ConfigMap>) {
    within(async {
        while informer.store().resource_version().as_str() != "4" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let names: Vec<_> = informer.lister().list().keys().iter().map(|key| key.name().to_owned()).collect();
    assert_eq!(names, ["b"]);
    let status = informer.status();
    assert_eq!(status.relists, [(RelistReason::Initial, 1), (RelistReason::VersionWentBack, 1)].into());
    let error = status.last_error.unwrap();
    assert!(error.contains("went back from 50 to 3"), "{error}");
    assert_eq!(status.state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn informer_relists_after_version_below_its_watch() {
    for event in [bookmark("3", false), added("b", "3")] {
        let source = Source::default();
        source.list(Page::new("50", &[("a", "40")]));
        let watch = source.watch();
        source.list(Page::new("4", &[("b", "3")]));
        let _second = source.watch();
        let informer = started(&source);
        within(informer.wait_for_sync()).await.unwrap();
        let start = Instant::now();
        watch.send(event).unwrap();
        assert_eq!(requests(&source, 4).await, ["list any 500", "watch @50", "list newest 500", "watch @4"]);
        let waited = start.elapsed().as_secs_f64();
        assert!((0.8..2.0).contains(&waited), "the relist is paced: {waited}");
        assert_relisted(&informer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn informer_checks_version_after_reconnect_without_events() {
    let source = Source::default();
    source.list(Page::new("50", &[("a", "40")]));
    let first = source.watch();
    let _silent = source.watch();
    source.list(Page::new("3", &[]));
    source.list(Page::new("4", &[("b", "3")]));
    let _second = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    let start = Instant::now();
    first.send(broken()).unwrap();
    let expected = ["list any 500", "watch @50", "watch @50", "list newest 1", "list newest 500", "watch @4"];
    assert_eq!(requests(&source, 6).await, expected);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_relisted(&informer).await;
}

#[tokio::test(start_paused = true)]
async fn informer_resumes_watch_if_version_did_not_go_back() {
    let source = Source::default();
    source.list(Page::new("50", &[("a", "40")]));
    let first = source.watch();
    let silent = source.watch();
    source.list(Page::new("50", &[]));
    let quiet = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    first.send(broken()).unwrap();
    let expected = ["list any 500", "watch @50", "watch @50", "list newest 1", "watch @50"];
    assert_eq!(requests(&source, 5).await, expected);
    tokio::time::sleep(Duration::from_secs(240)).await;
    assert_eq!(source.requests().len(), 5, "one check is enough");
    quiet.send(added("b", "51")).unwrap();
    within(informer.wait_until_seen(&"51".into())).await.unwrap();
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1)].into());
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn informer_checks_version_after_watch_without_events() {
    let source = Source::default();
    source.list(Page::new("50", &[("a", "40")]));
    let _silent = source.watch();
    source.list(Page::new("3", &[]));
    source.list(Page::new("4", &[("b", "3")]));
    let _second = source.watch();
    let informer = started(&source);
    let expected = ["list any 500", "watch @50", "list newest 1", "list newest 500", "watch @4"];
    assert_eq!(requests(&source, 5).await, expected);
    assert_relisted(&informer).await;
}

#[tokio::test(start_paused = true)]
async fn informer_updates_object_whose_version_was_reused() {
    let source = Source::default();
    source.list(Page::of("50", [object_with("a", "40", "old"), object_with("b", "2", "same")]));
    let watch = source.watch();
    source.list(Page::of("45", [object_with("a", "40", "new"), object_with("b", "2", "same")]));
    let _second = source.watch();
    let informer = started(&source);
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    watch.send(bookmark("44", false)).unwrap();
    assert_eq!(next(&mut events).await, "~a old>new");
    assert_eq!(events.registration().backlog(), 0, "b did not change");
}

#[tokio::test(start_paused = true)]
async fn informer_relists_once_if_server_does_not_order_versions() {
    let source = Source::default();
    source.list(Page::new("50", &[("a", "40")]));
    let first = source.watch();
    source.list(Page::new("50", &[("a", "40")]));
    let second = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    first.send(added("b", "3")).unwrap();
    for number in 0..20 {
        second.send(added(&format!("c{number}"), "3")).unwrap();
    }
    second.send(added("d", "51")).unwrap();
    within(informer.wait_until_seen(&"51".into())).await.unwrap();
    assert_eq!(source.requests(), ["list any 500", "watch @50", "list newest 500", "watch @50"]);
    assert_eq!(informer.lister().len(), 22);
}

#[tokio::test(start_paused = true)]
async fn informer_keeps_watching_after_delete_with_old_version() {
    let source = Source::default();
    source.list(Page::new("50", &[("a", "3")]));
    let watch = source.watch();
    let informer = started(&source);
    watch.send(deleted("a", "3")).unwrap();
    watch.send(added("b", "51")).unwrap();
    within(informer.wait_until_seen(&"51".into())).await.unwrap();
    assert_eq!(source.requests(), ["list any 500", "watch @50"]);
    assert_eq!(informer.lister().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn informer_follows_a_server_that_lost_its_data() {
    // The first to start is at the lower version, however servers choose their first one.
    let empty = World::start().await;
    let full = World::start().await;
    for number in 0..50 {
        full.create(&format!("m{number}")).await;
    }
    empty.create("new").await;
    let (low, high) = (empty.state().await.1, full.state().await.1);
    assert!(high.is_newer_than(&low), "{high} and {low}");
    let source = Cuttable::new(full.maps.clone());
    let informer = SharedInformer::new(source.clone());
    informer.start();
    full.assert_equal(&informer).await;
    source.switch_to(empty.maps.clone());
    source.cut();
    within(async {
        while super::cached(&informer) != empty.state().await.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    empty.set("new", "1").await;
    within(async {
        while super::cached(&informer) != empty.state().await.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(informer.status().relists[&RelistReason::VersionWentBack], 1);
}
