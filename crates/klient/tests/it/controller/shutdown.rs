//! How a controller ends.

use std::time::Duration;

use klient::{ErrorKind, controller::Outcome};
use tokio::time::Instant;

use super::{Running, builder, done};
use crate::informer::World;

#[tokio::test(start_paused = true)]
async fn what_is_ready_or_under_way_ends_before_the_controller_does() {
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
async fn what_does_not_end_in_time_is_dropped_and_told() {
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
    let what = "the controller \"maps\" did not end within 5s: 1 reconciles were dropped, 2 keys were not begun";
    assert_eq!(error.to_string(), what);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_in_after_the_signal() {
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
async fn a_controller_that_waits_for_its_first_list_ends_at_once_and_runs_no_second_time() {
    let world = World::start().await;
    world.server.inject(klient_apiserver::Fault::internal_error());
    let running = Running::start(builder(&world), |_| done());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let controller = running.controller.clone();
    running.stop().await.unwrap();
    let again = controller.run_until(std::future::pending()).await.unwrap_err();
    assert_eq!((again.kind(), again.to_string().as_str()), (ErrorKind::Invalid, "the controller \"maps\" ran before"));
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_informer_was_stopped_says_so() {
    let world = World::start().await;
    let informer = super::factory(&world).core_v1().config_maps();
    informer.stop().await;
    let controller =
        klient::controller::Controller::builder("maps", informer).reconcile(|_: klient::controller::Request<_>| done());
    let error = controller.run_until(std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "the controller \"maps\" cannot start");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the informer is stopped");
}
