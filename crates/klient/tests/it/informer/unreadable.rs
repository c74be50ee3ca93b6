//! Objects and events that cannot be read: nothing looks deleted that is not, and nothing deleted stays.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Error, ErrorKind, ObjectKey, SharedInformer, WatchEvent,
    informer::{FirstRead, ObjectFormat, RelistReason},
    status::Status,
};

use super::{
    next, next_n,
    source::{Page, Sent, Source, added, bookmark, deleted, error_event, modified, object_with},
    within,
};

fn poison() -> Error {
    Error::new(ErrorKind::Decode, "poison")
}

/// An informer whose transform panics at objects with the value `bad`.
fn informer(source: &Source, first_read: FirstRead) -> SharedInformer<ConfigMap> {
    let informer = SharedInformer::builder(source.clone())
        .first_read(first_read)
        .transform(|map: &mut ConfigMap| {
            assert!(map.data.as_ref().unwrap()["n"] != "bad", "a transform that cannot handle this object");
        })
        .build();
    informer.start();
    informer
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("n", name)
}

fn bad(name: &str, version: &str) -> klient::wire::RawObject {
    object_with(name, version, "bad")
}

fn value(informer: &SharedInformer<ConfigMap>, name: &str) -> Option<String> {
    let object = informer.lister().get(&key(name))?;
    Some(object.decode().unwrap().data.as_ref().unwrap()["n"].clone())
}

async fn seen(informer: &SharedInformer<ConfigMap>, version: &str) {
    within(informer.wait_until_seen(&version.into())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_stored_is_kept_in_relist() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2"), ("c", "3")]));
    let watch = source.watch();
    source.list(Page::of("9", [bad("a", "7"), object_with("b", "8", "8")]));
    let second = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    next_n(&mut events, 3).await;
    watch.send(error_event(Status::expired("too old"))).unwrap();
    assert_eq!(next_n(&mut events, 2).await, ["?c", "~b 2>8"], "a is not announced as deleted");
    assert_eq!(value(&informer, "a").as_deref(), Some("1"), "the last state that could be read");
    let status = informer.status();
    assert_eq!((status.unreadable, status.unreadable_keys), (1, vec![key("a")]));
    assert_eq!(status.decode_errors, 1);

    second.send(modified("a", "10")).unwrap();
    assert_eq!(next(&mut events).await, "~a 1>10");
    assert_eq!(informer.status().unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_stored_is_kept_in_initial_events() {
    let source = Source::default();
    let watch = source.watch();
    let second = source.watch();
    let informer = informer(&source, FirstRead::WatchList);
    for sent in [added("a", "1"), added("b", "2"), bookmark("5", true)] {
        watch.send(sent).unwrap();
    }
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    watch.send(error_event(Status::expired("too old"))).unwrap();
    for sent in [Ok(WatchEvent::Added(bad("a", "7"))), added("c", "8"), bookmark("9", true)] {
        second.send(sent).unwrap();
    }
    assert_eq!(next_n(&mut events, 2).await, ["?b", "+c"]);
    assert_eq!(value(&informer, "a").as_deref(), Some("1"));
    assert_eq!(informer.status().unreadable_keys, [key("a")]);
}

#[tokio::test(start_paused = true)]
async fn list_with_unreadable_item_deletes_nothing_and_is_repeated() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("b", "8")]).with_unreadable());
    let _second = source.watch();
    source.list(Page::new("12", &[("b", "8")]));
    let _third = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    watch.send(error_event(Status::expired("too old"))).unwrap();
    assert_eq!(next(&mut events).await, "~b 2>8", "the unreadable item may be a");
    assert_eq!(informer.status().unreadable_keys, [key("a")]);
    assert_eq!(next(&mut events).await, "?a", "a list that was read in full does not contain it");
    assert_eq!(informer.status().unreadable, 0);
    assert_eq!(informer.status().relists[&RelistReason::Unreadable], 1);
}

#[tokio::test(start_paused = true)]
async fn unreadable_change_keeps_object_until_it_is_readable() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    watch.send(Ok(WatchEvent::Modified(bad("a", "6")))).unwrap();
    seen(&informer, "6").await;
    assert_eq!(value(&informer, "a").as_deref(), Some("1"));
    assert_eq!(informer.status().unreadable_keys, [key("a")]);
    watch.send(modified("a", "7")).unwrap();
    seen(&informer, "7").await;
    assert_eq!(value(&informer, "a").as_deref(), Some("7"));
    assert_eq!(informer.status().unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn unreadable_deletion_leaves_no_ghost() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    let sent: [Sent; 4] = [
        Ok(WatchEvent::Deleted(bad("a", "6"))),
        added("b", "7"),
        // Also of an object that arrived a moment ago, and of one that was never known.
        Ok(WatchEvent::Deleted(bad("b", "8"))),
        Ok(WatchEvent::Deleted(bad("x", "9"))),
    ];
    for sent in sent {
        watch.send(sent).unwrap();
    }
    assert_eq!(next_n(&mut events, 4).await, ["*a", "?a", "+b", "?b"]);
    seen(&informer, "9").await;
    assert!(informer.lister().list().is_empty());
    assert_eq!(informer.status().unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn unreadable_event_leads_to_one_paced_relist() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("b", "6")]));
    let second = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    // The first might be the deletion of a.
    for sent in [Err(poison()), Err(poison()), modified("b", "6"), Err(poison())] {
        watch.send(sent).unwrap();
    }
    assert_eq!(next(&mut events).await, "~b 2>6", "the watch is followed meanwhile");
    assert_eq!(next(&mut events).await, "?a");
    second.send(deleted("b", "10")).unwrap();
    assert_eq!(next(&mut events).await, "-b");
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1), (RelistReason::Unreadable, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn unreadable_event_leads_to_relist_if_the_watch_ends_first() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1"), ("b", "2")]));
    let watch = source.watch();
    let _second = source.watch();
    source.list(Page::new("9", &[("b", "6")]));
    let _third = source.watch();
    let informer = informer(&source, FirstRead::List);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    next_n(&mut events, 2).await;
    // The first might be the deletion of a. The next watch begins after it.
    for sent in [Err(poison()), modified("b", "6")] {
        watch.send(sent).unwrap();
    }
    drop(watch);
    assert_eq!(next_n(&mut events, 2).await, ["~b 2>6", "?a"]);
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1), (RelistReason::Unreadable, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn panicking_error_handler_does_not_end_the_informer() {
    let source = Source::default();
    source.list_fails(Error::new(ErrorKind::Transport, "refused"));
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    let calls = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&calls);
    let informer = SharedInformer::builder(source.clone())
        .object_format(ObjectFormat::Decoded)
        .on_error(move |_| {
            *counter.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            panic!("an error handler with a bug");
        })
        .build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    watch.send(added("b", "6")).unwrap();
    seen(&informer, "6").await;
    assert_eq!(*calls.lock().unwrap(), 1);
}
