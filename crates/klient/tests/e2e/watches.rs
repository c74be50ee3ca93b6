//! Watches, in both encodings.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, Client, Patch, WatchEvent, client::Watch, options::WatchOptions};
use serde_json::json;

use crate::cluster::{client, json_client, namespace, or_skip};

fn name(event: &WatchEvent<ConfigMap>) -> String {
    let name = event.object().and_then(|map| map.metadata.name.as_deref()).unwrap_or_default();
    format!("{} {name}", event.type_name())
}

async fn next(watch: &mut Watch<ConfigMap>) -> WatchEvent<ConfigMap> {
    watch.next().await.expect("the watch continues").unwrap()
}

async fn check(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let version = maps.list().await.unwrap().resource_version();
    let mut watch = maps.watch().after(version.clone()).labels("app=w").await.unwrap();

    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m", "labels": {"app": "w"}}})).unwrap();
    maps.create(&map).await.unwrap();
    assert_eq!(name(&next(&mut watch).await), "ADDED m");
    let merge = |value| Patch::merge(value);
    maps.patch("m", merge(json!({"data": {"a": "b"}})).clone()).await.unwrap();
    assert_eq!(name(&next(&mut watch).await), "MODIFIED m");
    // For this watch, an object that no longer matches is deleted.
    maps.patch("m", merge(json!({"metadata": {"labels": {"app": "x"}}})).clone()).await.unwrap();
    assert_eq!(name(&next(&mut watch).await), "DELETED m");
    maps.patch("m", merge(json!({"metadata": {"labels": {"app": "w"}}})).clone()).await.unwrap();
    assert_eq!(name(&next(&mut watch).await), "ADDED m");

    // The initial state, its end, and then the changes.
    let mut stream = maps.watch().initial_events().labels("app=w").await.unwrap();
    assert_eq!(name(&next(&mut stream).await), "ADDED m");
    assert!(matches!(next(&mut stream).await, WatchEvent::Bookmark(mark) if mark.initial_events_end));
    maps.delete("m").await.unwrap();
    assert_eq!(name(&next(&mut stream).await), "DELETED m");
    assert_eq!(name(&next(&mut watch).await), "DELETED m");

    // All events again, from the start of the first watch.
    let mut again = maps.watch().after(version).labels("app=w").await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(name(&next(&mut again).await));
    }
    assert_eq!(seen, ["ADDED m", "MODIFIED m", "DELETED m", "ADDED m", "DELETED m"]);
}

#[tokio::test]
async fn watch_returns_every_change_in_protobuf() {
    let client = or_skip!(client());
    let namespace = namespace(&client, "watch-protobuf").await;
    check(client, &namespace).await;
}

#[tokio::test]
async fn watch_returns_every_change_in_json() {
    let client = or_skip!(json_client());
    let namespace = namespace(&client, "watch-json").await;
    check(client, &namespace).await;
}

#[tokio::test]
async fn watch_ends_after_its_timeout() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "watch-end").await);
    let version = maps.list().await.unwrap().resource_version();
    let options = WatchOptions::after(version).timeout(std::time::Duration::from_secs(1));
    let mut watch = maps.watch().options(options.clone()).await.unwrap();
    assert!(watch.next().await.is_none());
}
