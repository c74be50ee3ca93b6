//! Priorities and groups.

use super::{super::order::PATIENCE, *};

fn add(queue: &WorkQueue<u32>, key: u32, priority: i8) {
    queue.add_with(key, AddOptions::default().priority(priority));
}

#[test]
fn higher_priorities_come_first() {
    let queue = queue();
    for (key, priority) in [(1, -5), (2, 0), (3, 9), (4, -5), (5, 9)] {
        add(&queue, key, priority);
    }
    assert_eq!(taken(&queue), [3, 5, 2, 1, 4]);
}

#[test]
fn add_raises_but_never_lowers_priority() {
    let queue = queue();
    for (key, priority) in [(1, 0), (2, 0), (2, 5), (1, -5), (3, 5)] {
        add(&queue, key, priority);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(taken(&queue), [2, 3, 1]);
}

#[test]
fn low_priority_does_not_starve() {
    let queue = queue();
    add(&queue, 0, -100);
    let mut turns = 0;
    loop {
        add(&queue, 1, 100);
        turns += 1;
        if *queue.try_get().unwrap() == 0 {
            break;
        }
    }
    assert_eq!(turns, PATIENCE + 1);
}

#[test]
fn every_priority_gets_a_share() {
    let queue = queue();
    for level in 0..4u32 {
        (0..100).for_each(|key| add(&queue, level * 1000 + key, -(level as i8)));
    }
    let mut seen = [0; 4];
    for turn in 0..100 {
        let key = *queue.try_get().unwrap();
        seen[(key / 1000) as usize % 4] += 1;
        // Urgent keys keep coming.
        add(&queue, 4000 + turn, 0);
    }
    assert!(seen[1..].iter().all(|share| (4..=6).contains(share)), "{seen:?}");
}

#[test]
fn backlog_of_low_priority_does_not_delay_changes() {
    let queue = queue();
    (0..1000).for_each(|key| add(&queue, key, -100));
    for _ in 0..500 {
        let _ = queue.try_get();
    }
    add(&queue, 5000, 0);
    assert_eq!(*queue.try_get().unwrap(), 5000);
}

#[test]
fn raised_priorities_leave_no_stale_entries() {
    let queue = queue();
    add(&queue, 0, -1);
    for key in 1..10_000 {
        add(&queue, key, -1);
        add(&queue, key, 1);
        assert_eq!(*queue.try_get().unwrap() == 0, key == PATIENCE + 1);
    }
    assert_eq!(taken(&queue).len(), 1);
    assert_eq!(queue.stats(), QueueStats::default());
}

#[test]
fn key_added_during_its_turn_keeps_highest_priority() {
    let queue = queue();
    add(&queue, 1, 0);
    let item = queue.try_get().unwrap();
    add(&queue, 2, 3);
    add(&queue, 1, 1);
    add(&queue, 1, 5);
    add(&queue, 1, -5);
    drop(item);
    let item = queue.try_get().unwrap();
    assert_eq!((*item, item.priority()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn retry_keeps_priority() {
    let queue = queue();
    add(&queue, 1, 7);
    queue.get().await.unwrap().retry();
    add(&queue, 2, 6);
    tokio::time::advance(secs(1)).await;
    assert_eq!(*queue.get().await.unwrap(), 1);
}

#[test]
fn groups_take_turns() {
    let queue = WorkQueue::with_options(QueueOptions::default().fair_by(|key: &(&str, u32)| key.0));
    for number in 0..4 {
        queue.add(("busy", number));
    }
    queue.add(("calm", 0));
    queue.add(("other", 0));
    let order = taken(&queue);
    assert_eq!(order[..4], [("busy", 0), ("calm", 0), ("other", 0), ("busy", 1)]);
    assert_eq!(order.len(), 6);
}

#[test]
fn priority_overrides_fairness() {
    let queue = WorkQueue::with_options(QueueOptions::default().fair_by(|key: &(&str, u32)| key.0));
    queue.add(("calm", 0));
    for number in 0..3 {
        queue.add_with(("busy", number), AddOptions::default().priority(1));
    }
    queue.add_with(("calm", 0), AddOptions::default().priority(1));
    assert_eq!(taken(&queue), [("busy", 0), ("calm", 0), ("busy", 1), ("busy", 2)]);
}

#[test]
fn key_status_counts_keys_that_come_first() {
    let queue = queue();
    for (key, priority) in [(1, -5), (2, 0), (3, 9), (4, -5), (5, 0), (1, 0)] {
        add(&queue, key, priority);
    }
    let ahead = |key: u32| queue.key_status(&key).map(|status| status.ahead);
    assert_eq!([3, 2, 5, 1, 4].map(ahead), [0, 1, 2, 3, 4].map(Some));
    assert_eq!(taken(&queue), [3, 2, 5, 1, 4]);
    assert_eq!(ahead(1), None);
}

#[test]
fn key_status_counts_turns_of_other_groups() {
    let options = QueueOptions::default().fair_by(|key: &u32| *key / 100);
    let queue = WorkQueue::with_options(options);
    for key in [1, 2, 3, 101, 201, 202, 203, 204] {
        queue.add(key);
    }
    let ahead: Vec<usize> =
        [1, 101, 201, 2, 202, 3, 203, 204].iter().map(|key| queue.key_status(key).unwrap().ahead).collect();
    assert_eq!(ahead, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(taken(&queue), [1, 101, 201, 2, 202, 3, 203, 204]);
}

#[tokio::test(start_paused = true)]
async fn key_status_tells_the_states_of_a_key_apart() {
    let queue = WorkQueue::with_options(QueueOptions::default().name("maps"));
    queue.add(7);
    assert!(queue.key_status(&7).unwrap().is_ready);
    let item = queue.try_get().unwrap();
    queue.add(7);
    let status = queue.key_status(&7).unwrap();
    assert!(status.is_in_process && status.is_added_again && !status.is_ready, "{status:?}");
    assert_eq!(queue.in_process_keys(9), [(7, status.in_process_since)]);
    item.retry();
    queue.try_get().unwrap().forget();
    queue.add_after(7, Duration::from_secs(60));
    let status = queue.key_status(&7).unwrap();
    assert!(status.delayed_until.is_some() && !status.is_retry, "{status:?}");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(queue.key_status(&7).unwrap().is_ready);
}
