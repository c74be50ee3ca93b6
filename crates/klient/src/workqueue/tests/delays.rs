//! Delayed keys.

use tokio::time::{advance, timeout};

use super::*;

#[tokio::test(start_paused = true)]
async fn delayed_key_is_handed_out_at_its_time() {
    let queue = queue();
    let started = Instant::now();
    queue.add_after(1, secs(10));
    assert_eq!((queue.len(), queue.delayed()), (0, 1));
    assert_eq!(*queue.get().await.unwrap(), 1);
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!((queue.len(), queue.delayed()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn zero_delay_adds_at_once() {
    let queue = queue();
    queue.add_after(1, Duration::ZERO);
    assert_eq!((queue.len(), queue.delayed()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn earlier_of_two_delays_counts() {
    for delays in [[5, 60], [60, 5]] {
        let queue = queue();
        let started = Instant::now();
        for delay in delays {
            queue.add_after(1, secs(delay));
        }
        assert_eq!(queue.delayed(), 1);
        drop(queue.get().await);
        assert_eq!(started.elapsed().as_secs(), 5);
        assert!(timeout(secs(100), queue.get()).await.is_err(), "the key was handed out twice");
    }
}

#[tokio::test(start_paused = true)]
async fn reschedule_replaces_a_delay() {
    let queue = queue();
    let started = Instant::now();
    queue.add_after(1, secs(5));
    queue.reschedule(1, secs(60));
    drop(queue.get().await);
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn cancel_removes_a_delay() {
    let queue = queue();
    queue.add_after(1, secs(5));
    assert!(queue.cancel(&1));
    assert!(!queue.cancel(&1));
    assert_eq!(queue.stats(), QueueStats::default());
    assert!(timeout(secs(100), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn next_delayed_returns_the_first_key() {
    let queue = queue();
    assert_eq!(queue.next_delayed(), None);
    queue.add_after(1, secs(50));
    queue.add_after(2, secs(20));
    assert_eq!(queue.next_delayed(), Some((2, Instant::now() + secs(20))));
    advance(secs(30)).await;
    assert_eq!((queue.len(), queue.delayed()), (1, 1));
    assert_eq!(queue.next_delayed(), Some((1, Instant::now() + secs(20))));
}

#[tokio::test(start_paused = true)]
async fn add_of_delayed_key_keeps_the_delay() {
    let queue = queue();
    queue.add_after(1, secs(5));
    queue.add(1);
    drop(queue.try_get().unwrap());
    assert_eq!(queue.delayed(), 1);
    assert_eq!(*queue.get().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn delay_that_ends_during_a_turn_makes_one_more() {
    let queue = queue();
    queue.add_after(1, secs(5));
    queue.add(1);
    let item = queue.try_get().unwrap();
    advance(secs(10)).await;
    assert!(queue.try_get().is_none());
    drop(item);
    assert_eq!(taken(&queue), [1]);
}

#[tokio::test(start_paused = true)]
async fn earlier_delay_wakes_waiting_gets() {
    let queue = queue();
    let started = Instant::now();
    queue.add_after(1, secs(100));
    let getter = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.get().await.map(|item| *item), Instant::now()) }
    });
    tokio::task::yield_now().await;
    queue.add_after(2, secs(3));
    assert_eq!(getter.await.unwrap(), (Some(2), started + secs(3)));
}

#[tokio::test(start_paused = true)]
async fn delayed_key_is_handed_out_if_a_waiter_is_dropped() {
    let queue = queue();
    queue.add_after(1, secs(3));
    let mut keeper = Box::pin(queue.get());
    assert!(timeout(secs(1), &mut keeper).await.is_err());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item) }
    });
    tokio::task::yield_now().await;
    drop(keeper);
    let before = Instant::now();
    assert_eq!(other.await.unwrap(), Some(1));
    assert_eq!(before.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn delayed_key_is_handed_out_if_a_waiter_is_busy() {
    let queue = queue();
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move {
            let item = queue.get().await;
            // Keeps its key, and does not poll the queue meanwhile.
            item.map(|item| (*item, Instant::now(), item))
        })
    };
    let (first, second) = (worker(), worker());
    let started = Instant::now();
    queue.add_after(2, secs(9));
    tokio::task::yield_now().await;
    queue.add(1);
    let mut got: Vec<_> =
        [first.await.unwrap().unwrap(), second.await.unwrap().unwrap()].map(|got| (got.0, got.1)).into();
    got.sort_unstable();
    assert_eq!(got, [(1, started), (2, started + secs(9))]);
}

#[tokio::test(start_paused = true)]
async fn keys_with_one_deadline_wake_several_workers() {
    let queue = queue();
    (0..8).for_each(|key| queue.add_after(key, secs(1)));
    let barrier = Arc::new(tokio::sync::Barrier::new(8));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (queue, barrier) = (queue.clone(), Arc::clone(&barrier));
        workers.spawn(async move {
            let item = queue.get().await;
            barrier.wait().await;
            item.map(|item| *item)
        });
    }
    let mut keys = timeout(secs(5), workers.join_all()).await.unwrap();
    keys.sort_unstable();
    assert_eq!(keys, (0..8).map(Some).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn queue_accepts_the_longest_delay() {
    let queue = queue();
    queue.add_after(1, Duration::MAX);
    assert!(timeout(secs(1000), queue.get()).await.is_err());
    assert_eq!(queue.delayed(), 1);
}

#[tokio::test(start_paused = true)]
async fn queue_processes_100000_delayed_and_failing_keys() {
    let options = QueueOptions::default().rate_limiter(ExponentialBackoff::default());
    let queue = WorkQueue::with_options(options);
    const KEYS: u32 = 100_000;
    (0..KEYS)
        .for_each(|key| queue.add_after(key, Duration::from_millis(1 + u64::from(key.wrapping_mul(7919) % 10_000))));
    assert_eq!(queue.delayed(), KEYS as usize);
    let mut turns = vec![0u8; KEYS as usize];
    let mut done = 0;
    while done < KEYS {
        let item = queue.get().await.unwrap();
        let turn = &mut turns[*item as usize];
        *turn += 1;
        assert_eq!(item.failures() + 1, u32::from(*turn));
        if *turn == 3 {
            item.forget();
            done += 1;
        } else {
            item.retry();
        }
    }
    assert!(turns.iter().all(|turns| *turns == 3));
    assert_eq!(queue.stats(), QueueStats::default());
}

#[tokio::test(start_paused = true)]
async fn unpolled_get_does_not_block_delayed_keys() {
    let queue = queue();
    let started = Instant::now();
    // Waits first and is not polled again, as in a `select!` loop that works on another branch.
    let mut idle = pin!(queue.get());
    assert!(poll_once(idle.as_mut()).is_pending());
    queue.add_after(1, secs(20));
    assert!(poll_once(idle.as_mut()).is_pending());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { timeout(secs(100), queue.get()).await.ok().flatten().map(|item| *item) }
    });
    tokio::task::yield_now().await;
    // An earlier key, which the waiter that is not polled could not announce to others.
    queue.add_after(2, secs(10));
    assert_eq!(other.await.unwrap(), Some(2));
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(queue.get().await.map(|item| *item), Some(1));
    assert_eq!(started.elapsed().as_secs(), 20);
}
