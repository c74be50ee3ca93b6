//! Keys that wait for their time.

use tokio::time::{advance, timeout};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_handed_out_at_its_time_and_not_before() {
    let queue = queue();
    let started = Instant::now();
    queue.add_after(1, secs(10));
    assert_eq!((queue.len(), queue.delayed()), (0, 1));
    assert_eq!(*queue.get().await.unwrap(), 1);
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!((queue.len(), queue.delayed()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_now() {
    let queue = queue();
    queue.add_after(1, Duration::ZERO);
    assert_eq!((queue.len(), queue.delayed()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_times_counts() {
    for delays in [[5, 60], [60, 5]] {
        let queue = queue();
        let started = Instant::now();
        for delay in delays {
            queue.add_after(1, secs(delay));
        }
        assert_eq!(queue.delayed(), 1);
        drop(queue.get().await);
        assert_eq!(started.elapsed().as_secs(), 5);
        assert!(timeout(secs(100), queue.get()).await.is_err(), "there was only one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_can_be_replaced_by_a_later_one() {
    let queue = queue();
    let started = Instant::now();
    queue.add_after(1, secs(5));
    queue.reschedule(1, secs(60));
    drop(queue.get().await);
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_delay_can_be_taken_back() {
    let queue = queue();
    queue.add_after(1, secs(5));
    assert!(queue.cancel(&1));
    assert!(!queue.cancel(&1));
    assert_eq!(queue.stats(), QueueStats::default());
    assert!(timeout(secs(100), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_delayed_can_be_seen() {
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
async fn an_add_runs_a_delayed_key_now_and_leaves_the_later_turn() {
    let queue = queue();
    queue.add_after(1, secs(5));
    queue.add(1);
    drop(queue.try_get().unwrap());
    assert_eq!(queue.delayed(), 1);
    assert_eq!(*queue.get().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_time_comes_during_its_turn_comes_again_after_it() {
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
async fn an_earlier_key_makes_those_who_wait_look_again() {
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
async fn when_the_one_who_keeps_the_time_goes_away_another_one_does() {
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
async fn when_the_one_who_keeps_the_time_gets_a_key_another_one_does() {
    let queue = queue();
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move {
            let item = queue.get().await;
            // Holds on to its key, and looks at no time meanwhile.
            item.map(|item| (*item, Instant::now(), item.into_owned()))
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
async fn keys_of_one_time_wake_as_many_workers() {
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
async fn a_delay_without_end_is_no_problem() {
    let queue = queue();
    queue.add_after(1, Duration::MAX);
    assert!(timeout(secs(1000), queue.get()).await.is_err());
    assert_eq!(queue.delayed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_keys_go_through_delays_and_rate_limits() {
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
async fn a_getter_that_is_not_polled_keeps_no_delayed_key_from_others() {
    let queue = queue();
    let started = Instant::now();
    // Waits first, and is looked at no more: as in a loop that selects among several things and works on another one.
    let mut idle = pin!(queue.get());
    assert!(poll_once(idle.as_mut()).is_pending());
    queue.add_after(1, secs(20));
    assert!(poll_once(idle.as_mut()).is_pending());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { timeout(secs(100), queue.get()).await.ok().flatten().map(|item| *item) }
    });
    tokio::task::yield_now().await;
    // An earlier one, of which the one that is not polled could not tell the others.
    queue.add_after(2, secs(10));
    assert_eq!(other.await.unwrap(), Some(2));
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(queue.get().await.map(|item| *item), Some(1));
    assert_eq!(started.elapsed().as_secs(), 20);
}
