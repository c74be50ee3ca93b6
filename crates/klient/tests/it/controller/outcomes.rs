//! When a key is reconciled again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    BoxError,
    controller::{Outcome, ReasonKind, Request, Retry, Terminal},
    metrics::Registry,
    workqueue::ExponentialBackoff,
};
use tokio::time::Instant;

use super::{Running, builder, done, key};
use crate::informer::World;

#[tokio::test(start_paused = true)]
async fn controller_retries_failures_with_growing_delays() {
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
        assert_eq!((call.failures(), call.reasons().has(ReasonKind::Retry)), (failures, failures > 0));
        times.push(Instant::now());
    }
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4]);
    running.quiet_for(Duration::from_secs(3600)).await;
    // After a success, failures are counted from zero again.
    world.set("a", "1").await;
    for failures in 0..4 {
        assert_eq!(running.call().await.failures(), failures);
    }
    running.quiet_for(Duration::from_secs(3600)).await;
    let status = running.controller.status();
    assert_eq!((status.failed, status.succeeded), (6, 2));
}

#[tokio::test(start_paused = true)]
async fn controller_retries_terminal_error_after_a_change_only() {
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
async fn controller_requeues_after_the_given_time() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world), |_| async { Ok(Outcome::RequeueAfter(Duration::from_secs(60))) });
    running.call().await;
    let began = Instant::now();
    let call = running.call().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!((call.failures(), call.reasons().to_string().as_str()), (0, "requeued"));
    running.controller.request_after(key("a"), Duration::from_secs(5));
    assert_eq!(running.call().await.reasons().to_string(), "requested");
    assert_eq!(began.elapsed().as_secs(), 65, "the earlier of two times counts");
}

