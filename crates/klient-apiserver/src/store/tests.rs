//! Tests of the store, in memory and on disk.

use serde_json::json;

use super::*;

fn pods() -> Arc<str> {
    Arc::from("pods")
}

fn object(name: &str, value: u32) -> Value {
    json!({"metadata": {"name": name}, "value": value})
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.objects.iter().map(|stored| stored.raw().name().into_owned()).collect()
}

async fn put(store: &Store, key: &str, expected: Expected, value: u32) -> u64 {
    store.commit(&pods(), key, expected, Write::Put(object(key, value))).await.unwrap().change.revision
}

#[tokio::test]
async fn write_stores_its_revision_in_object() {
    let store = Store::in_memory(10, 100);
    assert_eq!(put(&store, "a", Expected::Absent, 1).await, 11);
    assert_eq!(put(&store, "b", Expected::Absent, 1).await, 12);
    assert_eq!(put(&store, "a", Expected::Revision(11), 2).await, 13);
    let stored = store.get("pods", "a").unwrap();
    assert_eq!(stored.value(), json!({"metadata": {"name": "a", "resourceVersion": "13"}, "value": 2}));
    assert_eq!((store.revision(), store.count("pods")), (13, 2));
}

#[tokio::test]
async fn write_requires_its_precondition() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    for (key, expected) in [("a", Expected::Absent), ("a", Expected::Revision(9)), ("b", Expected::Revision(1))] {
        let outcome = store.commit(&pods(), key, expected, Write::Put(object(key, 2))).await;
        assert!(matches!(outcome, Err(CommitError::Changed(found)) if found.is_some() == (key == "a")));
    }
    assert_eq!(store.revision(), 1);
}

#[tokio::test]
async fn old_revisions_are_readable_until_compacted() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    put(&store, "c", Expected::Absent, 1).await;
    put(&store, "b", Expected::Absent, 1).await;
    let last = store.get("pods", "a").unwrap().value();
    store.commit(&pods(), "a", Expected::Revision(1), Write::Delete(last)).await.unwrap();
    put(&store, "c", Expected::Revision(2), 2).await;
    assert_eq!(names(&store.list("pods", "")), ["b", "c"]);
    let seen: Vec<_> = (0..=5).map(|revision| names(&store.list_at("pods", "", revision).ok().unwrap())).collect();
    assert_eq!(seen, [vec![], vec!["a"], vec!["a", "c"], vec!["a", "b", "c"], vec!["b", "c"], vec!["b", "c"]]);
    assert_eq!(store.list_at("pods", "", 4).ok().unwrap().objects[1].value()["value"], 1);
    store.compact(3);
    assert!(store.list_at("pods", "", 2).is_err());
    assert_eq!(names(&store.list_at("pods", "", 3).ok().unwrap()), ["a", "b", "c"]);
}

#[tokio::test]
async fn cursor_sees_every_change_once_and_in_order() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    let mut cursor = store.follow(&pods(), 0).unwrap();
    let revisions = |changes: &[Arc<Change>]| changes.iter().map(|change| change.revision).collect::<Vec<_>>();
    assert_eq!(revisions(&cursor.ready().unwrap().0), [1]);
    put(&store, "b", Expected::Absent, 1).await;
    assert!(cursor.changed().await);
    put(&store, "a", Expected::Revision(1), 2).await;
    let (changes, complete) = cursor.ready().unwrap();
    assert_eq!((revisions(&changes), complete), (vec![2, 3], 3));
    assert_eq!(changes[1].previous.as_ref().unwrap().revision, 1);
    assert!(cursor.ready().unwrap().0.is_empty());
}

#[tokio::test]
async fn cursor_reports_compacted_position() {
    let store = Store::in_memory(0, 2);
    put(&store, "a", Expected::Absent, 1).await;
    let mut cursor = store.follow(&pods(), 1).unwrap();
    for name in ["b", "c", "d"] {
        put(&store, name, Expected::Absent, 1).await;
    }
    assert_eq!(cursor.ready().unwrap_err(), Compacted { oldest: 2 });
    assert!(store.follow(&pods(), 1).is_err());
    assert_eq!(store.follow(&pods(), 2).unwrap().ready().unwrap().0.len(), 2);
}

#[tokio::test]
async fn cursor_ends_with_its_table() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    let mut cursor = store.follow(&pods(), 1).unwrap();
    store.drop_table("pods");
    assert!(!cursor.changed().await);
}

