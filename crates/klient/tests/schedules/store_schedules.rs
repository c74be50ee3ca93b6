//! Readers of the store see complete batches with their indices, in order.

use std::sync::Arc;

use klient::ObjectKey;
use shuttle::thread;

use crate::{explore, index::IndexFunc, store::ThreadSafeStore};

type Numbers = ThreadSafeStore<(ObjectKey, u32)>;

fn entry(name: &str, value: u32) -> (ObjectKey, u32) {
    (ObjectKey::cluster(name), value)
}

fn by_value() -> IndexFunc<(ObjectKey, u32)> {
    IndexFunc::new(|(_, value): &(ObjectKey, u32), found| found.add(&value.to_string()))
}

#[test]
fn store_readers_see_complete_batches() {
    explore(|| {
        let store = Numbers::new();
        let index = store.add_index("value", by_value()).unwrap();
        store.replace([entry("a", 0), entry("b", 0)], "1".into());
        let writer = thread::spawn({
            let store = store.clone();
            move || {
                for value in 1..=2 {
                    store.write(|batch| {
                        batch.insert(entry("a", value));
                        batch.insert(entry("b", value));
                        batch.set_resource_version(u64::from(value + 1).into());
                    });
                }
            }
        });
        let mut last = 0;
        for _ in 0..3 {
            let snapshot = store.snapshot();
            let values: Vec<u32> = snapshot.iter().map(|(_, value)| *value).collect();
            assert_eq!(values.len(), 2);
            assert_eq!(values[0], values[1], "both objects are of one batch");
            assert!(values[0] >= last, "readers never see older contents again");
            last = values[0];
            assert_eq!(snapshot.resource_version().as_str(), (last + 1).to_string());
            assert_eq!(snapshot.by_index("value", &last.to_string()).unwrap().len(), 2);
            let live = index.get(&last.to_string()).len();
            assert!(live == 2 || live == 0, "{live} objects at an index value");
        }
        writer.join().unwrap();
        assert_eq!(index.get("2").len(), 2);
        assert_eq!(store.len(), 2);
    });
}

#[test]
fn store_keeps_changes_of_concurrent_writers() {
    explore(|| {
        let store = Numbers::new();
        let writers: Vec<_> = ["a", "b"]
            .map(|name| {
                let store = store.clone();
                thread::spawn(move || {
                    for value in 1..=2 {
                        store.insert(entry(name, value));
                    }
                })
            })
            .into();
        // An index that is added while other threads write has all objects too.
        let index = store.add_index("value", by_value()).unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(store.get(&ObjectKey::cluster("a")).unwrap().1, 2);
        assert_eq!(store.get(&ObjectKey::cluster("b")).unwrap().1, 2);
        assert_eq!(index.get("2").len(), 2);
        assert_eq!(index.get("1").len(), 0);
    });
}

#[test]
fn store_index_matches_objects_during_removal() {
    explore(|| {
        let store = Arc::new(Numbers::new());
        store.add_index("value", by_value()).unwrap();
        store.insert(entry("a", 7));
        let reader = thread::spawn({
            let store = Arc::clone(&store);
            move || {
                let snapshot = store.snapshot();
                assert_eq!(snapshot.len(), snapshot.by_index("value", "7").unwrap().len());
            }
        });
        store.remove(&ObjectKey::cluster("a"));
        reader.join().unwrap();
        assert!(store.is_empty());
    });
}