#[tokio::test(start_paused = true)]
async fn requeued_is_not_a_reason_before_its_time() {
    let world = World::start().await;
    world.create("a").await;
    let later = Outcome::RequeueAfter(Duration::from_secs(300));
    let mut running = Running::start(builder(&world), move |request| {
        // The second reconcile asks for nothing: the first one's request still stands.
        let outcome = if request.reasons().has(ReasonKind::Initial) { later } else { Outcome::Done };
        async move { Ok(outcome) }
    });
    running.call().await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.set("a", "1").await;
    assert_eq!(running.next().await, "a: configmaps default/a changed");
    assert_eq!(running.next().await, "a: requeued");
    assert_eq!(began.elapsed().as_secs(), 300);
    running.quiet_for(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn retry_is_not_a_reason_of_a_change_before_its_time() {
    let world = World::start().await;
    world.create("a").await;
    let builder = builder(&world).on_error(|_, _| Retry::After(Duration::from_secs(60)));
    let mut running = Running::start(builder, |request| {
        let outcome = if request.failures() == 0 { Err("not yet".into()) } else { Ok(Outcome::Done) };
        async { outcome }
    });
    running.call().await;
    world.set("a", "1").await;
    assert_eq!(running.next().await, "a: configmaps default/a changed");
    running.quiet_for(Duration::from_secs(3600)).await;
    // The cancelled retry leaves no reason behind.
    running.controller.request(key("a"));
    assert_eq!(running.next().await, "a: requested");
}

#[tokio::test(start_paused = true)]
async fn on_error_chooses_the_delay_from_error_and_failures() {
    let world = World::start().await;
    world.create("a").await;
    let builder = builder(&world).on_error(|error, failures| match (error.to_string().as_str(), failures) {
        ("busy", 1..=2) => Retry::After(Duration::from_secs(100 * u64::from(failures))),
        ("busy", _) => Retry::Never,
        _ => Retry::Backoff,
    });
    let mut running = Running::start(builder, |_| async { Err("busy".into()) });
    let mut times = Vec::new();
    for failures in 0..3 {
        assert_eq!(running.call().await.failures(), failures);
        times.push(Instant::now());
    }
    let delays: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(delays, [100, 200]);
    running.quiet_for(Duration::from_secs(36_000)).await;
    // A change reconciles the key again, with failures counted from zero.
    world.set("a", "1").await;
    assert_eq!(running.call().await.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn on_error_is_not_called_for_terminal_errors() {
    let world = World::start().await;
    world.create("a").await;
    let builder = builder(&world).on_error(|_, _| Retry::After(Duration::from_secs(1)));
    let mut running = Running::start(builder, |_| async { Err(Terminal::new("no image").into()) });
    running.call().await;
    running.quiet_for(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn reconcile_with_passes_the_context() {
    let world = World::start().await;
    world.create("a").await;
    let calls = Arc::new(AtomicUsize::new(0));
    let controller = builder(&world).reconcile_with(Arc::clone(&calls), async |request, calls| {
        calls.fetch_add(1, Ordering::SeqCst);
        assert_eq!(request.name(), "a");
        Ok::<_, klient::Error>(Outcome::Done)
    });
    assert_eq!(controller.reconcile_once(key("a")).await.unwrap(), Outcome::Done);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn reconcile_once_returns_outcome_or_error() {
    let world = World::start().await;
    for name in ["good", "bad", "worse", "slow"] {
        world.create(name).await;
    }
    let builder = builder(&world).timeout(Duration::from_secs(10));
    let controller = builder.reconcile(async |request: Request<ConfigMap>| -> Result<Outcome, BoxError> {
        assert!(request.object()?.is_some(), "the cache is complete");
        assert_eq!(request.reasons().to_string(), "requested");
        match request.name() {
            "good" => Ok(Outcome::RequeueAfter(Duration::from_secs(5))),
            "bad" => Err("broken".into()),
            "worse" => panic!("on purpose"),
            _ => std::future::pending().await,
        }
    });
    let once = |name| controller.reconcile_once(key(name));
    assert_eq!(once("good").await.unwrap(), Outcome::RequeueAfter(Duration::from_secs(5)));
    assert_eq!(once("bad").await.unwrap_err().to_string(), "broken");
    assert_eq!(once("worse").await.unwrap_err().to_string(), "reconcile of default/worse panicked: on purpose");
    assert_eq!(once("slow").await.unwrap_err().to_string(), "reconcile of default/slow did not end within 10s");
    let stats = controller.status().queue;
    assert_eq!((stats.ready, stats.delayed), (0, 0), "nothing is queued");
}

#[tokio::test(start_paused = true)]
async fn reconcile_once_fails_while_the_controller_runs() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world), |_| done());
    running.call().await;
    let error = running.controller.reconcile_once(key("a")).await.unwrap_err().to_string();
    assert_eq!(error, "controller \"maps\" is running already: `reconcile_once` needs one that is not");
}

#[tokio::test(start_paused = true)]
async fn workers_of_zero_count_as_one() {
    let world = World::start().await;
    world.create("a").await;
    let mut running = Running::start(builder(&world).workers(0), |_| done());
    assert_eq!(running.next().await, "a: configmaps default/a found");
}

#[tokio::test(start_paused = true)]
async fn controller_retries_a_panic_of_one_key() {
    let world = World::start().await;
    for name in ["bad", "good", "worse"] {
        world.create(name).await;
    }
    let registry = Registry::new();
    let mut running = Running::start(builder(&world).registry(registry.clone()), |request| {
        let (name, first) = (request.name().to_owned(), request.failures() == 0);
        assert!(name != "worse" || !first, "before the future exists");
        async move {
            assert!(name != "bad" || !first, "while it is polled");
            Ok(Outcome::Done)
        }
    });
    let mut calls = Vec::new();
    // The call that panics before its future exists is not sent.
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
async fn controller_drops_and_retries_a_reconcile_that_times_out() {
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
async fn workers_never_reconcile_one_key_twice_at_once() {
    let world = World::start().await;
    for number in 0..8 {
        world.create(&format!("map-{number}")).await;
    }
    let running_now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let of_one_key = Arc::new(AtomicUsize::new(0));
    let (now, max, one) = (Arc::clone(&running_now), Arc::clone(&most), Arc::clone(&of_one_key));
    let mut running = Running::start(builder(&world).workers(4), move |request| {
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
async fn controller_reconciles_each_of_100000_keys_once() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world).workers(8), |_| done());
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
    /// Waits until the reconciler is not called any more.
    async fn quiet_until_idle(&mut self) {
        while tokio::time::timeout(Duration::from_secs(30), self.calls.recv()).await.is_ok() {}
    }
}
