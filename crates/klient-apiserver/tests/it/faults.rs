//! Injected faults, as clients see them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, ErrorKind, WatchEvent, object::ResourceVersion, options::WatchOptions, status::Status, wire::ManagedFields,
};
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
async fn status_fault_responds_without_handling_request() {
    let (server, maps) = started().await;
    let before = server.revision();
    for (fault, kind, code) in [
        (Fault::conflict(), ErrorKind::Conflict, 409),
        (Fault::gone(), ErrorKind::Gone, 410),
        (Fault::respond(Status::unauthorized("who")), ErrorKind::Unauthorized, 401),
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
async fn client_waits_as_long_as_429_says() {
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
async fn delay_fault_handles_request_after_delay() {
    let (server, maps) = started().await;
    server.inject(Fault::delay(Duration::from_secs(9)).times(1));
    let start = Instant::now();
    maps.create(&map("a")).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
    maps.get("a").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn silence_fault_lasts_until_client_times_out() {
    let (server, maps) = started().await;
    server.inject(Fault::silence().times(1));
    let error = maps.create(&map("a")).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn damaged_response_does_not_undo_write() {
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
async fn damage_after_end_of_body_has_no_effect() {
    let (server, maps) = started().await;
    for fault in [Fault::cut_after(1 << 20), Fault::stall_after(1 << 20), Fault::corrupt_at(1 << 20)] {
        server.inject(fault.times(1));
        assert!(maps.list().await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn cut_fault_breaks_watch_within_event() {
    let (server, maps) = started().await;
    let client = maps.client().to_builder().json_only().managed_fields(ManagedFields::Keep).build();
    let maps = Api::<ConfigMap>::namespaced(client, "default");
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
async fn stalled_watch_neither_sends_nor_ends() {
    let (server, maps) = started().await;
    server.inject(Fault::stall_after(0).on_watches(true));
    let version = ResourceVersion::from(server.revision().to_string());
    let mut watch = maps.watch().after(version).timeout(Duration::from_secs(5)).await.unwrap();
    maps.create(&map("a")).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(60), watch.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn watch_ends_without_bookmarks_if_suppressed() {
    let (server, maps) = started().await;
    server.inject(Fault::no_bookmarks());
    let version = ResourceVersion::from(server.revision().to_string());
    let options = WatchOptions::after(version).bookmarks().timeout(Duration::from_secs(600));
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    assert!(watch.next().await.is_none());
    // Other requests are not affected.
    maps.list().await.unwrap();
    server.clear_faults();
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Bookmark(_)))));
}

#[tokio::test]
async fn filters_select_requests() {
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
async fn fault_skips_and_limits_matching_requests() {
    let (server, maps) = started().await;
    server.inject(Fault::conflict().on_method(Method::GET).after(2).times(2));
    let mut seen = Vec::new();
    for _ in 0..6 {
        // Requests that do not match are not counted.
        maps.create(&map(&format!("m{}", seen.len()))).await.unwrap();
        seen.push(maps.list().await.is_ok());
    }
    assert_eq!(seen, [true, true, false, false, true, true]);
    server.inject(Fault::conflict().times(0));
    maps.list().await.unwrap();
}

#[tokio::test]
async fn first_matching_fault_applies() {
    let (server, maps) = started().await;
    server.inject(Fault::conflict().on_method(Method::PUT));
    server.inject(Fault::gone().times(1));
    server.inject(Fault::conflict().times(1));
    assert!(maps.list().await.unwrap_err().is_gone());
    assert!(maps.list().await.unwrap_err().is_conflict());
    maps.list().await.unwrap();
}

#[tokio::test]
async fn requests_are_counted_by_method_and_path() {
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
async fn concurrent_requests_share_limit_of_fault() {
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
async fn ended_watches_resume_from_their_version() {
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
