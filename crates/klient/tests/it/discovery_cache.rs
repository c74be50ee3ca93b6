//! The discovery cache in memory and on disk, and when it queries the server again.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use klient::{
    ErrorKind,
    client::discovery::{CachedDiscovery, DiskCache},
};
use serde_json::json;

use crate::{
    offered::{core, discovery, in_memory, named, served, served_legacy, tagged},
    support::routed::Routed,
    support::scripted::{Step, response},
};

/// A server that fails while the flag is set.
fn breakable() -> (Arc<Routed>, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&broken);
    let server =
        Routed::new(
            move |request| {
                if flag.load(Ordering::SeqCst) { response(500, "text/plain", "down") } else { served(request) }
            },
        );
    (server, broken)
}

fn on_disk(server: &Arc<Routed>, folder: &tempfile::TempDir) -> CachedDiscovery {
    CachedDiscovery::on_disk(discovery(server), DiskCache::new(folder.path()))
}

fn tags(server: &Routed) -> Vec<Option<String>> {
    let tag = |request: &http::Request<bytes::Bytes>| {
        request.headers().get("if-none-match").map(|value| value.to_str().unwrap().to_owned())
    };
    let mut tags: Vec<_> = server.seen().iter().map(tag).collect();
    tags.sort();
    tags
}

fn both_tags() -> Vec<Option<String>> {
    vec![Some("\"core\"".to_owned()), Some("\"named\"".to_owned())]
}

#[tokio::test]
async fn concurrent_callers_share_one_discovery() {
    let server = Routed::new(served);
    let cached = in_memory(&server);
    assert!(!cached.is_fresh());
    let held = server.gate.write().await;
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let cached = cached.clone();
            tokio::spawn(async move { cached.apis().await.unwrap() })
        })
        .collect();
    server.asked(2).await;
    drop(held);
    let mut results = Vec::new();
    for caller in callers {
        results.push(caller.await.unwrap());
    }
    assert!(results.iter().all(|apis| Arc::ptr_eq(apis, &results[0])));
    assert_eq!(server.paths(), ["/api", "/apis"]);
    assert!(cached.is_fresh());
    cached.apis().await.unwrap();
    assert_eq!(server.paths(), [""; 0]);
}

#[tokio::test]
async fn canceled_discovery_is_repeated_by_the_next_caller() {
    let server = Routed::new(served);
    let cached = in_memory(&server);
    let held = server.gate.write().await;
    let first = tokio::spawn({
        let cached = cached.clone();
        async move { cached.apis().await.map(|_| ()) }
    });
    server.asked(2).await;
    let second = tokio::spawn({
        let cached = cached.clone();
        async move { cached.apis().await.unwrap().resources().count() }
    });
    tokio::task::yield_now().await;
    first.abort();
    drop(held);
    assert_eq!(second.await.unwrap(), 8);
}

#[tokio::test]
async fn discovery_error_is_not_cached() {
    let (server, broken) = breakable();
    let cached = in_memory(&server);
    broken.store(true, Ordering::SeqCst);
    assert!(cached.apis().await.unwrap_err().is_unavailable());
    assert!(!cached.is_fresh());
    broken.store(false, Ordering::SeqCst);
    assert_eq!(cached.apis().await.unwrap().resources().count(), 8);
}

#[tokio::test]
async fn unchanged_documents_are_not_sent_again() {
    let server = Routed::new(served);
    let cached = in_memory(&server);
    let first = cached.apis().await.unwrap();
    assert_eq!(tags(&server), [None, None]);
    cached.invalidate();
    assert!(!cached.is_fresh());
    let second = cached.apis().await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert!(cached.is_fresh());
    assert_eq!(tags(&server), both_tags());
}

#[tokio::test]
async fn changed_document_replaces_only_its_own_root() {
    let changed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&changed);
    let server = Routed::new(move |request| match request.uri().path() {
        "/apis" if flag.load(Ordering::SeqCst) => {
            let mut less = named();
            less["items"].as_array_mut().unwrap().pop();
            tagged(request, "\"less\"", &less)
        }
        _ => served(request),
    });
    let cached = in_memory(&server);
    let first = cached.apis().await.unwrap();
    changed.store(true, Ordering::SeqCst);
    let second = cached.refresh().await.unwrap();
    assert_eq!(second.resources().count(), 7);
    assert!(Arc::ptr_eq(&first.groups[0], &second.groups[0]));
}

#[tokio::test]
async fn failed_refresh_keeps_the_cache() {
    let (server, broken) = breakable();
    let cached = in_memory(&server);
    cached.apis().await.unwrap();
    broken.store(true, Ordering::SeqCst);
    assert!(cached.refresh().await.unwrap_err().is_unavailable());
    assert_eq!(cached.apis().await.unwrap().resources().count(), 8);
    // An invalidated cache is not used any more.
    cached.invalidate();
    assert!(cached.apis().await.unwrap_err().is_unavailable());
    broken.store(false, Ordering::SeqCst);
    assert_eq!(cached.apis().await.unwrap().resources().count(), 8);
}