#[tokio::test]
async fn cursor_follows_empty_table_from_start() {
    let store = Store::in_memory(5, 100);
    put(&store, "a", Expected::Absent, 1).await;
    let services: Arc<str> = Arc::from("services");
    assert!(store.follow(&services, 5).unwrap().ready().unwrap().0.is_empty());
    assert!(store.follow(&services, 4).is_err());
    assert!(store.list_at("routes", "", 4).is_err() && store.list_at("routes", "", 5).is_ok());
}

#[tokio::test]
async fn recreated_table_has_no_earlier_history() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    store.drop_table("pods");
    put(&store, "b", Expected::Absent, 1).await;
    assert_eq!(names(&store.list("pods", "")), ["b"]);
    assert!(store.follow(&pods(), 0).is_err());
    assert_eq!(store.follow(&pods(), 1).unwrap().ready().unwrap().0.len(), 1);
}

#[tokio::test]
async fn list_selects_keys_by_prefix() {
    let store = Store::in_memory(0, 100);
    for key in ["a-b/x", "a/y", "a/x", "ab/x"] {
        store.commit(&pods(), key, Expected::Absent, Write::Put(object(key, 1))).await.unwrap();
    }
    assert_eq!(names(&store.list("pods", "")), ["a-b/x", "a/x", "a/y", "ab/x"]);
    assert_eq!(names(&store.list("pods", "a/")), ["a/x", "a/y"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_are_loaded_after_reopen() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Some(0), 0, 100).unwrap();
    let writes = (0..200).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { put(&store, &format!("pod-{number:03}"), Expected::Absent, number).await })
    });
    let mut revisions = Vec::new();
    for write in writes {
        revisions.push(write.await.unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=200).collect::<Vec<_>>());
    let last = store.get("pods", "pod-007").unwrap();
    let gone = Write::Delete(last.value());
    store.commit(&pods(), "pod-007", Expected::Revision(last.revision), gone).await.unwrap();
    drop(store);

    // The store's thread closes the database when the thread ends.
    let store = loop {
        match Store::open(folder.path(), Some(0), 0, 100) {
            Ok(store) => break store,
            Err(error) => assert!(error.to_string().contains("already open"), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((store.revision(), store.count("pods")), (201, 199));
    assert_eq!(store.get("pods", "pod-008").unwrap().value()["value"], 8);
    assert!(store.follow(&pods(), 200).is_err());
    assert_eq!(put(&store, "new", Expected::Absent, 1).await, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn batched_writes_are_checked_against_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Some(0), 0, 1000).unwrap();
    let mut tries = Vec::new();
    for number in 0..50 {
        let store = store.clone();
        tries.push(tokio::spawn(async move {
            store.commit(&pods(), "same", Expected::Absent, Write::Put(object("same", number))).await.is_ok()
        }));
    }
    let mut done = 0;
    for outcome in tries {
        done += usize::from(outcome.await.unwrap());
    }
    assert_eq!((done, store.revision()), (1, 1));
}

#[tokio::test]
async fn protobuf_is_cached_until_next_write() {
    let store = Store::in_memory(1, 10);
    let codec = klient_proto::Codec::find("v1", "ConfigMap").unwrap();
    let table: Arc<str> = Arc::from("configmaps");
    let object = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"k": text}});
    let first = store.commit(&table, "n/a", Expected::Absent, Write::Put(object("one"))).await.unwrap().change;
    let message = first.object.protobuf(codec).unwrap();
    assert_eq!(message, klient_proto::from_value(&first.object.value(), codec).unwrap());
    assert_eq!(first.object.protobuf(codec).unwrap().as_ptr(), message.as_ptr());
    let expected = Expected::Revision(first.revision);
    store.commit(&table, "n/a", expected, Write::Put(object("two"))).await.unwrap();
    let newer = store.get("configmaps", "n/a").unwrap();
    assert_eq!(newer.protobuf(codec).unwrap(), klient_proto::from_value(&newer.value(), codec).unwrap());
    assert_ne!(newer.protobuf(codec).unwrap(), message);
}

#[tokio::test]
async fn idle_cursor_survives_compaction_of_other_tables() {
    let store = Store::in_memory(0, 100);
    put(&store, "a", Expected::Absent, 1).await;
    let (mut idle, mut late) = (store.follow(&pods(), 1).unwrap(), store.follow(&pods(), 0).unwrap());
    assert!(idle.ready().unwrap().0.is_empty());
    let services: Arc<str> = Arc::from("services");
    for number in 0..5 {
        let key = format!("s-{number}");
        store.commit(&services, &key, Expected::Absent, Write::Put(object(&key, 1))).await.unwrap();
    }
    store.compact(store.revision());
    put(&store, "b", Expected::Absent, 1).await;
    assert_eq!(idle.ready().unwrap().0.len(), 1, "it has missed nothing");
    assert!(late.ready().is_err(), "it has missed the first change");
}
