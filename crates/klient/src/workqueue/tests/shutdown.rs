//! Shutdown.

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn shutdown_hands_out_ready_keys_first() {
    let queue = queue();
    queue.add(1);
    queue.shut_down();
    assert!(queue.is_shutting_down());
    assert_eq!(*queue.get().await.unwrap(), 1);
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ignores_adds_and_drops_delayed_keys() {
    let queue = queue();
    queue.add_after(1, secs(1));
    queue.add_rate_limited(2);
    queue.shut_down();
    queue.add(3);
    queue.add_after(4, secs(1));
    queue.add_rate_limited(5);
    assert_eq!(queue.stats(), QueueStats::default());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shutdown_wakes_waiting_gets() {
    let queue = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn get_waits_for_key_added_during_its_turn() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add(1);
    queue.shut_down();
    let mut get = pin!(queue.get());
    assert!(poll_once(get.as_mut()).is_pending());
    drop(item);
    assert_eq!(*get.await.unwrap(), 1);
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_keys_in_process() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    let mut drain = pin!(queue.shut_down_and_drain());
    queue.add(2);
    assert!(timeout(secs(5), drain.as_mut()).await.is_err());
    drop(item);
    drain.await;
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_ready_keys() {
    let queue = queue();
    queue.add(1);
    let mut drain = pin!(queue.shut_down_and_drain());
    assert!(timeout(secs(5), drain.as_mut()).await.is_err());
    drop(queue.get().await);
    drain.await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_drain_early() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    let drainer = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_and_drain().await }
    });
    tokio::task::yield_now().await;
    queue.shut_down();
    timeout(secs(5), drainer).await.unwrap().unwrap();
    let mut second = pin!(queue.shut_down_and_drain());
    assert!(poll_once(second.as_mut()).is_pending(), "one that begins later waits");
    drop(item);
    second.await;
}

#[tokio::test(start_paused = true)]
async fn empty_queue_drains_at_once() {
    queue().shut_down_and_drain().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_ignores_retries() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.shut_down();
    item.retry();
    assert_eq!(queue.stats(), QueueStats::default());
    assert!(queue.get().await.is_none());
}