#[tokio::test]
async fn discovery_cache_refetches_if_invalidated_during_fetch() {
    let server = Routed::new(served);
    let cached = in_memory(&server);
    let held = server.gate.write().await;
    let asking = tokio::spawn({
        let cached = cached.clone();
        async move { cached.apis().await.map(|_| ()) }
    });
    server.asked(2).await;
    cached.invalidate();
    drop(held);
    asking.await.unwrap().unwrap();
    assert!(!cached.is_fresh());
    server.seen();
    cached.apis().await.unwrap();
    assert_eq!(server.paths(), ["/api", "/apis"]);
    assert!(cached.is_fresh());
}

#[tokio::test(start_paused = true)]
async fn failed_group_versions_are_requested_again_later() {
    let down = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&down);
    let server = Routed::new(move |request| {
        let down = flag.load(Ordering::SeqCst) && request.uri() == "/apis/example.com/v1";
        if down { response(503, "text/plain", "down") } else { served_legacy(request) }
    });
    let cached = in_memory(&server);
    assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
    server.seen();
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
    assert_eq!(server.paths(), [""; 0]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
    assert_eq!(server.paths().len(), 7);
    down.store(false, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(cached.apis().await.unwrap().resources().count(), 8);
    server.seen();
    tokio::time::advance(Duration::from_secs(1000)).await;
    cached.apis().await.unwrap();
    assert_eq!(server.paths(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn partial_result_is_kept_while_the_server_is_down() {
    let state = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&state);
    let server = Routed::new(move |request| {
        if flag.load(Ordering::SeqCst) {
            return Step::Respond(response(500, "text/plain", "down"));
        }
        let mut half = named();
        half["items"][0]["versions"][0]["freshness"] = json!("Stale");
        if request.uri() == "/apis" { tagged(request, "\"half\"", &half).into() } else { served(request).into() }
    });
    let cached = in_memory(&server);
    assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
    state.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
        // Requested once, and then not for a while.
        assert!(!server.seen().is_empty());
        assert_eq!(cached.apis().await.unwrap().failures.len(), 1);
        assert!(server.seen().is_empty());
    }
}

#[tokio::test]
async fn disk_cache_is_used_by_the_next_program() {
    for serve in [served, served_legacy] {
        let folder = tempfile::tempdir().unwrap();
        let server = Routed::new(serve);
        let first = on_disk(&server, &folder);
        let apis = first.apis().await.unwrap();
        assert!(first.is_fresh());
        server.seen();

        let second = on_disk(&server, &folder);
        assert_eq!(second.apis().await.unwrap(), apis);
        assert!(!second.is_fresh());
        assert_eq!(server.paths(), [""; 0]);
    }
}

#[tokio::test]
async fn old_or_invalidated_file_is_revalidated_with_its_etag() {
    let folder = tempfile::tempdir().unwrap();
    let server = Routed::new(served);
    let apis = on_disk(&server, &folder).apis().await.unwrap();
    server.seen();

    let old = CachedDiscovery::on_disk(discovery(&server), DiskCache::new(folder.path()).max_age(Duration::ZERO));
    assert_eq!(old.apis().await.unwrap(), apis);
    assert_eq!(tags(&server), both_tags());

    let wrong = on_disk(&server, &folder);
    wrong.invalidate();
    assert_eq!(wrong.apis().await.unwrap(), apis);
    assert_eq!(tags(&server), both_tags());
    assert!(wrong.is_fresh());
}

#[tokio::test]
async fn damaged_file_is_requested_in_full_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let server = Routed::new(served);
    let apis = on_disk(&server, &folder).apis().await.unwrap();
    let file = folder.path().join("apis.json");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    server.seen();
    assert_eq!(on_disk(&server, &folder).apis().await.unwrap(), apis);
    assert_eq!(tags(&server), [None]);
    on_disk(&server, &folder).apis().await.unwrap();
    assert_eq!(server.paths(), [""; 0]);
}

#[tokio::test]
async fn unwritable_cache_directory_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let server = Routed::new(served);
    let cached = CachedDiscovery::on_disk(discovery(&server), DiskCache::new(file.join("cache")));
    assert_eq!(cached.apis().await.unwrap().resources().count(), 8);
    cached.apis().await.unwrap();
    assert_eq!(server.paths(), ["/api", "/apis"]);
}

#[tokio::test]
async fn failures_are_stored_in_the_disk_cache() {
    let folder = tempfile::tempdir().unwrap();
    let server = Routed::new(|request| {
        if request.uri() == "/apis/apps/v1" { response(503, "text/plain", "down") } else { served_legacy(request) }
    });
    on_disk(&server, &folder).apis().await.unwrap();
    let next = on_disk(&server, &folder).apis().await.unwrap();
    assert_eq!(next.failures.len(), 1);
    assert_eq!(
        (next.failures[0].group_version.to_string().as_str(), next.failures[0].kind),
        ("apps/v1", ErrorKind::Unavailable)
    );
    assert_eq!(
        next.groups[0].versions[0].resources.len(),
        core()["items"][0]["versions"][0]["resources"].as_array().unwrap().len()
    );
}
