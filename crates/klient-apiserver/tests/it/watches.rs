//! Watches: every change once and in order, or an error.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, Client, Patch, WatchEvent, object::ResourceVersion, options::WatchOptions};
use klient_apiserver::ApiServer;
use serde_json::json;

use crate::server::{client, started};

fn map(name: &str, label: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": label}}})).unwrap()
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn told(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(object) => format!("+{}", object.metadata.name.as_deref().unwrap()),
        WatchEvent::Modified(object) => format!("~{}", object.metadata.name.as_deref().unwrap()),
        WatchEvent::Deleted(object) => format!("-{}", object.metadata.name.as_deref().unwrap()),
        WatchEvent::Bookmark(bookmark) => format!("={}", bookmark.initial_events_end),
        WatchEvent::Error(status) => format!("!{}", status.code),
    }
}

#[tokio::test]
async fn watch_continues_from_list_version() {
    for client in [started().await, started().await.to_builder().json_only().build()] {
        let maps = maps(&client);
        maps.create(&map("a", "x")).await.unwrap();
        let version = maps.list().await.unwrap().resource_version();
        maps.create(&map("b", "x")).await.unwrap();
        let mut watch = maps.watch().after(version).await.unwrap();
        let patch = Patch::merge(json!({"data": {"k": "v"}}));
        maps.patch("a", patch.clone()).await.unwrap();
        maps.delete("b").await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(told(&watch.next().await.unwrap().unwrap()));
        }
        assert_eq!(seen, ["+b", "~a", "-b"]);
    }
}

#[tokio::test]
async fn watch_reports_objects_entering_and_leaving_selection() {
    let client = started().await;
    let maps = maps(&client);
    maps.create(&map("a", "x")).await.unwrap();
    let version = maps.list().await.unwrap().resource_version();
    let mut watch = maps.watch().after(version).labels("app=y").await.unwrap();
    for label in ["y", "y2", "y"] {
        let patch = Patch::merge(json!({"metadata": {"labels": {"app": label}}}));
        maps.patch("a", patch.clone()).await.unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = watch.next().await.unwrap().unwrap();
        if let WatchEvent::Deleted(object) = &event {
            assert_eq!(object.metadata.labels.as_ref().unwrap()["app"], "y");
        }
        seen.push(told(&event));
    }
    assert_eq!(seen, ["+a", "-a", "+a"]);
}

#[tokio::test]
async fn watch_sends_initial_events_and_their_end() {
    let client = started().await;
    let maps = maps(&client);
    for name in ["a", "b"] {
        maps.create(&map(name, "x")).await.unwrap();
    }
    let mut watch = maps.watch().initial_events().await.unwrap();
    maps.create(&map("c", "x")).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(told(&watch.next().await.unwrap().unwrap()));
    }
    assert_eq!(seen, ["+a", "+b", "=true", "+c"]);
}

#[tokio::test]
async fn watch_reports_expired_version_in_stream() {
    let server = ApiServer::start().await.unwrap();
    let maps = maps(&client(&server));
    let version = maps.list().await.unwrap().resource_version();
    for name in ["a", "b"] {
        maps.create(&map(name, "x")).await.unwrap();
    }
    server.compact();
    let mut watch = maps.watch().after(version).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Error(status))) if status.is_expired()));
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn watch_sends_bookmarks_and_ends_on_time() {
    let server = ApiServer::builder().bookmark_every(Duration::from_secs(10)).start().await.unwrap();
    let maps = maps(&client(&server));
    let options = WatchOptions::after(ResourceVersion::from(server.revision().to_string()));
    let options = options.bookmarks().timeout(Duration::from_secs(25));
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(told(&event.unwrap()));
    }
    assert_eq!(seen, ["=false", "=false"]);
}
