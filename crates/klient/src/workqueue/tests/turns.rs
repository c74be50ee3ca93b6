//! Turns: one worker per key at a time, and as many turns as needed.

use super::*;

#[test]
fn queue_hands_out_keys_in_order() {
    let queue = queue();
    for key in [3, 1, 2] {
        queue.add(key);
    }
    assert_eq!(taken(&queue), [3, 1, 2]);
}

#[test]
fn queue_merges_repeated_adds() {
    let queue = queue();
    for key in [1, 2, 1, 1, 2] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(taken(&queue), [1, 2]);
}

#[test]
fn queue_never_hands_out_a_key_in_process() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    queue.add(1);
    assert!(queue.try_get().is_none());
    assert_eq!((queue.len(), queue.in_process()), (0, 1));
    drop(item);
    assert_eq!((queue.len(), queue.in_process()), (1, 0));
}

#[test]
fn adds_during_a_turn_make_exactly_one_more() {
    let queue = queue();
    queue.add(1);
    let item = queue.try_get().unwrap();
    for _ in 0..5 {
        queue.add(1);
    }
    drop(item);
    assert_eq!(taken(&queue), [1]);
    assert!(queue.try_get().is_none());
}

#[test]
fn key_added_during_its_turn_goes_to_the_end() {
    let queue = queue();
    for key in [1, 2] {
        queue.add(key);
    }
    let item = queue.try_get().unwrap();
    queue.add(1);
    queue.add(3);
    drop(item);
    assert_eq!(taken(&queue), [2, 3, 1]);
}

#[test]
fn panic_ends_the_turn() {
    let queue = queue();
    queue.add(1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _item = queue.try_get();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(queue.in_process(), 0);
}

#[tokio::test(start_paused = true)]
async fn get_waits_for_an_add() {
    let queue = queue();
    let getter = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item) }
    });
    tokio::task::yield_now().await;
    queue.add(7);
    assert_eq!(getter.await.unwrap(), Some(7));
}

#[test]
fn dropped_get_loses_no_key_and_no_wake_up() {
    let queue = queue();
    let other = std::sync::Arc::new(Counted::default());
    let waker = Waker::from(std::sync::Arc::clone(&other));
    let mut first = Box::pin(queue.get());
    let mut second = pin!(queue.get());
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    queue.add(1);
    assert_eq!(other.count(), 0, "the first in line is woken");
    drop(first);
    assert_eq!(other.count(), 1, "the wake-up is passed on");
    assert!(poll_once(second).is_ready());
}

#[test]
fn overtaken_get_keeps_waiting() {
    let queue = queue();
    let counted = std::sync::Arc::new(Counted::default());
    let waker = Waker::from(std::sync::Arc::clone(&counted));
    let mut get = pin!(queue.get());
    let look = |get: std::pin::Pin<&mut Get<'_, u32>>| get.poll(&mut Context::from_waker(&waker)).is_ready();
    assert!(!look(get.as_mut()));
    queue.add(1);
    assert_eq!(taken(&queue), [1]);
    assert!(!look(get.as_mut()));
    queue.add(2);
    assert_eq!(counted.count(), 2);
    assert!(look(get.as_mut()));
}

#[tokio::test]
async fn workers_never_process_one_key_twice_at_once() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let busy: Arc<Vec<_>> = Arc::new((0..50).map(|_| std::sync::atomic::AtomicBool::new(false)).collect());
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (queue, busy) = (queue.clone(), Arc::clone(&busy));
        workers.spawn(async move {
            let mut turns = 0;
            while let Some(item) = queue.get().await {
                use std::sync::atomic::Ordering::SeqCst;
                assert!(!busy[*item].swap(true, SeqCst));
                tokio::task::yield_now().await;
                busy[*item].store(false, SeqCst);
                turns += 1;
            }
            turns
        });
    }
    for round in 0..1000 {
        queue.add(round % 50);
        if round % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    queue.shut_down_and_drain().await;
    let turns: usize = workers.join_all().await.into_iter().sum();
    assert!((50..=1000).contains(&turns), "{turns}");
}

#[test]
fn empty_queue_releases_memory() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    (0..10_000).for_each(|key| queue.add(key));
    assert_eq!(taken(&queue).len(), 10_000);
    assert_eq!(queue.stats(), QueueStats::default());
    queue.add(1);
    assert_eq!(taken(&queue), [1]);
}

#[derive(Default)]
struct Counted {
    count: std::sync::atomic::AtomicUsize,
}

impl Counted {
    fn count(&self) -> usize {
        self.count.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn owned_item_outlives_its_queue_handle() {
    let queue = queue();
    queue.add_with(1, AddOptions::default().priority(3));
    let other = queue.clone();
    let item = queue.get().await.unwrap();
    drop(queue);
    other.add(1);
    assert!(other.try_get().is_none());
    assert_eq!((*item, item.priority(), item.failures(), other.in_process()), (1, 3, 0, 1));
    drop(item);
    assert_eq!(other.try_get().as_deref(), Some(&1));
}

#[tokio::test]
async fn key_is_taken_out_of_order_once() {
    let queue = WorkQueue::new();
    for key in ["a", "b", "c"] {
        queue.add_with(key, AddOptions::default().priority(if key == "c" { 7 } else { 0 }));
    }
    let item = queue.try_get_key(&"b").unwrap();
    assert!(queue.try_get_key(&"b").is_none(), "in process");
    assert_eq!((queue.len(), queue.in_process()), (2, 1));
    queue.add("b");
    assert!(queue.try_get_key(&"b").is_none(), "ready after the turn in process");
    item.forget();
    let order: Vec<&str> = std::iter::from_fn(|| queue.try_get().map(|item| *item)).collect();
    assert_eq!(order, ["c", "a", "b"]);
}
