//! The requests of a reflector, and the events that lead to them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Error, ErrorKind, SharedInformer,
    informer::{FirstRead, InformerState, RelistReason},
    resource::GroupResource,
    status::{Status, StatusReason},
};
use tokio::time::Instant;

use super::{
    source::{Page, Source, added, bookmark, broken, deleted, error_event, modified},
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

/// Waits until the source has received so many requests.
async fn requests(source: &Source, count: usize) -> Vec<String> {
    within(async {
        while source.requests().len() < count {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    source.requests()
}

fn expired() -> Status {
    Status::expired("too old")
}

fn failure(code: u16, reason: StatusReason) -> Error {
    Error::from(Status::failure(reason, code, "no"))
}

#[tokio::test(start_paused = true)]
async fn reflector_lists_any_version_and_watches_from_it() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3")]));
    let _watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(requests(&source, 2).await, ["list any 500", "watch @5"]);
    assert_eq!(names(&informer), ["a"]);
    assert_eq!(informer.store().resource_version().as_str(), "5");
}

#[tokio::test(start_paused = true)]
async fn consistent_first_read_lists_most_recent_version() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let informer = SharedInformer::builder(source.clone()).consistent_first_read(true).build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(requests(&source, 2).await[0], "list newest 500");
}

#[tokio::test(start_paused = true)]
async fn reflector_resumes_closed_watch_without_list() {
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
    assert_eq!(source.requests(), ["list any 500", "watch @5", "watch @9"]);
    assert_eq!(informer.status().relists, [(RelistReason::Initial, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn reflector_relists_after_410_in_stream() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3"), ("b", "4")]));
    let first = source.watch();
    source.list(Page::new("9", &[("b", "4"), ("c", "8")]));
    let _second = source.watch();
    let informer = started(&source);
    first.send(error_event(expired())).unwrap();
    seen(&informer, "9").await;
    assert_eq!(requests(&source, 4).await, ["list any 500", "watch @5", "list >=5 0", "watch @9"]);
    assert_eq!(names(&informer), ["b", "c"]);
    assert_eq!(informer.status().relists[&RelistReason::Expired], 1);
}

#[tokio::test(start_paused = true)]
async fn reflector_relists_after_410_response() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    source.watch_fails(Error::from(expired()));
    source.list(Page::new("9", &[]));
    let _watch = source.watch();
    let informer = started(&source);
    seen(&informer, "9").await;
    assert_eq!(requests(&source, 4).await, ["list any 500", "watch @5", "list >=5 0", "watch @9"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_lists_most_recent_if_version_is_unavailable() {
    for trouble in [Error::from(expired()), Error::from(Status::version_too_large(5, 4, 1))] {
        let source = Source::default();
        source.list(Page::new("5", &[]));
        source.watch_fails(Error::from(expired()));
        source.list_fails(trouble);
        source.list(Page::new("9", &[]));
        let _watch = source.watch();
        let start = Instant::now();
        let informer = started(&source);
        seen(&informer, "9").await;
        assert!(start.elapsed() < Duration::from_millis(100), "there is no delay");
        let expected = ["list any 500", "watch @5", "list >=5 0", "list newest 500", "watch @9"];
        assert_eq!(requests(&source, 5).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_reads_all_pages() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).continues("x"));
    source.list(Page::new("5", &[("b", "2")]).continues("y"));
    source.list(Page::new("5", &[("c", "3")]));
    let watch = source.watch();
    source.list(Page::new("9", &[]));
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["a", "b", "c"]);
    watch.send(error_event(expired())).unwrap();
    seen(&informer, "9").await;
    let expected = ["list any 500", "page x 500", "page y 500", "watch @5", "list >=5 500"];
    assert_eq!(
        source.requests()[..5],
        expected,
        "a server that pages lists of any version gets requests for pages again"
    );
}

#[tokio::test(start_paused = true)]
async fn reflector_lists_without_pages_after_expired_page() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).continues("x"));
    source.list_fails(Error::from(expired()));
    source.list(Page::new("7", &[("b", "2")]));
    let _watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["b"]);
    assert_eq!(requests(&source, 4).await, ["list any 500", "page x 500", "list newest 0", "watch @7"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_honours_retry_after_without_list() {
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
    watch.send(error_event(Status::too_many_requests("busy", 30))).unwrap();
    second.send(added("b", "7")).unwrap();
    seen(&informer, "7").await;
    assert!(start.elapsed() >= Duration::from_secs(50));
    assert_eq!(source.requests(), ["list any 500", "watch @5", "watch @5", "watch @6"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_backs_off_from_unreachable_server_without_list() {
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
    assert!(source.requests()[1..].iter().all(|request| request == "watch @5"));
    assert_eq!(informer.status().state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn reflector_relists_after_repeated_empty_watches() {
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
    assert!(start.elapsed() > Duration::from_secs(10), "retries are paced");
    assert_eq!(informer.status().relists[&RelistReason::NoProgress], 1);
}

#[tokio::test(start_paused = true)]
async fn reflector_reconnects_at_once_after_working_watch() {
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
    assert_eq!(source.requests(), ["list any 500", "watch @5", "watch @6"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_discards_incomplete_list() {
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
    watch.send(error_event(expired())).unwrap();
    assert_eq!(super::next(&mut events).await, "+b", "the incomplete list without a had no effect");
}

#[tokio::test(start_paused = true)]
async fn reflector_reports_unreadable_objects_and_events() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "1")]).with_unreadable());
    let watch = source.watch();
    let reported = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&reported);
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
    assert_eq!(reported.load(Ordering::Relaxed), 2);
    assert_eq!(source.requests().len(), 2, "the watch is followed until the relist is due");
}

#[tokio::test(start_paused = true)]
async fn reflector_paces_relists_while_every_watch_expires() {
    for in_stream in [false, true] {
        let source = Source::default();
        for version in 0..1000 {
            source.list(Page::new(&(100 + version).to_string(), &[("a", "3")]));
            if in_stream {
                source.watch().send(error_event(expired())).unwrap();
            } else {
                source.watch_fails(Error::from(expired()));
            }
        }
        let reported = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&reported);
        let informer = SharedInformer::builder(source.clone())
            .on_error(move |error| {
                assert!(error.is_gone());
                counter.fetch_add(1, Ordering::Relaxed);
            })
            .build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(source.requests().len(), 4, "the first relist is immediate, the second is not");
        assert!(matches!(informer.status().state, InformerState::Stale { .. }), "{:?}", informer.status().state);
        tokio::time::sleep(Duration::from_secs(120)).await;
        let requests = source.requests().len();
        assert!((8..24).contains(&requests), "{requests} requests in two minutes");
        assert_eq!(reported.load(Ordering::Relaxed) as usize, requests / 2 - 1, "all but the first are reported");
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_relists_at_once_after_a_watch_with_progress() {
    let source = Source::default();
    let script = |version: usize| {
        source.list(Page::new(&version.to_string(), &[]));
        (version, source.watch())
    };
    let rounds: Vec<_> = (1..=6).map(|round| script(10 * round)).collect();
    let informer = started(&source);
    for (round, (version, watch)) in rounds.into_iter().take(5).enumerate() {
        watch.send(added("a", &(version + 1).to_string())).unwrap();
        seen(&informer, &(version + 1).to_string()).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = Instant::now();
        watch.send(error_event(expired())).unwrap();
        requests(&source, 2 * (round + 1) + 1).await;
        assert!(before.elapsed() < Duration::from_millis(200), "{:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_lists_after_store_read_error_in_stream() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3")]));
    let watch = source.watch();
    source.list(Page::new("9", &[("b", "8")]));
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    watch.send(error_event(Status::failure(StatusReason::StoreReadError, 500, "corrupt object"))).unwrap();
    seen(&informer, "9").await;
    assert_eq!(names(&informer), ["b"]);
    assert_eq!(source.requests()[2], "list >=5 0");
}

#[tokio::test(start_paused = true)]
async fn watch_list_falls_back_to_a_list_after_most_errors() {
    for (code, reason) in [
        (500, StatusReason::InternalError),
        (503, StatusReason::ServiceUnavailable),
        (404, StatusReason::NotFound),
        (403, StatusReason::Forbidden),
    ] {
        for in_stream in [false, true] {
            let source = Source::default();
            if in_stream {
                source.watch().send(error_event(Status::failure(reason.clone(), code, "no"))).unwrap();
            } else {
                source.watch_fails(failure(code, reason.clone()));
            }
            source.list(Page::new("5", &[("a", "3")]));
            let informer = SharedInformer::builder(source.clone()).first_read(FirstRead::WatchList).build();
            let before = Instant::now();
            informer.start();
            within(informer.wait_for_sync()).await.unwrap();
            assert_eq!(before.elapsed(), Duration::ZERO, "the list is not delayed");
            assert_eq!(requests(&source, 3).await, ["initial newest", "list any 500", "watch @5"], "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watch_list_is_retried_after_429_and_refused_connection() {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let refused = Error::new(ErrorKind::Transport, "cannot connect").with_source(refused);
    for error in [failure(429, StatusReason::TooManyRequests), refused] {
        let source = Source::default();
        source.watch_fails(error);
        source.watch().send(bookmark("5", true)).unwrap();
        let informer = SharedInformer::builder(source.clone()).first_read(FirstRead::WatchList).build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        assert_eq!(source.requests()[..2], ["initial newest", "initial newest"]);
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_ignores_duplicate_and_late_events() {
    let source = Source::default();
    source.list(Page::new("5", &[("a", "3")]));
    let watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    for sent in [modified("a", "7"), modified("a", "6"), modified("a", "7"), deleted("a", "4"), added("b", "8")] {
        watch.send(sent).unwrap();
    }
    assert_eq!(super::next_n(&mut events, 3).await, ["*a", "~a 3>7", "+b"]);
    assert_eq!(names(&informer), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_deletes_objects_with_versions_that_are_not_numbers() {
    let source = Source::default();
    source.list(Page::new("v-5", &[("a", "v-3")]));
    let watch = source.watch();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    let mut events = informer.events();
    for sent in [modified("a", "v-6"), deleted("a", "v-7"), added("b", "v-8")] {
        watch.send(sent).unwrap();
    }
    assert_eq!(super::next_n(&mut events, 4).await, ["*a", "~a v-3>v-6", "-a", "+b"]);
    assert_eq!(names(&informer), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn reflector_waits_for_kind_that_is_not_served() {
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
    assert!(start.elapsed() < Duration::from_secs(8 * 11), "the delay for a kind that is not served is limited");
    assert_eq!(informer.status().state, InformerState::Synced);
}

#[tokio::test(start_paused = true)]
async fn status_shows_denied_access() {
    let source = Source::default();
    source.list_fails(failure(403, StatusReason::Forbidden));
    let informer = started(&source);
    let mut states = informer.states();
    within(states.wait_for(|state| *state == InformerState::Denied)).await.unwrap();
    assert!(informer.status().last_error.unwrap().contains("no"));
    assert!(!informer.has_synced());
}

#[tokio::test(start_paused = true)]
async fn reflector_reopens_silent_watch_after_bookmarks() {
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
    assert_eq!(source.requests(), ["list any 500", "watch @5", "watch @6"]);
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn reflector_reopens_watch_that_exceeds_its_timeout() {
    let source = Source::default();
    source.list(Page::new("5", &[]));
    let _first = source.watch();
    let _second = source.watch();
    let start = Instant::now();
    let _informer = started(&source);
    requests(&source, 3).await;
    let waited = start.elapsed().as_secs();
    assert!((330..=631).contains(&waited), "five to ten minutes, and half a minute of grace: {waited}");
}

fn watch_list(source: &Source) -> SharedInformer<ConfigMap> {
    let informer = SharedInformer::builder(source.clone()).first_read(FirstRead::WatchList).build();
    informer.start();
    informer
}

#[tokio::test(start_paused = true)]
async fn watch_list_syncs_and_follows_one_watch() {
    let source = Source::default();
    let watch = source.watch();
    let informer = watch_list(&source);
    let mut events = informer.events();
    for sent in [added("a", "3"), added("b", "4"), modified("a", "6"), deleted("b", "7"), bookmark("7", true)] {
        watch.send(sent).unwrap();
    }
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["a"]);
    watch.send(added("c", "8")).unwrap();
    assert_eq!(super::next_n(&mut events, 2).await, ["*a", "+c"]);
    assert_eq!(source.requests(), ["initial newest"]);
}

#[tokio::test(start_paused = true)]
async fn watch_list_falls_back_to_list_after_deadline() {
    let source = Source::default();
    let _silent = source.watch();
    source.list(Page::new("5", &[("a", "1")]));
    source.watch_fails(Error::from(expired()));
    source.list(Page::new("6", &[("a", "1")]));
    let _watch = source.watch();
    let start = Instant::now();
    let informer = watch_list(&source);
    seen(&informer, "6").await;
    assert!((30..32).contains(&start.elapsed().as_secs()));
    assert_eq!(source.requests()[..4], ["initial newest", "list any 500", "watch @5", "list >=5 0"]);
}

#[tokio::test(start_paused = true)]
async fn watch_list_falls_back_to_list_if_refused() {
    let source = Source::default();
    source.watch_fails(failure(422, StatusReason::Invalid));
    source.list(Page::new("5", &[]));
    let start = Instant::now();
    let informer = watch_list(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn watch_list_falls_back_to_list_if_cut() {
    let source = Source::default();
    let first = source.watch();
    first.send(added("a", "3")).unwrap();
    drop(first);
    source.list(Page::new("5", &[("b", "4")]));
    let informer = watch_list(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(names(&informer), ["b"], "events before the cut are discarded");
}

#[tokio::test(start_paused = true)]
async fn reflector_retries_list_without_version() {
    let source = Source::default();
    source.list(Page::new("", &[]));
    source.list(Page::new("5", &[]));
    let start = Instant::now();
    let informer = started(&source);
    within(informer.wait_for_sync()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(800));
}
