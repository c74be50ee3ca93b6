//! Single faults on the embedded server: no change is lost, and no request loop spins.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    SharedInformer,
    informer::{FirstRead, InformerState, RelistReason},
};
use klient_apiserver::{ApiServer, Fault};
use tokio::time::Instant;

use super::{World, model::Cuttable, within};

async fn cuttable(world: &World) -> (SharedInformer<ConfigMap>, Cuttable) {
    let source = Cuttable::new(world.maps.clone());
    let informer = SharedInformer::new(source.clone());
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    (informer, source)
}

#[tokio::test(start_paused = true)]
async fn informer_resumes_cut_watch_without_list() {
    let world = World::start().await;
    let (informer, source) = cuttable(&world).await;
    for round in 0..10 {
        source.cut();
        world.create(&format!("m{round}")).await;
        world.assert_equal(&informer).await;
    }
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn informer_relists_once_after_compaction() {
    let world = World::start().await;
    let (informer, source) = cuttable(&world).await;
    world.create("a").await;
    world.assert_equal(&informer).await;
    world.server.inject(Fault::internal_error().on_watches(true).times(1));
    source.cut();
    world.delete("a").await;
    world.create("b").await;
    world.server.compact();
    world.assert_equal(&informer).await;
    assert_eq!(informer.status().relists[&RelistReason::Expired], 1);
}

#[tokio::test(start_paused = true)]
async fn informer_backs_off_from_failing_server() {
    let world = World::start().await;
    let (informer, source) = cuttable(&world).await;
    world.server.inject(Fault::internal_error().on_method(http::Method::GET));
    source.cut();
    let before = world.reads();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // Half a minute to a minute between attempts, each of which the client may retry by itself.
    let requests = world.reads() - before;
    assert!((60..600).contains(&requests), "{requests} requests in an hour");
    assert!(matches!(informer.status().state, InformerState::Stale { since } if since.elapsed().as_secs() > 3500));
    world.server.clear_faults();
    world.create("a").await;
    world.assert_equal(&informer).await;
    assert_eq!(informer.status().state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn informer_reopens_stalled_watch() {
    let server = ApiServer::builder().bookmark_every(Duration::from_secs(60)).start().await.unwrap();
    let world = World::of(server);
    let (informer, source) = cuttable(&world).await;
    // After bookmarks were seen, silence means a dead connection.
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert!(informer.status().bookmark_age.is_some());
    world.server.inject(Fault::stall_after(0).on_watches(true).times(1));
    source.cut();
    let start = Instant::now();
    world.create("a").await;
    world.assert_equal(&informer).await;
    assert!(start.elapsed() <= Duration::from_secs(200), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn informer_recovers_from_corrupted_bytes() {
    for byte in [0, 1, 3, 4, 5, 8, 20, 60, 200, 400] {
        let world = World::start().await;
        let (informer, source) = cuttable(&world).await;
        world.server.inject(Fault::corrupt_at(byte).on_watches(true).times(1));
        source.cut();
        for name in ["a", "b", "c"] {
            world.create(name).await;
        }
        // An event with a damaged object is reported. A later event of the same object repairs the cache.
        for name in ["a", "b", "c"] {
            world.set(name, "1").await;
        }
        within(async {
            while super::cached(&informer) != world.state().await.0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if informer.status().decode_errors > 0 {
                    for name in ["a", "b", "c"] {
                        world.set(name, "2").await;
                    }
                }
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn informer_lists_if_initial_events_do_not_end() {
    let world = World::start().await;
    world.create("a").await;
    world.server.inject(Fault::no_bookmarks());
    let informer = SharedInformer::builder(world.maps.clone()).first_read(FirstRead::WatchList).build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    world.assert_equal(&informer).await;
    let second = SharedInformer::builder(world.maps.clone()).first_read(FirstRead::WatchList).build();
    let start = Instant::now();
    second.start();
    within(second.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "the client remembers this about the server");
}

#[tokio::test(start_paused = true)]
async fn informer_restarts_list_after_expired_page() {
    let world = World::start().await;
    for number in 0..7 {
        world.create(&format!("m{number}")).await;
    }
    world.server.inject(Fault::gone().on_watches(false).when(|_, path, _| path.contains("continue=")).times(1));
    let informer = SharedInformer::builder(world.maps.clone()).page_size(3).consistent_first_read(true).build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    world.assert_equal(&informer).await;
    assert_eq!(informer.lister().len(), 7);
}
