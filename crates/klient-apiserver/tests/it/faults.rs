//! Each fault is seen by a client as what it is, where and as often as it was asked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, ErrorKind, WatchEvent, object::ResourceVersion, options::WatchOptions, status::Status};
use klient_apiserver::{ApiServer, Fault};
use serde_json::json;
use tokio::time::Instant;

use crate::server::client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

async fn started() -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::start().await.unwrap();
    let maps = Api::namespaced(client(&server), "default");
    (server, maps)
}

fn asked(server: &ApiServer, method: &str, path: &str) -> u64 {
    server.requests().get(&(method.to_owned(), path.to_owned())).copied().unwrap_or_default()
}

#[tokio::test]
async fn answers_are_errors_of_their_kind_and_nothing_is_done() {
    let (server, maps) = started().await;
    let before = server.revision();
    for (fault, kind, code) in [
        (Fault::conflict(), ErrorKind::Conflict, 409),
        (Fault::gone(), ErrorKind::Gone, 410),
        (Fault::answer(Status::unauthorized("who")), ErrorKind::Unauthorized, 401),
    ] {
        server.inject(fault.times(1));
        let error = maps.create(&map("a")).await.unwrap_err();
        assert_eq!((error.kind(), error.status().map(|status| status.code)), (kind, Some(code)), "{error}");
    }
    server.inject(Fault::internal_error().times(1));
    let error = maps.create(&map("a")).await.unwrap_err();
    assert!(error.status().is_some_and(Status::is_internal_error), "{error}");
    assert_eq!(server.revision(), before);
    maps.create(&map("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_says_how_long_to_wait_and_a_client_does() {
    let (server, maps) = started().await;
    server.inject(Fault::too_many_requests(7).times(2));
    let start = Instant::now();
    maps.create(&map("a")).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 14);
    assert_eq!(asked(&server, "POST", MAPS), 3);

    server.inject(Fault::too_many_requests(7));
    let error = maps.get("a").await.unwrap_err();
    assert!(error.is_too_many_requests(), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_waited_for_and_then_the_request_is_done() {
    let (server, maps) = started().await;
    server.inject(Fault::delay(Duration::from_secs(9)).times(1));
    let start = Instant::now();
    maps.create(&map("a")).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
    maps.get("a").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn silence_lasts_until_the_client_gives_up() {
    let (server, maps) = started().await;
    server.inject(Fault::silence().times(1));
    let error = maps.create(&map("a")).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_cut_stalled_or_corrupt_is_done_all_the_same() {
    let (server, maps) = started().await;
    for (name, fault) in
        [("cut", Fault::cut_after(5)), ("stalled", Fault::stall_after(5)), ("corrupt", Fault::corrupt_at(0))]
    {
        server.inject(fault.on_method(Method::POST).times(1));
        let error = maps.create(&map(name)).await.unwrap_err();
        let kind = match name {
            "cut" => ErrorKind::Transport,
            "stalled" => ErrorKind::Timeout,
            _ => ErrorKind::Decode,
        };
        assert_eq!(error.kind(), kind, "{name}: {error}");
        maps.get(name).await.unwrap();
    }
}

#[tokio::test]
async fn damage_behind_the_end_of_an_answer_is_none() {
    let (server, maps) = started().await;
    for fault in [Fault::cut_after(1 << 20), Fault::stall_after(1 << 20), Fault::corrupt_at(1 << 20)] {
        server.inject(fault.times(1));
        assert!(maps.list().await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn a_watch_is_cut_in_the_middle_of_an_event() {
    let (server, maps) = started().await;
    let maps = Api::<ConfigMap>::namespaced(maps.client().to_builder().json_only().build(), "default");
    let version = ResourceVersion::from(server.revision().to_string());
    maps.create(&map("a")).await.unwrap();
    maps.create(&map("b")).await.unwrap();
    let mut whole = maps.watch().after(version.clone()).await.unwrap();
    let first = serde_json::to_string(&whole.next().await.unwrap().unwrap().object().unwrap()).unwrap();
    server.inject(Fault::cut_after(first.len() + 60).on_watches(true).times(1));
    let mut watch = maps.watch().after(version).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    assert!(watch.next().await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stalls_neither_tells_nor_ends() {
    let (server, maps) = started().await;
    server.inject(Fault::stall_after(0).on_watches(true));
    let version = ResourceVersion::from(server.revision().to_string());
    let mut watch = maps.watch().after(version).timeout(Duration::from_secs(5)).await.unwrap();
    maps.create(&map("a")).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(60), watch.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn without_bookmarks_a_watch_only_ends() {
    let (server, maps) = started().await;
    server.inject(Fault::no_bookmarks());
    let version = ResourceVersion::from(server.revision().to_string());
    let options = WatchOptions::after(version).bookmarks().timeout(Duration::from_secs(600));
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    assert!(watch.next().await.is_none());
    // Anything else is not concerned.
    maps.list().await.unwrap();
    server.clear_faults();
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Bookmark(_)))));
}

#[tokio::test]
async fn filters_say_whom_it_hits() {
    let (server, maps) = started().await;
    let others: Api<ConfigMap> = Api::namespaced(maps.client().clone(), "kube-system");
    server.inject(Fault::conflict().on_method(Method::GET).on_path(MAPS).on_watches(false));
    assert!(maps.list().await.unwrap_err().is_conflict());
    assert!(maps.get("a").await.unwrap_err().is_conflict());
    maps.create(&map("a")).await.unwrap();
    others.list().await.unwrap();
    maps.watch().await.unwrap();
    server.clear_faults();
    server.inject(Fault::conflict().on_watches(true));
    assert!(maps.watch().await.unwrap_err().is_conflict());
    maps.list().await.unwrap();
    server.clear_faults();
    server.inject(Fault::conflict().when(|method, target, headers| {
        method == Method::GET && target.contains("labelSelector=a%3Db") && headers.contains_key("accept")
    }));
    assert!(maps.list().labels("a=b").await.unwrap_err().is_conflict());
    maps.list().await.unwrap();
}

#[tokio::test]
async fn it_waits_for_its_turn_and_ends_after_its_times() {
    let (server, maps) = started().await;
    server.inject(Fault::conflict().on_method(Method::GET).after(2).times(2));
    let mut seen = Vec::new();
    for _ in 0..6 {
        // What does not fit does not count.
        maps.create(&map(&format!("m{}", seen.len()))).await.unwrap();
        seen.push(maps.list().await.is_ok());
    }
    assert_eq!(seen, [true, true, false, false, true, true]);
    server.inject(Fault::conflict().times(0));
    maps.list().await.unwrap();
}

#[tokio::test]
async fn the_first_that_fits_is_what_happens() {
    let (server, maps) = started().await;
    server.inject(Fault::conflict().on_method(Method::PUT));
    server.inject(Fault::gone().times(1));
    server.inject(Fault::conflict().times(1));
    assert!(maps.list().await.unwrap_err().is_gone());
    assert!(maps.list().await.unwrap_err().is_conflict());
    maps.list().await.unwrap();
}

#[tokio::test]
async fn requests_are_counted_by_method_and_path_whatever_becomes_of_them() {
    let (server, maps) = started().await;
    assert!(server.requests().is_empty());
    server.inject(Fault::gone().times(1));
    maps.list().await.unwrap_err();
    maps.list().limit(3).await.unwrap();
    maps.create(&map("a")).await.unwrap();
    maps.get("b").await.unwrap_err();
    assert_eq!(asked(&server, "GET", MAPS), 2);
    assert_eq!(asked(&server, "POST", MAPS), 1);
    assert_eq!(asked(&server, "GET", &format!("{MAPS}/b")), 1);
    assert_eq!(server.requests().values().sum::<u64>(), 4);
}

#[tokio::test]
async fn many_at_once_share_the_times_of_a_fault() {
    let (server, maps) = started().await;
    server.inject(Fault::conflict().times(10));
    let failed = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (maps, failed) = (maps.clone(), Arc::clone(&failed));
            tokio::spawn(async move {
                if maps.list().await.is_err() {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(failed.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn all_watches_end_at_once_and_begin_again_where_they_were() {
    let (server, maps) = started().await;
    let first = maps.create(&map("a")).await.unwrap();
    let version = ResourceVersion::from(first.metadata.resource_version.unwrap());
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(maps.watch().after(version.clone()).await.unwrap());
    }
    server.end_watches();
    for watch in &mut watches {
        assert!(watch.next().await.is_none());
    }
    maps.create(&map("b")).await.unwrap();
    let mut again = maps.watch().after(version).await.unwrap();
    assert!(matches!(again.next().await, Some(Ok(WatchEvent::Added(_)))));
}
