//! What becomes of a key after a reconcile.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use klient::{
    BoxError,
    controller::{Cause, Outcome, Terminal},
    metrics::Registry,
    workqueue::ExponentialBackoff,
};
use tokio::time::Instant;

use super::{Running, builder, done, key};
use crate::informer::World;

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_after_growing_delays_until_it_succeeds() {
    let world = World::start().await;
    world.create("a").await;
    let builder =
        builder(&world).rate_limiter(ExponentialBackoff::new(Duration::from_secs(1), Duration::from_secs(60)));
    let mut running = Running::start(builder, |request| {
        let outcome = if request.failures() < 3 { Err("not yet".into()) } else { Ok(Outcome::Done) };
        async { outcome }
    });
    let mut times = Vec::new();
    for failures in 0..4 {
        let call = running.call().await;
        assert_eq!((call.failures(), call.reasons().has(Cause::Retry)), (failures, failures > 0));
        times.push(Instant::now());
    }
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4]);
    running.quiet_for(Duration::from_secs(3600)).await;
    // It is forgotten: the next failure begins anew.
    world.set("a", "1").await;
    for failures in 0..4 {
        assert_eq!(running.call().await.failures(), failures);
    }
    running.quiet_for(Duration::from_secs(3600)).await;
    let status = running.controller.status();
    assert_eq!((status.failed, status.succeeded), (6, 2));
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_waits_for_a_change() {
    let world = World::start().await;
    world.create("a").await;
    let registry = Registry::new();
    let mut running = Running::start(builder(&world).registry(registry.clone()), |_| async {
        Err::<Outcome, BoxError>(Terminal::new("no such thing").into())
    });
    running.call().await;
    running.quiet_for(Duration::from_secs(36_000)).await;
    world.set("a", "1").await;
    assert_eq!(running.call().await.failures(), 0);
    running.quiet_for(Duration::from_secs(60)).await;
    let metrics = registry.render();
    let terminal = "controller_runtime_terminal_reconcile_errors_total{controller=\"maps\"} 2";
    assert!(metrics.contains(terminal), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_can_ask_to_be_called_again_later() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world), |_| async { Ok(Outcome::RequeueAfter(Duration::from_secs(60))) });
    running.call().await;
    let began = Instant::now();
    let call = running.call().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!((call.failures(), call.reasons().to_string().as_str()), (0, "requeued"));
    running.controller.request_after(key("a"), Duration::from_secs(5));
    assert_eq!(running.call().await.reasons().to_string(), "requeued, requested");
    assert_eq!(began.elapsed().as_secs(), 65, "the earlier of two times counts");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_of_that_key_alone() {
    let world = World::start().await;
    for name in ["bad", "good", "worse"] {
        world.create(name).await;
    }
    let registry = Registry::new();
    let mut running = Running::start(builder(&world).registry(registry.clone()), |request| {
        let (name, first) = (request.name().to_owned(), request.failures() == 0);
        assert!(name != "worse" || !first, "before there is a future");
        async move {
            assert!(name != "bad" || !first, "in the middle of it");
            Ok(Outcome::Done)
        }
    });
    let mut calls = Vec::new();
    // The call that panics at once is not told of.
    for _ in 0..4 {
        let call = running.call().await;
        calls.push((call.name().to_owned(), call.failures()));
    }
    calls.sort();
    let expected =
        [("bad", 0), ("bad", 1), ("good", 0), ("worse", 1)].map(|(name, failures)| (name.to_owned(), failures));
    assert_eq!(calls, expected);
    running.quiet_for(Duration::from_secs(60)).await;
    assert_eq!(running.controller.status().panicked, 2);
    assert!(registry.render().contains("controller_runtime_active_workers{controller=\"maps\"} 0"));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_and_tried_again() {
    let world = World::start().await;
    world.create("a").await;
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Noted(Arc<AtomicUsize>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let noted = Arc::clone(&dropped);
    let mut running = Running::start(builder(&world).timeout(Duration::from_secs(10)), move |request| {
        let (hangs, noted) = (request.failures() == 0, Noted(Arc::clone(&noted)));
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            drop(noted);
            Ok(Outcome::Done)
        }
    });
    running.call().await;
    let began = Instant::now();
    assert_eq!(running.call().await.failures(), 1);
    assert_eq!(began.elapsed().as_secs(), 10);
    running.quiet_for(Duration::from_secs(60)).await;
    assert_eq!((running.controller.status().timed_out, dropped.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn workers_reconcile_different_keys_at_once_and_one_key_never_twice() {
    let world = World::start().await;
    for number in 0..8 {
        world.create(&format!("map-{number}")).await;
    }
    let running_now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let of_one_key = Arc::new(AtomicUsize::new(0));
    let (now, max, one) = (Arc::clone(&running_now), Arc::clone(&most), Arc::clone(&of_one_key));
    let mut running = Running::start(builder(&world).workers(NonZeroUsize::new(4).unwrap()), move |request| {
        let (now, max, one) = (Arc::clone(&now), Arc::clone(&max), Arc::clone(&one));
        let hot = request.name() == "map-0";
        async move {
            if hot {
                assert_eq!(one.fetch_add(1, Ordering::SeqCst), 0, "the same key twice at once");
            }
            max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            if hot {
                one.fetch_sub(1, Ordering::SeqCst);
            }
            Ok(Outcome::Done)
        }
    });
    for _ in 0..20 {
        running.controller.request(key("map-0"));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    running.quiet_until_idle().await;
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(running.controller.status().panicked, 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_keys_at_once_are_each_reconciled_once() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world).workers(NonZeroUsize::new(8).unwrap()), |_| done());
    for number in 0..100_000 {
        running.controller.request(key(&format!("map-{number}")));
    }
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100_000 {
        assert!(seen.insert(running.call().await.name().to_owned()));
    }
    running.quiet_for(Duration::from_secs(60)).await;
    let stats = running.controller.status().queue;
    assert_eq!((stats.ready, stats.delayed, stats.in_process), (0, 0, 0));
}

impl Running {
    /// Waits until nothing is called any more.
    async fn quiet_until_idle(&mut self) {
        while tokio::time::timeout(Duration::from_secs(30), self.calls.recv()).await.is_ok() {}
    }
}
