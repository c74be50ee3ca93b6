//! The end.

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn what_is_ready_is_handed_out_and_then_every_get_ends() {
    let queue = queue();
    queue.add(1);
    queue.shut_down();
    assert!(queue.is_shutting_down());
    assert_eq!(*queue.get().await.unwrap(), 1);
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_added_any_more_and_delayed_keys_are_dropped() {
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
async fn those_who_wait_are_told() {
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
async fn get_does_not_end_while_a_key_in_process_will_come_again() {
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
async fn draining_waits_for_what_is_in_process() {
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
async fn draining_waits_for_what_is_ready() {
    let queue = queue();
    queue.add(1);
    let mut drain = pin!(queue.shut_down_and_drain());
    assert!(timeout(secs(5), drain.as_mut()).await.is_err());
    drop(queue.get().await);
    drain.await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_draining_early() {
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
async fn an_empty_queue_is_drained_at_once() {
    queue().shut_down_and_drain().await;
}

#[tokio::test(start_paused = true)]
async fn another_try_is_not_taken_after_a_shutdown() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.shut_down();
    item.retry();
    assert_eq!(queue.stats(), QueueStats::default());
    assert!(queue.get().await.is_none());
}
