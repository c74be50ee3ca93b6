//! `DeltaFifo` and `DeltaQueue` without an informer, with client-go's operations.

use std::collections::BTreeMap;

use klient::{
    ObjectKey,
    informer::{Delta, DeltaBatch, DeltaFifo, DeltaQueue, Deltas, ThreadSafeStore, Tombstone},
};
use proptest::prelude::*;

type Object = (ObjectKey, u32);

fn object(name: &str, value: u32) -> Object {
    (ObjectKey::cluster(name), value)
}

/// A batch in short: `a+1` added, `a~2` updated, `a-3` deleted, `a?3` deleted with the last known state, `a=4` replaced, `a.4`
/// sent again.
fn shown(batch: Option<DeltaBatch<Object>>) -> Vec<String> {
    batch.map(|batch| batch.deltas).unwrap_or_default().iter().map(show).collect()
}

fn show(delta: &Delta<Object>) -> String {
    let sign = match delta {
        Delta::Added(_) => "+",
        Delta::Updated(_) => "~",
        Delta::Deleted(Tombstone::Final(_)) => "-",
        Delta::Deleted(Tombstone::LastKnown(_)) => "?",
        Delta::Replaced(_) => "=",
        Delta::Sync(_) => ".",
    };
    let (key, value) = delta.object();
    format!("{key}{sign}{value}")
}

