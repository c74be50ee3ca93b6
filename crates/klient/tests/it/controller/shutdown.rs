//! The shutdown of a controller.

use std::time::Duration;

use klient::{ErrorKind, controller::Outcome};
use tokio::time::Instant;

use super::{Running, builder, done};
use crate::informer::World;

#[tokio::test(start_paused = true)]
async fn controller_finishes_ready_keys_at_shutdown() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let mut running = Running::start(builder(&world), |_| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(Outcome::Done)
    });
    running.call().await;
    let controller = running.controller.clone();
    let began = Instant::now();
    running.stop().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 9);
    assert_eq!(controller.status().succeeded, 3);
}

#[tokio::test(start_paused = true)]
async fn controller_reports_reconciles_dropped_at_shutdown() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let builder = builder(&world).drain_for(Duration::from_secs(5));
    let mut running = Running::start(builder, |_| std::future::pending());
    running.call().await;
    let began = Instant::now();
    let error = running.stop().await.unwrap_err();
    assert_eq!((began.elapsed().as_secs(), error.kind()), (5, ErrorKind::Timeout));
    let what = "controller \"maps\" did not stop within 5s: dropped 1 running reconciles and 2 queued keys";
    assert_eq!(error.to_string(), what);
}

#[tokio::test(start_paused = true)]
async fn controller_queues_nothing_after_the_signal() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world), |_| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
    });
    world.create("a").await;
    running.call().await;
    let controller = running.controller.clone();
    let stopping = running.stop();
    tokio::pin!(stopping);
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut stopping).await.is_err());
    world.create("b").await;
    controller.request(super::key("c"));
    stopping.await.unwrap();
    assert_eq!(controller.status().succeeded, 1);
}

#[tokio::test(start_paused = true)]
async fn controller_stops_before_its_first_list_and_runs_once() {
    let world = World::start().await;
    world.server.inject(klient_apiserver::Fault::internal_error());
    let running = Running::start(builder(&world), |_| done());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let controller = running.controller.clone();
    running.stop().await.unwrap();
    let again = controller.run_until(std::future::pending()).await.unwrap_err();
    assert_eq!(
        (again.kind(), again.to_string().as_str()),
        (ErrorKind::Invalid, "controller \"maps\" has run already: build a new one")
    );
}

#[tokio::test(start_paused = true)]
async fn controller_fails_if_its_informer_is_stopped() {
    let world = World::start().await;
    let informer = super::factory(&world).core_v1().config_maps();
    informer.stop().await;
    let controller =
        klient::Controller::builder("maps", informer).reconcile(|_: klient::controller::Request<_>| done());
    let error = controller.run_until(std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "controller \"maps\" cannot start");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the informer is stopped");
}
