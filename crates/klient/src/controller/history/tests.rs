//! Tests of the history: limits, memory, and fairness between keys.

use super::*;
use crate::controller::{Reason, ReasonKind};

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced("shop", &format!("web-{number}"))
}

fn turn(seen: u64) -> EndedTurn {
    EndedTurn {
        seen: Some(seen),
        took: Duration::from_millis(seen),
        reasons: Reason::new(ReasonKind::Updated).into(),
        ..EndedTurn::default()
    }
}

fn failed(message: &str) -> EndedTurn {
    EndedTurn { result: PastResult::Failed(message.into()), ..turn(1) }
}

fn seen(history: &History, number: usize) -> Vec<u64> {
    history.of(&key(number)).map(|key| key.recent.iter().filter_map(|turn| turn.seen).collect()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn history_returns_turns_with_the_newest_first() {
    let history = History::new(HistoryLimits::default());
    for version in 1..=3 {
        history.ended(&key(0), turn(version));
    }
    history.ended(&key(1), failed("no quota"));
    assert_eq!(seen(&history, 0), [3, 2, 1]);
    let other = history.of(&key(1)).unwrap();
    assert_eq!((other.turns, other.failures, other.result), (1, 1, PastResultKind::Failed));
    assert_eq!(other.recent[0].result.message(), Some("no quota"));
    assert!(history.of(&key(2)).is_none());
}

#[tokio::test(start_paused = true)]
async fn looping_key_does_not_evict_turns_of_other_keys() {
    let history = History::new(HistoryLimits::default().turns(20).turns_per_key(4));
    history.ended(&key(0), turn(7));
    for version in 0..1000 {
        history.ended(&key(1), turn(version));
    }
    assert_eq!(seen(&history, 0), [7]);
    assert_eq!(seen(&history, 1), [999, 998, 997, 996]);
    assert_eq!(history.of(&key(1)).unwrap().turns, 1000);
    assert_eq!(history.size().turns, 5);
}

#[tokio::test(start_paused = true)]
async fn full_ring_drops_the_oldest_turn_and_keeps_its_key() {
    let history = History::new(HistoryLimits::default().turns(3));
    for number in 0..4 {
        history.ended(&key(number), turn(number as u64 + 1));
    }
    assert_eq!(seen(&history, 0), [0; 0]);
    let first = history.of(&key(0)).unwrap();
    assert_eq!((first.turns, first.seen), (1, Some(1)));
    assert_eq!(seen(&history, 1), [2]);
    assert_eq!((history.size().keys, history.size().turns), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn key_of_a_deleted_object_is_forgotten_with_its_last_turn() {
    let history = History::new(HistoryLimits::default().turns(2));
    history.ended(&key(0), EndedTurn { is_absent: true, ..EndedTurn::default() });
    assert!(history.of(&key(0)).unwrap().is_absent);
    history.ended(&key(1), turn(1));
    history.ended(&key(2), turn(1));
    assert!(history.of(&key(0)).is_none());
    assert_eq!(history.size().keys, 2);
}

#[tokio::test(start_paused = true)]
async fn history_forgets_keys_beyond_its_limit() {
    let history = History::new(HistoryLimits::default().keys(100).turns(10));
    for number in 0..10_000 {
        history.ended(&key(number), turn(1));
        history.filtered(&key(number + 1), "labels_changed", &"pods".into(), Some(2));
    }
    assert_eq!(history.size().keys, 100);
    assert_eq!(history.size().turns, 10);
    assert_eq!(seen(&history, 9_999), [1]);
}

#[tokio::test(start_paused = true)]
async fn history_takes_less_than_150_bytes_per_idle_key() {
    let history = History::new(HistoryLimits::default());
    let mut most = 0;
    for number in 0..100_000 {
        history.ended(&key(number), turn(1));
        if number > 1000 {
            most = most.max(history.size().key_bytes / (number + 1));
        }
    }
    let size = history.size();
    assert_eq!((size.keys, size.turns), (100_000, 4096));
    assert!(most < 150, "{most} bytes per key");
}

#[tokio::test(start_paused = true)]
async fn history_remembers_the_last_ignored_event() {
    let history = History::new(HistoryLimits::default());
    history.filtered(&key(0), "labels_changed", &"pods".into(), Some(4));
    history.filtered(&key(0), "generation_changed", &"deployments.apps".into(), Some(5));
    let event = history.of(&key(0)).unwrap().filtered.unwrap();
    assert_eq!((&*event.predicate, &*event.source), ("generation_changed", "deployments.apps"));
    assert_eq!((event.version, event.count), (Some(5), 2));
    assert!(history.of(&key(0)).unwrap().ended.is_none());
}

#[tokio::test(start_paused = true)]
async fn notable_keys_are_sorted_and_rates_expire() {
    let history = History::new(HistoryLimits::default());
    for number in 1..=5 {
        for _ in 0..number {
            history.ended(&key(number), EndedTurn { took: Duration::from_secs(10 - number as u64), ..failed("x") });
        }
    }
    let names = |keys: &[KeyNumbers]| keys.iter().map(|key| key.key.name().to_owned()).collect::<Vec<_>>();
    let notable = history.notable(2);
    assert_eq!(names(&notable.failing), ["web-5", "web-4"]);
    assert_eq!(names(&notable.slowest), ["web-1", "web-2"]);
    assert_eq!((notable.busiest[0].per_minute, notable.busiest[0].key.name()), (5, "web-5"));
    tokio::time::advance(Duration::from_secs(180)).await;
    assert!(history.notable(2).busiest.is_empty());
    assert_eq!(names(&history.search("web-3", 9)), ["web-3"]);
}

#[tokio::test(start_paused = true)]
async fn long_messages_are_shortened_at_a_character() {
    let history = History::new(HistoryLimits::default());
    history.ended(&key(0), failed(&"é".repeat(5000)));
    let recent = history.of(&key(0)).unwrap().recent;
    let message = recent[0].result.message().unwrap();
    assert!(message.len() < 1100 && message.ends_with("é..."), "{}", message.len());
}