fn show_key(deltas: &Deltas<Object>) -> String {
    assert!(deltas.iter().all(|delta| delta.object().0 == *deltas.key()));
    deltas.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn popped(fifo: &mut DeltaFifo<Object>) -> Vec<String> {
    std::iter::from_fn(|| fifo.pop()).map(|deltas| show_key(&deltas)).collect()
}

fn changed() -> DeltaFifo<Object> {
    let mut fifo = DeltaFifo::new();
    fifo.add(object("a", 1));
    fifo.add(object("b", 1));
    fifo.update(object("a", 2));
    fifo.delete(object("a", 3));
    fifo.update(object("b", 4));
    fifo.add(object("a", 5));
    fifo
}

#[test]
fn fifo_pops_each_key_once_with_all_its_deltas() {
    let mut fifo = changed();
    assert_eq!((fifo.len(), fifo.changes()), (2, 6));
    assert_eq!(popped(&mut fifo), ["a+1 a~2 a-3 a+5", "b+1 b~4"]);
    assert!(fifo.is_empty() && fifo.pop_batch().is_none());
    assert_eq!(fifo.changes(), 0);
}

#[test]
fn fifo_pops_a_batch_in_the_order_of_the_server() {
    let mut fifo = changed();
    assert_eq!(shown(fifo.pop_batch()), ["a+1", "b+1", "a~2", "a-3", "b~4", "a+5"]);
    assert!(fifo.is_empty() && fifo.pop_batch().is_none());
    fifo.update(object("b", 6));
    assert_eq!(shown(fifo.pop_batch()), ["b~6"]);
}

#[test]
fn fifo_keeps_order_when_keys_are_popped_between_adds() {
    let mut fifo = changed();
    assert_eq!(fifo.pop().map(|deltas| show_key(&deltas)).as_deref(), Some("a+1 a~2 a-3 a+5"));
    fifo.update(object("a", 7));
    fifo.update(object("b", 8));
    assert_eq!(fifo.len(), 2);
    assert_eq!(shown(fifo.pop_batch()), ["b+1", "b~4", "a~7", "b~8"]);
}

#[test]
fn fifo_folds_repeated_deletes_and_keeps_the_final_state() {
    let known = ThreadSafeStore::new();
    known.insert(object("a", 1));
    let mut fifo = DeltaFifo::with_known_objects(known);
    fifo.delete(object("a", 2));
    fifo.delete(object("a", 3));
    fifo.replace([], "9".into());
    assert_eq!(shown(fifo.pop_batch()), ["a-2"]);
}

#[test]
fn fifo_ignores_delete_of_unknown_object() {
    let mut fifo = DeltaFifo::with_known_objects(ThreadSafeStore::new());
    fifo.delete(object("a", 1));
    assert!(fifo.pop_batch().is_none());
    fifo.add(object("a", 1));
    fifo.delete(object("a", 2));
    assert_eq!(shown(fifo.pop_batch()), ["a+1", "a-2"]);
}

#[test]
fn fifo_replace_deletes_unlisted_objects_first() {
    let known = ThreadSafeStore::new();
    known.insert(object("known", 1));
    known.insert(object("stays", 1));
    let fifo = || {
        let mut fifo = DeltaFifo::with_known_objects(known.clone());
        fifo.update(object("queued", 2));
        fifo.update(object("stays", 2));
        fifo.replace([object("stays", 3), object("new", 3)], "3".into());
        fifo
    };
    let batch = fifo().pop_batch().unwrap();
    assert!(batch.replaced && batch.version == Some("3".into()));
    assert_eq!(shown(Some(batch)), ["queued~2", "stays~2", "queued?2", "known?1", "stays=3", "new=3"]);
    assert_eq!(popped(&mut fifo()), ["queued~2 queued?2", "stays~2 stays=3", "new=3", "known?1"]);
}

#[test]
fn fifo_resync_sends_known_objects_that_are_not_queued() {
    let known = ThreadSafeStore::new();
    known.insert(object("a", 1));
    known.insert(object("b", 1));
    let mut fifo = DeltaFifo::with_known_objects(known);
    fifo.update(object("a", 2));
    fifo.resync();
    assert_eq!(shown(fifo.pop_batch()), ["a~2", "b.1"]);
    assert!(fifo.pop_batch().is_none(), "a resync happens once");
}

#[test]
fn fifo_has_synced_after_first_list_or_other_change() {
    let mut fifo = DeltaFifo::new();
    assert!(!fifo.has_synced());
    fifo.replace([object("a", 1), object("b", 1)], "1".into());
    assert!(!fifo.has_synced());
    assert!(fifo.pop_batch().unwrap().in_initial_list);
    assert!(fifo.has_synced());
    fifo.replace([object("a", 1)], "2".into());
    assert!(!fifo.pop_batch().unwrap().in_initial_list);
    let mut fifo = DeltaFifo::new();
    fifo.add(object("a", 1));
    assert!(fifo.has_synced());
    let mut fifo = DeltaFifo::<Object>::new();
    fifo.replace([], "1".into());
    assert!(fifo.has_synced());
}

#[test]
fn fifo_has_not_synced_before_deletes_of_an_empty_list() {
    let known = ThreadSafeStore::new();
    known.insert(object("a", 1));
    let mut fifo = DeltaFifo::with_known_objects(known);
    fifo.replace([], "1".into());
    assert!(!fifo.has_synced());
    assert_eq!(popped(&mut fifo), ["a?1"]);
    assert!(fifo.has_synced());
}

#[tokio::test]
async fn queue_pops_until_closed_and_empty() {
    let queue = DeltaQueue::new(DeltaFifo::new());
    queue.replace([object("a", 1), object("b", 1)], "1".into());
    assert_eq!(show_key(&queue.pop().await.unwrap()), "a=1");
    assert!(!queue.has_synced());
    queue.update(object("a", 2));
    queue.update(object("b", 2));
    queue.close();
    queue.add(object("c", 1));
    assert_eq!(show_key(&queue.pop().await.unwrap()), "b=1 b~2");
    assert!(queue.has_synced());
    assert_eq!(show_key(&queue.pop().await.unwrap()), "a~2");
    assert!(queue.pop().await.is_none());
}

#[tokio::test]
async fn queue_reports_full_and_ready() {
    let queue = DeltaQueue::new(DeltaFifo::new()).capacity(3);
    for value in 0..3 {
        assert!(!queue.is_full());
        queue.update(object("a", value));
    }
    assert!(queue.is_full());
    tokio::join!(queue.ready(), async { assert_eq!(shown(queue.pop_batch().await), ["a~0", "a~1", "a~2"]) });
    queue.replace((0..10).map(|number| object(&number.to_string(), number)), "1".into());
    assert!(!queue.is_full(), "a replace counts as one change");
}

#[derive(Clone, Debug)]
enum Step {
    Update(u8),
    Pop,
    PopBatch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u8..6).prop_map(Step::Update),
        3 => Just(Step::Pop),
        1 => Just(Step::PopBatch),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// Updates with increasing values, so that the order of values is the order of the server.
    #[test]
    fn fifo_loses_no_delta_and_keeps_the_order(steps in steps()) {
        let mut fifo = DeltaFifo::new();
        let mut queued: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (value, step) in (0..).zip(steps) {
            match step {
                Step::Update(name) => {
                    fifo.update(object(&name.to_string(), value));
                    queued.entry(name.to_string()).or_default().push(value);
                }
                Step::Pop => {
                    let oldest = queued.iter().min_by_key(|(_, values)| values[0]).map(|(name, _)| name.clone());
                    let expected = oldest.map(|name| (queued.remove(&name).unwrap(), name));
                    let popped = fifo.pop().map(|deltas| {
                        (deltas.iter().map(|delta| delta.object().1).collect(), deltas.key().name().to_owned())
                    });
                    prop_assert_eq!(popped, expected);
                }
                Step::PopBatch => {
                    let mut expected: Vec<u32> = std::mem::take(&mut queued).into_values().flatten().collect();
                    expected.sort_unstable();
                    let batch = fifo.pop_batch().map(|batch| batch.deltas).unwrap_or_default();
                    prop_assert_eq!(batch.iter().map(|delta| delta.object().1).collect::<Vec<_>>(), expected);
                }
            }
            prop_assert_eq!(fifo.len(), queued.len());
            prop_assert_eq!(fifo.changes(), queued.values().map(Vec::len).sum::<usize>());
            prop_assert_eq!(fifo.is_empty(), queued.is_empty());
        }
    }
}
