//! The fifo by itself, with the classic operations of a queue.

use klient::{
    ObjectKey,
    informer::{Delta, DeltaBatch, DeltaFifo, Deltas, ThreadSafeStore, Tombstone},
};

type Object = (ObjectKey, u32);

fn object(name: &str, value: u32) -> Object {
    (ObjectKey::cluster(name), value)
}

/// A batch in short: `a +1 ~2` for an addition and a change, `-` deleted, `?` vanished, `=` replaced, `.` shown again.
fn shown(batch: Option<DeltaBatch<Object>>) -> Vec<String> {
    batch.map(|batch| batch.deltas).unwrap_or_default().iter().map(show).collect()
}

fn show(deltas: &Deltas<Object>) -> String {
    let mut text = deltas.key().to_string();
    for delta in deltas.iter() {
        let sign = match delta {
            Delta::Added(_) => "+",
            Delta::Updated(_) => "~",
            Delta::Deleted(Tombstone::Final(_)) => "-",
            Delta::Deleted(Tombstone::LastKnown(_)) => "?",
            Delta::Replaced(_) => "=",
            Delta::Sync(_) => ".",
        };
        text += &format!(" {sign}{}", delta.object().1);
    }
    text
}

#[test]
fn each_key_is_queued_once_with_what_happened_in_order() {
    let fifo = DeltaFifo::new();
    fifo.add(object("a", 1));
    fifo.add(object("b", 1));
    fifo.update(object("a", 2));
    fifo.delete(object("a", 3));
    fifo.add(object("a", 4));
    assert_eq!(fifo.len(), 2);
    assert_eq!(shown(fifo.try_pop_batch()), ["a +1 ~2 -3 +4", "b +1"]);
    assert!(fifo.is_empty() && fifo.try_pop_batch().is_none());
}

#[test]
fn two_deletions_in_a_row_are_one_and_the_told_state_is_the_better() {
    let known = ThreadSafeStore::new();
    known.insert(object("a", 1));
    let fifo = DeltaFifo::with_known_objects(known);
    fifo.delete(object("a", 2));
    fifo.delete(object("a", 3));
    fifo.replace([], "9".into());
    assert_eq!(shown(fifo.try_pop_batch()), ["a -2"]);
}

#[test]
fn a_deletion_of_what_nobody_knows_is_ignored() {
    let fifo = DeltaFifo::with_known_objects(ThreadSafeStore::new());
    fifo.delete(object("a", 1));
    assert!(fifo.try_pop_batch().is_none());
    fifo.add(object("a", 1));
    fifo.delete(object("a", 2));
    assert_eq!(shown(fifo.try_pop_batch()), ["a +1 -2"]);
}

#[test]
fn a_replace_tells_of_what_vanished_from_queue_and_store() {
    let known = ThreadSafeStore::new();
    known.insert(object("known", 1));
    known.insert(object("stays", 1));
    let fifo = DeltaFifo::with_known_objects(known);
    fifo.update(object("queued", 2));
    fifo.update(object("stays", 2));
    fifo.replace([object("stays", 3), object("new", 3)], "3".into());
    let batch = fifo.try_pop_batch().unwrap();
    assert!(batch.replaced && batch.version == Some("3".into()));
    assert_eq!(shown(Some(batch)), ["queued ~2 ?2", "stays ~2 =3", "new =3", "known ?1"]);
}

#[test]
fn a_resync_shows_what_is_known_and_not_queued() {
    let known = ThreadSafeStore::new();
    known.insert(object("a", 1));
    known.insert(object("b", 1));
    let fifo = DeltaFifo::with_known_objects(known);
    fifo.update(object("a", 2));
    fifo.resync();
    assert_eq!(shown(fifo.try_pop_batch()), ["a ~2", "b .1"]);
    assert!(fifo.try_pop_batch().is_none(), "once is enough");
}

#[test]
fn it_has_synced_when_the_first_list_was_taken_or_something_else_came_first() {
    let fifo = DeltaFifo::new();
    assert!(!fifo.has_synced());
    fifo.replace([object("a", 1), object("b", 1)], "1".into());
    assert!(!fifo.has_synced());
    assert!(fifo.try_pop_batch().unwrap().in_initial_list);
    assert!(fifo.has_synced());
    fifo.replace([object("a", 1)], "2".into());
    assert!(!fifo.try_pop_batch().unwrap().in_initial_list);
    let fifo = DeltaFifo::new();
    fifo.add(object("a", 1));
    assert!(fifo.has_synced());
    let fifo = DeltaFifo::<Object>::new();
    fifo.replace([], "1".into());
    assert!(fifo.has_synced());
}

#[tokio::test]
async fn keys_can_be_taken_one_by_one_until_it_is_closed_and_empty() {
    let fifo = DeltaFifo::new();
    fifo.replace([object("a", 1), object("b", 1)], "1".into());
    assert_eq!(show(&fifo.pop().await.unwrap()), "a =1");
    assert!(!fifo.has_synced());
    fifo.update(object("a", 2));
    fifo.update(object("b", 2));
    fifo.close();
    fifo.add(object("c", 1));
    assert_eq!(show(&fifo.pop().await.unwrap()), "b =1 ~2");
    assert!(fifo.has_synced());
    assert_eq!(show(&fifo.pop().await.unwrap()), "a ~2");
    assert!(fifo.pop().await.is_none());
}

#[tokio::test]
async fn it_says_when_it_is_full_and_when_there_is_room_again() {
    let fifo = DeltaFifo::new().capacity(3);
    for value in 0..3 {
        assert!(!fifo.is_full());
        fifo.update(object("a", value));
    }
    assert!(fifo.is_full());
    tokio::join!(fifo.ready(), async { assert_eq!(shown(fifo.try_pop_batch()), ["a ~0 ~1 ~2"]) });
    fifo.replace((0..10).map(|number| object(&number.to_string(), number)), "1".into());
    assert!(!fifo.is_full(), "a replace is one change, whatever its size");
}
