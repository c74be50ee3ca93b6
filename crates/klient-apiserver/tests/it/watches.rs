//! Watches see every change once, in order, and are told when they cannot.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Patch, WatchEvent,
    object::ResourceVersion,
    options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, WatchOptions},
};
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
async fn a_watch_goes_on_where_a_list_ended() {
    for client in [started().await, started().await.to_builder().json_only().build()] {
        let maps = maps(&client);
        maps.create(&CreateOptions::default(), &map("a", "x")).await.unwrap();
        let version = maps.list(&ListOptions::default()).await.unwrap().resource_version();
        maps.create(&CreateOptions::default(), &map("b", "x")).await.unwrap();
        let mut watch = maps.watch(&WatchOptions::after(version)).await.unwrap();
        let patch = Patch::Merge(json!({"data": {"k": "v"}}));
        maps.patch("a", &PatchOptions::default(), &patch).await.unwrap();
        maps.delete("b", &DeleteOptions::default()).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(told(&watch.next().await.unwrap().unwrap()));
        }
        assert_eq!(seen, ["+b", "~a", "-b"]);
    }
}

#[tokio::test]
async fn an_object_enters_and_leaves_what_is_selected() {
    let client = started().await;
    let maps = maps(&client);
    maps.create(&CreateOptions::default(), &map("a", "x")).await.unwrap();
    let version = maps.list(&ListOptions::default()).await.unwrap().resource_version();
    let mut watch = maps.watch(&WatchOptions::after(version).label_selector("app=y")).await.unwrap();
    for label in ["y", "y2", "y"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": label}}}));
        maps.patch("a", &PatchOptions::default(), &patch).await.unwrap();
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
async fn the_state_comes_first_and_its_end_is_marked() {
    let client = started().await;
    let maps = maps(&client);
    for name in ["a", "b"] {
        maps.create(&CreateOptions::default(), &map(name, "x")).await.unwrap();
    }
    let mut watch = maps.watch(&WatchOptions::initial_events()).await.unwrap();
    maps.create(&CreateOptions::default(), &map("c", "x")).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(told(&watch.next().await.unwrap().unwrap()));
    }
    assert_eq!(seen, ["+a", "+b", "=true", "+c"]);
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_told_in_the_stream() {
    let server = ApiServer::start().await.unwrap();
    let maps = maps(&client(&server));
    let version = maps.list(&ListOptions::default()).await.unwrap().resource_version();
    for name in ["a", "b"] {
        maps.create(&CreateOptions::default(), &map(name, "x")).await.unwrap();
    }
    server.compact();
    let mut watch = maps.watch(&WatchOptions::after(version)).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Error(status))) if status.is_expired()));
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_in_time_and_the_watch_ends_in_time() {
    let server = ApiServer::builder().bookmark_every(Duration::from_secs(10)).start().await.unwrap();
    let maps = maps(&client(&server));
    let options = WatchOptions::after(ResourceVersion::from(server.revision().to_string()));
    let options = options.allow_bookmarks(true).timeout(Duration::from_secs(25));
    let mut watch = maps.watch(&options).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(told(&event.unwrap()));
    }
    assert_eq!(seen, ["=false", "=false"]);
}
