//! The responses of verbs, and their errors.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{Api, Patch, client::Deleted, options::ListOptions};
use serde_json::json;

use crate::cluster::{client, namespace, or_skip};

fn config_map(name: &str) -> ConfigMap {
    let value = json!({"metadata": {"name": name, "labels": {"app": "e2e"}}, "data": {"key": "value"}});
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn config_map_is_created_changed_and_deleted() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "verbs-life").await);
    let made = maps.create(&config_map("a")).await.unwrap();
    assert_eq!(made.data, config_map("a").data);
    assert!(maps.create(&config_map("a")).await.unwrap_err().is_already_exists());
    assert_eq!(maps.get("a").await.unwrap(), made);
    let list = maps.list().labels("app=e2e").await.unwrap();
    assert_eq!(list.items, std::slice::from_ref(&made));
    assert!(!list.resource_version().is_empty());

    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("key".into(), "other".into());
    let changed = maps.update(&changed).await.unwrap();
    let conflict = maps.update(&made).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");

    let patched = maps.patch("a", Patch::merge(json!({"data": {"more": "1"}}))).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    assert_eq!(changed.data.unwrap()["key"], "other");

    let refused = maps.delete("a").uid("another").await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let gone = maps.delete("a").await.unwrap();
    assert!(matches!(gone, Deleted::Status(status) if status.is_success()));
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    assert!(maps.delete("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn list_has_pages_and_collection_is_deleted() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client, "verbs-pages").await);
    for index in 0..7 {
        maps.create(&config_map(&format!("map-{index}"))).await.unwrap();
    }
    let mut names = Vec::new();
    let mut options = ListOptions::default().labels("app=e2e").limit(3);
    loop {
        let page = maps.list().options(options.clone()).await.unwrap();
        names.extend(page.iter().map(|map| map.metadata.name.clone().unwrap()));
        match page.continue_token() {
            Some(token) => options = options.continue_token(token),
            None => break,
        }
    }
    assert_eq!(names, (0..7).map(|index| format!("map-{index}")).collect::<Vec<_>>());

    maps.delete_collection().labels("app=e2e").await.unwrap();
    assert_eq!(maps.list().labels("app=e2e").await.unwrap().items, []);
}

#[tokio::test]
async fn error_has_the_message_of_the_server() {
    let client = or_skip!(client());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let error = maps.get("nothing-here").await.unwrap_err();
    assert_eq!(error.to_string(), "configmaps \"nothing-here\" not found");
    let error = maps.create(&config_map("Not_A_Name")).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(error.status().unwrap().causes()[0].field, "metadata.name");
    let nowhere: Api<ConfigMap> = Api::namespaced(client.clone(), "no-such-namespace");
    let error = nowhere.create(&config_map("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "namespaces \"no-such-namespace\" not found");
}
