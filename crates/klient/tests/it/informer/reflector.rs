//! What a reflector asks for, after what.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Error, ErrorKind,
    informer::{FirstRead, InformerState, RelistReason, SharedInformer},
    resource::GroupResource,
    status::{Status, StatusReason},
};
use tokio::time::Instant;

use super::{
    source::{Page, Source, added, bookmark, broken, deleted, modified, says},
    within,
};

fn started(source: &Source) -> SharedInformer<ConfigMap> {
    let informer = SharedInformer::new(source.clone());
    informer.start();
    informer
}

async fn seen(informer: &SharedInformer<ConfigMap>, version: &str) {
    within(informer.wait_until_seen(&version.into())).await.unwrap();
}

fn names(informer: &SharedInformer<ConfigMap>) -> Vec<String> {
    informer.lister().list().keys().iter().map(|key| key.name().to_owned()).collect()
}

/// Waits until the source was asked so often.
async fn asked(source: &Source, count: usize) -> Vec<String> {
    within(async {
        while source.asked().len() < count {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    source.asked()
}

fn gone() -> Status {
    Status::expired("too old")
}

fn failure(code: u16, reason: StatusReason) -> Error {
    Error::from(Status::failure(reason, code, "no"))
}

#[tokio::test(start_paused = true)]
async fn the_first_list_may_be_of_any_version_and_the_watch_goes_on_from_it() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3")]));
    let _watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(asked(&source, 2).await, ["list any 500", "watch @5"]);
    assert_eq!(names(&informer), ["a"]);
    assert_eq!(informer.store().resource_version().as_str(), "5");
}

#[tokio::test(start_paused = true)]
async fn a_consistent_first_read_asks_for_the_newest_version() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let informer = SharedInformer::builder(source.clone()).consistent_first_read(true).build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(asked(&source, 2).await[0], "list newest 500");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_normally_goes_on_from_the_last_version_without_a_list() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let first = source.watch();
    let second = source.watch();
    let informer = started(&source);
    first.send(added("a", "6")).unwrap();
    first.send(bookmark("9", false)).unwrap();
    seen(&informer, "9").await;
    drop(first);
    second.send(modified("a", "10")).unwrap();
    seen(&informer, "10").await;
    assert_eq!(source.asked(), ["list any 500", "watch @5", "watch @9"]);
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_in_the_stream_lists_at_the_last_version() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3"), ("b", "4")]));
    let first = source.watch();
    source.list(Page::new("9", &[("b", "4"), ("c", "8")]));
    let _second = source.watch();
    let informer = started(&source);
    first.send(says(gone())).unwrap();
    seen(&informer, "9").await;
    assert_eq!(asked(&source, 4).await, ["list any 500", "watch @5", "list >=5 0", "watch @9"]);
    assert_eq!(names(&informer), ["b", "c"]);
    assert_eq!(informer.status().relists[&RelistReason::Expired], 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_at_the_start_of_a_watch_lists_too() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    source.watch_fails(Error::from(gone()));
    source.list(Page::new("9", &[]));
    let _watch = source.watch();
    let informer = started(&source);
    seen(&informer, "9").await;
    assert_eq!(asked(&source, 4).await, ["list any 500", "watch @5", "list >=5 0", "watch @9"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_at_a_version_that_is_not_to_be_had_is_made_at_the_newest_at_once() {
    for trouble in [Error::from(gone()), Error::from(Status::version_too_large(5, 4, 1))] {
        let source = Source::default();
        source.list(Page::new("5", &[]));
        source.watch_fails(Error::from(gone()));
        source.list_fails(trouble);
        source.list(Page::new("9", &[]));
        let _watch = source.watch();
        let start = Instant::now();
        let informer = started(&source);
        seen(&informer, "9").await;
        assert!(start.elapsed() < Duration::from_millis(100), "nothing is waited for");
        let expected = ["list any 500", "watch @5", "list >=5 0", "list newest 500", "watch @9"];
        assert_eq!(asked(&source, 5).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_until_there_is_no_more() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).continues("x"));
    source.list(Page::new("5", &[("b", "2")]).continues("y"));
    source.list(Page::new("5", &[("c", "3")]));
    let watch = source.watch();
    source.list(Page::new("9", &[]));
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["a", "b", "c"]);
    watch.send(says(gone())).unwrap();
    seen(&informer, "9").await;
    let expected = ["list any 500", "page x 500", "page y 500", "watch @5", "list >=5 500"];
    assert_eq!(source.asked()[..5], expected, "a server that pages lists of any version is asked for pages again");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_half_way_is_read_anew_in_one_piece() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).continues("x"));
    source.list_fails(Error::from(gone()));
    source.list(Page::new("7", &[("b", "2")]));
    let _watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["b"]);
    assert_eq!(asked(&source, 4).await, ["list any 500", "page x 500", "list newest 0", "watch @7"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_waits_as_long_as_asked_and_does_not_list() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    source.watch_fails(Error::from(Status::too_many_requests("busy", 20)));
    let watch = source.watch();
    let second = source.watch();
    let start = Instant::now();
    let informer = started(&source);
    watch.send(added("a", "6")).unwrap();
    seen(&informer, "6").await;
    assert!(start.elapsed() >= Duration::from_secs(20));
    watch.send(says(Status::too_many_requests("busy", 30))).unwrap();
    second.send(added("b", "7")).unwrap();
    seen(&informer, "7").await;
    assert!(start.elapsed() >= Duration::from_secs(50));
    assert_eq!(source.asked(), ["list any 500", "watch @5", "watch @5", "watch @6"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_again_ever_more_slowly_and_never_listed() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    for _ in 0..6 {
        source.watch_fails(Error::new(ErrorKind::Transport, "connection refused"));
    }
    let watch = source.watch();
    let start = Instant::now();
    let informer = started(&source);
    let mut states = informer.states();
    within(states.wait_for(|state| matches!(state, InformerState::Stale { .. }))).await.unwrap();
    watch.send(added("a", "6")).unwrap();
    seen(&informer, "6").await;
    let waited = start.elapsed().as_secs_f64();
    let least = 0.8 + 1.6 + 3.2 + 6.4 + 12.8 + 25.6;
    assert!((least..2.0 * least + 1.0).contains(&waited), "{waited}");
    assert!(source.asked()[1..].iter().all(|asked| asked == "watch @5"));
    assert_eq!(informer.status().state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn watches_that_bring_nothing_again_and_again_lead_to_a_list() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    for _ in 0..5 {
        drop(source.watch());
    }
    source.list(Page::new("9", &[]));
    let _watch = source.watch();
    let start = Instant::now();
    let informer = started(&source);
    seen(&informer, "9").await;
    assert!(start.elapsed() > Duration::from_secs(10), "it does not spin");
    assert_eq!(informer.status().relists[&RelistReason::NoProgress], 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_it_worked_is_made_again_at_once() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let first = source.watch();
    let second = source.watch();
    let informer = started(&source);
    first.send(added("a", "6")).unwrap();
    first.send(broken()).unwrap();
    second.send(added("b", "7")).unwrap();
    let start = Instant::now();
    seen(&informer, "7").await;
    assert!(start.elapsed() < Duration::from_millis(100));
    assert_eq!(source.asked(), ["list any 500", "watch @5", "watch @6"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_changes_nothing_and_is_made_again() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]));
    let watch = source.watch();
    source.list(Page::new("8", &[]).breaking());
    source.list(Page::new("9", &[("a", "1"), ("b", "7")]));
    let _second = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    assert_eq!(super::next(&mut events).await, "*a");
    watch.send(says(gone())).unwrap();
    assert_eq!(super::next(&mut events).await, "+b", "nobody heard of the half list, in which a was missing");
}

#[tokio::test(start_paused = true)]
async fn one_poison_object_is_left_out_and_told_of() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).with_unreadable());
    let watch = source.watch();
    let told = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&told);
    let informer = SharedInformer::builder(source.clone())
        .on_error(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
        .build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    watch.send(Err(Error::new(ErrorKind::Decode, "poison"))).unwrap();
    watch.send(added("b", "6")).unwrap();
    seen(&informer, "6").await;
    assert_eq!(names(&informer), ["a", "b"]);
    assert_eq!(informer.status().decode_errors, 2);
    assert_eq!(told.load(Ordering::Relaxed), 2);
    assert_eq!(source.asked().len(), 2, "it needs neither another list nor another watch");
}

#[tokio::test(start_paused = true)]
async fn events_that_come_twice_or_late_change_nothing() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3")]));
    let watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    for said in [modified("a", "7"), modified("a", "6"), modified("a", "7"), deleted("a", "4"), added("b", "8")] {
        watch.send(said).unwrap();
    }
    assert_eq!(super::next_n(&mut events, 3).await, ["*a", "~a 3>7", "+b"]);
    assert_eq!(names(&informer), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_there_is_waited_for() {
    let source = Source::default();
    for _ in 0..8 {
        source.list_fails(Error::from(Status::not_found(&GroupResource::from("widgets"), "")));
    }
    source.list(Page::new("5", &[("a", "1")]));
    let informer = started(&source);
    let mut states = informer.states();
    within(states.wait_for(|state| *state == InformerState::NotServed)).await.unwrap();
    let start = Instant::now();
    within(informer.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(8 * 11), "a kind may come at any moment");
    assert_eq!(informer.status().state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_allowed_can_see_why() {
    let source = Source::default();
    source.list_fails(failure(403, StatusReason::Forbidden));
    let informer = started(&source);
    let mut states = informer.states();
    within(states.wait_for(|state| *state == InformerState::Denied)).await.unwrap();
    assert!(informer.status().last_error.unwrap().contains("no"));
    assert!(!informer.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_of_a_server_that_sends_bookmarks_is_given_up() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let first = source.watch();
    let second = source.watch();
    let informer = started(&source);
    first.send(bookmark("6", false)).unwrap();
    seen(&informer, "6").await;
    let start = Instant::now();
    second.send(added("a", "7")).unwrap();
    seen(&informer, "7").await;
    let waited = start.elapsed().as_secs();
    assert!((179..=182).contains(&waited), "{waited}");
    assert_eq!(source.asked(), ["list any 500", "watch @5", "watch @6"]);
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_end_in_its_time_is_given_up() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let _first = source.watch();
    let _second = source.watch();
    let start = Instant::now();
    let _informer = started(&source);
    asked(&source, 3).await;
    let waited = start.elapsed().as_secs();
    assert!((330..=631).contains(&waited), "five to ten minutes, and half a minute of grace: {waited}");
}

fn watch_list(source: &Source) -> SharedInformer<ConfigMap> {
    let informer = SharedInformer::builder(source.clone()).first_read(FirstRead::WatchList).build();
    informer.start();
    informer
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_begin_with_the_state_and_goes_on_by_itself() {
    let source = Source::default();
    let watch = source.watch();
    let informer = watch_list(&source);
    let mut events = informer.events();
    for said in [added("a", "3"), added("b", "4"), modified("a", "6"), deleted("b", "7"), bookmark("7", true)] {
        watch.send(said).unwrap();
    }
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["a"]);
    watch.send(added("c", "8")).unwrap();
    assert_eq!(super::next_n(&mut events, 2).await, ["*a", "+c"]);
    assert_eq!(source.asked(), ["initial newest"]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_that_do_not_come_are_replaced_by_a_list_from_then_on() {
    let source = Source::default();
    let _silent = source.watch();
    source.list(Page::new("5", &[("a", "1")]));
    source.watch_fails(Error::from(gone()));
    source.list(Page::new("6", &[("a", "1")]));
    let _watch = source.watch();
    let start = Instant::now();
    let informer = watch_list(&source);
    seen(&informer, "6").await;
    assert!((30..32).contains(&start.elapsed().as_secs()));
    assert_eq!(source.asked()[..4], ["initial newest", "list any 500", "watch @5", "list >=5 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_initial_events_is_listed_at_once() {
    let source = Source::default();
    source.watch_fails(failure(422, StatusReason::Invalid));
    source.list(Page::new("5", &[]));
    let start = Instant::now();
    let informer = watch_list(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_among_its_initial_events_is_replaced_by_a_list() {
    let source = Source::default();
    let first = source.watch();
    first.send(added("a", "3")).unwrap();
    drop(first);
    source.list(Page::new("5", &[("b", "4")]));
    let informer = watch_list(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["b"], "what came before the break counts for nothing");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_is_an_error_and_not_a_loop() {
    let source = Source::default();
    source.list(Page::new("", &[]));
    source.list(Page::new("5", &[]));
    let start = Instant::now();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(800));
}
