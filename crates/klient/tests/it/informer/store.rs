//! The store without an informer.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use klient::{
    ObjectKey,
    informer::{IndexFunc, Snapshot, ThreadSafeStore},
};

type Entry = (ObjectKey, Vec<u8>);
type Model = BTreeMap<ObjectKey, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, Vec<u8>),
    Remove(u8),
    Replace(Vec<(u8, Vec<u8>)>),
    Index(bool),
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let values = || proptest::collection::vec(0u8..5, 0..4);
    let step = prop_oneof![
        8 => (0u8..60, values()).prop_map(|(key, values)| Step::Insert(key, values)),
        4 => (0u8..60).prop_map(Step::Remove),
        1 => proptest::collection::vec((0u8..60, values()), 0..30).prop_map(Step::Replace),
        1 => any::<bool>().prop_map(Step::Index),
        1 => Just(Step::Snapshot),
    ];
    proptest::collection::vec(step, 0..150)
}

fn key(number: u8) -> ObjectKey {
    ObjectKey::namespaced(["x", "y"][usize::from(number % 2)], &number.to_string())
}

fn by_values() -> IndexFunc<Entry> {
    IndexFunc::new(|(_, values): &Entry, found| values.iter().for_each(|value| found.add(&value.to_string())))
}

fn check(snapshot: &Snapshot<Entry>, model: &Model, indices: &[&str]) {
    let all: Model = snapshot.iter().cloned().collect();
    assert_eq!(&all, model);
    assert_eq!(snapshot.len(), model.len());
    for index in indices {
        for value in 0..5 {
            let found = snapshot.by_index(index, &value.to_string()).unwrap();
            let found: BTreeSet<_> = found.keys().into_iter().collect();
            let expected = model.iter().filter(|(_, values)| values.contains(&value));
            assert_eq!(found, expected.map(|(key, _)| key.clone()).collect(), "{index} {value}");
        }
    }
}

proptest! {
    #[test]
    fn store_is_a_map_with_indices_and_snapshots(steps in steps()) {
        let store = ThreadSafeStore::<Entry>::new();
        let mut model = Model::new();
        let mut indices = Vec::new();
        let mut snapshots = Vec::new();
        for step in steps {
            match step {
                Step::Insert(number, values) => {
                    let old = store.insert((key(number), values.clone()));
                    prop_assert_eq!(old.map(|(_, values)| values), model.insert(key(number), values));
                }
                Step::Remove(number) => {
                    let old = store.remove(&key(number));
                    prop_assert_eq!(old.map(|(_, values)| values), model.remove(&key(number)));
                }
                Step::Replace(entries) => {
                    let entries: Vec<_> = entries.into_iter().map(|(number, values)| (key(number), values)).collect();
                    model = entries.iter().cloned().collect();
                    store.replace(entries, "1".into());
                }
                Step::Index(costly) => {
                    let name = if costly { "costly" } else { "cheap" };
                    let function = if costly { by_values().costly() } else { by_values() };
                    let added = store.add_index(name, function);
                    prop_assert_eq!(added.is_ok(), !indices.contains(&name));
                    if added.is_ok() {
                        indices.push(name);
                    }
                }
                Step::Snapshot => snapshots.push((store.snapshot(), model.clone(), indices.clone())),
            }
        }
        snapshots.push((store.snapshot(), model, indices));
        for (snapshot, model, indices) in snapshots {
            check(&snapshot, &model, &indices);
        }
    }
}

#[test]
fn store_undoes_a_write_that_panics() {
    let store = ThreadSafeStore::<Entry>::new();
    store.add_index("costly", by_values().costly()).unwrap();
    store.insert((key(1), vec![1]));
    let half = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.write(|batch| {
            batch.insert((key(1), vec![2]));
            panic!("half-way");
        });
    }));
    assert!(half.is_err());
    store.insert((key(2), vec![2]));
    assert_eq!(store.index_keys("costly", "1").unwrap(), [key(1)]);
    assert_eq!(store.index_keys("costly", "2").unwrap(), [key(2)]);
}

#[test]
fn store_keeps_object_if_index_function_panics() {
    let store = ThreadSafeStore::<Entry>::new();
    let index = store.add_index("bad", IndexFunc::new(|_: &Entry, _| panic!("no"))).unwrap();
    store.insert((key(1), vec![]));
    assert_eq!((store.len(), index.values().len()), (1, 0));
}

#[test]
fn index_drops_values_without_objects() {
    let store = ThreadSafeStore::<Entry>::new();
    let index = store.add_index("values", by_values()).unwrap();
    store.insert((key(1), vec![]));
    store.insert((key(2), vec![1, 2, 2]));
    assert_eq!(index.values().iter().map(ToString::to_string).collect::<Vec<_>>(), ["1", "2"]);
    store.insert((key(2), vec![2]));
    assert_eq!(index.values().len(), 1);
}
