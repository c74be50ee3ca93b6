//! Failures: counted, forgotten, and removed when they are old.

use tokio::time::{advance, timeout};

use super::{super::state::FAILURES_KEPT, *};
use crate::metrics::Registry;

#[tokio::test(start_paused = true)]
async fn failing_key_waits_longer_each_time() {
    let queue = queue();
    queue.add(1);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let started = Instant::now();
        let item = queue.get().await.unwrap();
        waits.push(started.elapsed().as_millis());
        item.retry();
    }
    assert_eq!(waits, [0, 5, 10, 20]);
    assert_eq!(queue.failures(&1), 4);
}

#[tokio::test(start_paused = true)]
async fn forget_resets_failures() {
    let queue = queue();
    for _ in 0..3 {
        queue.add_rate_limited(1);
        queue.get().await.unwrap().key();
    }
    assert_eq!(queue.failures(&1), 3);
    queue.add(1);
    queue.get().await.unwrap().forget();
    assert_eq!(queue.failures(&1), 0);
    assert_eq!(queue.stats(), QueueStats::default());
}

#[tokio::test(start_paused = true)]
async fn success_cancels_the_retry_of_an_earlier_turn() {
    let queue = queue();
    queue.add(1);
    queue.try_get().unwrap().retry();
    queue.add(1);
    queue.try_get().unwrap().forget();
    assert_eq!((queue.delayed(), queue.failures(&1)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn forget_clears_failures_and_keeps_delays() {
    let queue = queue();
    queue.add_rate_limited(1);
    queue.forget(&1);
    assert_eq!((queue.delayed(), queue.failures(&1)), (1, 0));
    queue.add(1);
    queue.try_get().unwrap().forget();
    assert_eq!(queue.delayed(), 1, "a rate-limited add before the turn is processed");

    queue.add_after(2, secs(5));
    queue.add(2);
    queue.try_get().unwrap().forget();
    queue.forget(&2);
    assert_eq!(queue.delayed(), 2, "a requested delay stays");
}

#[tokio::test(start_paused = true)]
async fn rate_limited_add_during_a_turn_is_processed() {
    let queue = queue();
    queue.add(1);
    let item = queue.get().await.unwrap();
    // A handler, because the key changed. The worker may have read the state before.
    queue.add_rate_limited(1);
    queue.forget(&1);
    item.forget();
    let again = timeout(secs(1), queue.get()).await.expect("the change is never processed").unwrap();
    assert_eq!(*again, 1);

    // Also while a retry of an earlier turn is pending, which the success cancels.
    again.retry();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add_rate_limited(1);
    item.forget();
    assert_eq!(*timeout(secs(1), queue.get()).await.expect("the change is never processed").unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn timer_survives_a_merge_with_a_retry() {
    // In both orders, and with both ways to ask for a turn.
    for timer_first in [true, false] {
        let queue = queue();
        queue.add(1);
        let item = queue.get().await.unwrap();
        if timer_first {
            queue.add_after(1, secs(10));
            item.retry();
        } else {
            item.retry();
            queue.add_after(1, secs(10));
        }
        queue.add(1);
        queue.try_get().unwrap().forget();
        let again = timeout(secs(20), queue.get()).await.expect("the timer never fires").unwrap();
        assert_eq!((*again, again.failures()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn events_during_backoff_do_not_inflate_the_delay() {
    let queue = queue();
    queue.add(1);
    queue.get().await.unwrap().retry();
    let started = Instant::now();
    let (mut turns, mut retries) = (0, Vec::new());
    // An event per millisecond, and every turn fails: retries at 5, 15, 35, 75 ms and so on, however many events arrive.
    while retries.len() < 5 {
        let before = queue.failures(&1);
        queue.add(1);
        queue.get().await.unwrap().retry();
        turns += 1;
        if queue.failures(&1) > before {
            retries.push(started.elapsed().as_millis());
        }
        advance(Duration::from_millis(1)).await;
    }
    assert_eq!(retries, [5, 15, 35, 75, 155]);
    assert_eq!(turns, 156, "each event still runs the key at once");
}

#[tokio::test(start_paused = true)]
async fn rate_limited_add_by_the_worker_counts_once_per_retry() {
    let queue = queue();
    queue.add_rate_limited(1);
    assert_eq!(queue.failures(&1), 1);
    queue.add(1);
    let item = queue.get().await.unwrap();
    queue.add_rate_limited(1);
    drop(item);
    assert_eq!((queue.failures(&1), queue.delayed()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn failures_are_swept_when_only_items_are_used() {
    let queue = queue();
    for key in 0..100 {
        queue.add(key);
        queue.try_get().unwrap().retry();
    }
    advance(secs(1)).await;
    for _ in 0..100 {
        drop(queue.try_get().unwrap());
    }
    assert_eq!(queue.stats().failing, 100);
    advance(FAILURES_KEPT + secs(1)).await;
    for _ in 0..30 {
        queue.add(1000);
        queue.try_get().unwrap().retry();
        advance(secs(2)).await;
    }
    assert!(queue.stats().failing <= 1, "{:?}", queue.stats());
}

#[tokio::test]
async fn key_whose_clone_panics_stays_in_the_queue() {
    static PANICS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Key(u8);
    impl Clone for Key {
        fn clone(&self) -> Self {
            assert!(!PANICS.load(std::sync::atomic::Ordering::SeqCst), "a clone that runs out of memory");
            Self(self.0)
        }
    }
    let queue = WorkQueue::new();
    queue.add(Key(7));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.try_get().is_some()));
    assert!(panicked.is_err());
    assert_eq!((queue.len(), queue.in_process()), (1, 0));
    PANICS.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(queue.try_get().unwrap().key(), &Key(7));
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn requeue_after_is_not_a_failure() {
    let queue = queue();
    queue.add(1);
    queue.get().await.unwrap().retry();
    let started = Instant::now();
    queue.get().await.unwrap().requeue_after(secs(60));
    let item = queue.get().await.unwrap();
    assert_eq!((item.failures(), started.elapsed().as_secs()), (0, 60));
}

#[tokio::test(start_paused = true)]
async fn reschedule_replaces_an_earlier_delay() {
    let queue = queue();
    queue.add_after(1, secs(10));
    queue.add(1);
    let started = Instant::now();
    queue.get().await.unwrap().reschedule(secs(60));
    drop(queue.get().await);
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn add_during_a_failing_turn_is_not_lost() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add(1);
    item.retry();
    assert_eq!(*queue.try_get().unwrap(), 1);
    assert_eq!(*timeout(secs(1), queue.get()).await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_failures_are_removed() {
    let queue = WorkQueue::with_options(QueueOptions::default().rate_limiter(ExponentialBackoff::default()));
    for key in 0..1000u32 {
        queue.add_rate_limited(key);
    }
    for _ in 0..1000 {
        drop(queue.get().await);
    }
    assert_eq!(queue.stats().failing, 1000);
    advance(FAILURES_KEPT + secs(1)).await;
    for _ in 0..1000 {
        queue.add_rate_limited(5000);
        drop(queue.get().await);
    }
    assert_eq!(queue.stats().failing, 1);
}

#[tokio::test(start_paused = true)]
async fn metrics_have_client_gos_names() {
    let registry = Registry::new();
    let queue = WorkQueue::with_options(QueueOptions::default().name("webs").registry(registry.clone()));
    queue.add(1);
    queue.add(1);
    queue.add(2);
    advance(secs(2)).await;
    let item = queue.try_get().unwrap();
    advance(secs(3)).await;
    let text = registry.render();
    for line in [
        "workqueue_depth{name=\"webs\"} 1",
        "workqueue_adds_total{name=\"webs\"} 2",
        "workqueue_queue_duration_seconds_sum{name=\"webs\"} 2",
        "workqueue_unfinished_work_seconds{name=\"webs\"} 3",
        "workqueue_longest_running_processor_seconds{name=\"webs\"} 3",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in {text}");
    }
    assert_eq!(queue.stats().oldest, Some(secs(5)));
    assert_eq!(queue.stats().longest_in_process, Some(secs(3)));
    item.retry();
    let _ = queue.get().await;
    let text = registry.render();
    for line in [
        "workqueue_retries_total{name=\"webs\"} 1",
        "workqueue_work_duration_seconds_sum{name=\"webs\"} 3",
        "workqueue_work_duration_seconds_bucket{name=\"webs\",le=\"0.00000001\"} 1",
        "workqueue_work_duration_seconds_count{name=\"webs\"} 2",
        "workqueue_unfinished_work_seconds{name=\"webs\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn empty_try_get_counts_promoted_keys() {
    let registry = Registry::new();
    let queue = WorkQueue::with_options(QueueOptions::default().name("webs").registry(registry.clone()));
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add_after(1, secs(1));
    advance(secs(2)).await;
    // The key is in process: its delay has passed, and it cannot be handed out yet.
    assert!(queue.try_get().is_none());
    assert!(registry.render().contains("workqueue_adds_total{name=\"webs\"} 2"), "{}", registry.render());
    drop(item);
    assert_eq!(taken(&queue), [1]);
}

#[test]
fn queue_without_name_has_no_metrics() {
    let registry = Registry::new();
    let queue = WorkQueue::with_options(QueueOptions::default().registry(registry.clone()));
    queue.add(1);
    assert_eq!(registry.render(), "");
}

#[tokio::test(start_paused = true)]
async fn retry_after_counts_a_failure_and_waits_as_told() {
    let queue = queue();
    queue.add(1);
    queue.get().await.unwrap().retry_after(secs(30));
    let started = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!((item.failures(), started.elapsed()), (1, secs(30)));
    item.forget();
    assert_eq!(queue.failures(&1), 0);
}
