//! A shared fifo loses no delta, keeps the order of each key, and wakes the consumer and the producers.

use std::{collections::BTreeMap, sync::Arc};

use klient::ObjectKey;
use shuttle::{future::block_on, thread};

use crate::{
    delta_fifo::{Delta, DeltaFifo},
    delta_queue::DeltaQueue,
    explore,
    store::ThreadSafeStore,
};

type Queue = DeltaQueue<(ObjectKey, u32)>;

fn entry(name: &str, value: u32) -> (ObjectKey, u32) {
    (ObjectKey::cluster(name), value)
}

#[test]
fn queue_keeps_the_order_of_each_key() {
    explore(|| {
        let queue = Arc::new(Queue::new(DeltaFifo::new()));
        let producers: Vec<_> = ["a", "b"]
            .map(|name| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for value in 0..3 {
                        queue.update(entry(name, value));
                    }
                })
            })
            .into();
        let closer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                for producer in producers {
                    producer.join().unwrap();
                }
                queue.close();
            }
        });
        let mut seen: BTreeMap<ObjectKey, Vec<u32>> = BTreeMap::new();
        while let Some(batch) = block_on(queue.pop_batch()) {
            for delta in batch.deltas {
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
fn queue_wakes_its_consumer_for_deltas_and_for_the_end() {
    explore(|| {
        let queue = Arc::new(Queue::new(DeltaFifo::new()));
        let consumer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let mut count = 0;
                while let Some(deltas) = block_on(queue.pop()) {
                    count += deltas.iter().count();
                }
                count
            }
        });
        queue.add(entry("a", 1));
        queue.add(entry("b", 1));
        queue.close();
        queue.add(entry("c", 1));
        assert_eq!(consumer.join().unwrap(), 2, "deltas after the end are ignored");
    });
}

#[test]
fn queue_wakes_producers_that_wait_for_room() {
    explore(|| {
        let queue = Arc::new(Queue::new(DeltaFifo::new()).capacity(1));
        let producer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                for value in 0..3 {
                    block_on(queue.ready());
                    queue.update(entry("a", value));
                }
                queue.close();
            }
        });
        let mut values = Vec::new();
        while let Some(deltas) = block_on(queue.pop()) {
            let count = deltas.iter().count();
            assert!(count <= 1, "{count} changes are queued where there is room for one");
            values.extend(deltas.iter().map(|delta| delta.object().1));
        }
        producer.join().unwrap();
        assert_eq!(values, [0, 1, 2]);
    });
}

#[test]
fn queue_hands_out_a_replace_in_one_batch() {
    explore(|| {
        let store = ThreadSafeStore::new();
        store.insert(entry("old", 1));
        let queue = Arc::new(Queue::new(DeltaFifo::with_known_objects(store.clone())));
        let producer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.update(entry("a", 1));
                queue.replace([entry("b", 2), entry("c", 2)], "2".into());
                queue.update(entry("b", 3));
                queue.close();
            }
        });
        while let Some(batch) = block_on(queue.pop_batch()) {
            let replaced = batch.deltas.iter().filter(|delta| matches!(delta, Delta::Replaced(_))).count();
            assert!(replaced == 0 || replaced == 2, "a replace is in one batch");
            store.write(|known| {
                for delta in batch.deltas {
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
