//! Failures: counted, forgotten, never kept for ever.

use tokio::time::{advance, timeout};

use super::{super::state::FAILURES_KEPT, *};
use crate::metrics::Registry;

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_waits_longer_each_time() {
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
async fn a_key_that_is_forgotten_starts_anew() {
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
async fn forgetting_takes_back_the_try_that_a_failure_had_earned() {
    let queue = queue();
    queue.add_rate_limited(1);
    queue.add(1);
    queue.try_get().unwrap().forget();
    assert_eq!(queue.delayed(), 0);

    queue.add_after(2, secs(5));
    queue.add(2);
    queue.try_get().unwrap().forget();
    assert_eq!(queue.delayed(), 1, "nobody takes back what was asked for");
    queue.forget(&2);
    assert_eq!(queue.delayed(), 1);
}

#[tokio::test(start_paused = true)]
async fn coming_again_later_is_no_failure() {
    let queue = queue();
    queue.add(1);
    queue.get().await.unwrap().retry();
    let started = Instant::now();
    queue.get().await.unwrap().retry_after(secs(60));
    let item = queue.get().await.unwrap();
    assert_eq!((item.failures(), started.elapsed().as_secs()), (0, 60));
}

#[tokio::test(start_paused = true)]
async fn an_item_can_give_up_an_earlier_time() {
    let queue = queue();
    queue.add_after(1, secs(10));
    queue.add(1);
    let started = Instant::now();
    queue.get().await.unwrap().reschedule(secs(60));
    drop(queue.get().await);
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn an_add_during_the_turn_that_fails_is_not_lost() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add(1);
    item.retry();
    assert_eq!(*queue.try_get().unwrap(), 1);
    assert_eq!(*timeout(secs(1), queue.get()).await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_that_nobody_forgets_are_not_kept_for_ever() {
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
async fn a_look_that_finds_nothing_counts_what_its_time_came_for() {
    let registry = Registry::new();
    let queue = WorkQueue::with_options(QueueOptions::default().name("webs").registry(registry.clone()));
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add_after(1, secs(1));
    advance(secs(2)).await;
    // It is in process: its time has come, and still there is nothing to hand out.
    assert!(queue.try_get().is_none());
    assert!(registry.render().contains("workqueue_adds_total{name=\"webs\"} 2"), "{}", registry.render());
    drop(item);
    assert_eq!(taken(&queue), [1]);
}

#[test]
fn a_queue_without_a_name_has_no_metrics() {
    let registry = Registry::new();
    let queue = WorkQueue::with_options(QueueOptions::default().registry(registry.clone()));
    queue.add(1);
    assert_eq!(registry.render(), "");
}
