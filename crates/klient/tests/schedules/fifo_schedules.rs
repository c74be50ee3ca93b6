//! The fifo loses nothing, keeps the order of each key, and wakes whoever waits.

use std::{collections::BTreeMap, sync::Arc};

use klient::ObjectKey;
use shuttle::{future::block_on, thread};

use crate::{
    delta_fifo::{Delta, DeltaFifo, Deltas},
    explore,
    store::ThreadSafeStore,
};

type Fifo = DeltaFifo<(ObjectKey, u32)>;

fn entry(name: &str, value: u32) -> (ObjectKey, u32) {
    (ObjectKey::cluster(name), value)
}

#[test]
fn everything_comes_out_in_the_order_of_its_key() {
    explore(|| {
        let fifo = Arc::new(Fifo::new());
        let producers: Vec<_> = ["a", "b"]
            .map(|name| {
                let fifo = Arc::clone(&fifo);
                thread::spawn(move || {
                    for value in 0..3 {
                        fifo.update(entry(name, value));
                    }
                })
            })
            .into();
        let closer = thread::spawn({
            let fifo = Arc::clone(&fifo);
            move || {
                for producer in producers {
                    producer.join().unwrap();
                }
                fifo.close();
            }
        });
        let mut seen: BTreeMap<ObjectKey, Vec<u32>> = BTreeMap::new();
        while let Some(batch) = block_on(fifo.pop_batch()) {
            for delta in batch.deltas.into_iter().flatten() {
                let (key, value) = delta.object().clone();
                seen.entry(key).or_default().push(value);
            }
        }
        closer.join().unwrap();
        assert_eq!(seen.len(), 2);
        assert!(seen.values().all(|values| values == &[0, 1, 2]), "{seen:?}");
    });
}

#[test]
fn a_consumer_that_waits_is_woken_and_one_that_came_late_is_not_left_waiting() {
    explore(|| {
        let fifo = Arc::new(Fifo::new());
        let consumer = thread::spawn({
            let fifo = Arc::clone(&fifo);
            move || {
                let mut count = 0;
                while let Some(deltas) = block_on(fifo.pop()) {
                    count += deltas.iter().count();
                }
                count
            }
        });
        fifo.add(entry("a", 1));
        fifo.add(entry("b", 1));
        fifo.close();
        fifo.add(entry("c", 1));
        assert_eq!(consumer.join().unwrap(), 2, "what came after the end is not taken in");
    });
}

#[test]
fn producers_wait_for_room_and_are_woken() {
    explore(|| {
        let fifo = Arc::new(Fifo::new().capacity(1));
        let producer = thread::spawn({
            let fifo = Arc::clone(&fifo);
            move || {
                for value in 0..3 {
                    block_on(fifo.ready());
                    fifo.update(entry("a", value));
                }
                fifo.close();
            }
        });
        let mut values = Vec::new();
        while let Some(deltas) = block_on(fifo.pop()) {
            let most = deltas.iter().count();
            assert!(most <= 1, "{most} changes are queued where there is room for one");
            values.extend(deltas.iter().map(|delta| delta.object().1));
        }
        producer.join().unwrap();
        assert_eq!(values, [0, 1, 2]);
    });
}

#[test]
fn a_replace_is_taken_whole_and_what_vanished_is_found() {
    explore(|| {
        let store = ThreadSafeStore::new();
        store.insert(entry("old", 1));
        let fifo = Arc::new(Fifo::with_known_objects(store.clone()));
        let producer = thread::spawn({
            let fifo = Arc::clone(&fifo);
            move || {
                fifo.update(entry("a", 1));
                fifo.replace([entry("b", 2), entry("c", 2)], "2".into());
                fifo.update(entry("b", 3));
                fifo.close();
            }
        });
        while let Some(batch) = block_on(fifo.pop_batch()) {
            let replaced = batch.deltas.iter().flat_map(Deltas::iter);
            let replaced = replaced.filter(|delta| matches!(delta, Delta::Replaced(_))).count();
            assert!(replaced == 0 || replaced == 2, "a replace is in one batch");
            store.write(|known| {
                for delta in batch.deltas.into_iter().flatten() {
                    match delta {
                        Delta::Deleted(tombstone) => drop(known.remove(&tombstone.object().0)),
                        Delta::Added(object)
                        | Delta::Updated(object)
                        | Delta::Replaced(object)
                        | Delta::Sync(object) => {
                            known.insert(object);
                        }
                    }
                }
            });
        }
        producer.join().unwrap();
        assert_eq!(store.list().sorted(), [entry("b", 3), entry("c", 2)]);
    });
}
