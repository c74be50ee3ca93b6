//! The metadata client: a built-in kind and a custom resource, in both encodings.

use k8s_openapi::{NamespaceResourceScope, api::core::v1::Secret};
use klient::{Api, Client, Patch, Resource, WatchEvent, object::PartialObjectMeta};
use serde_json::json;

use crate::{
    cluster::{both_clients, namespace, or_skip},
    custom::{Widget, widgets},
    kinds::annotation,
};

/// Checks every operation on the metadata of objects.
async fn check<K: Resource<Scope = NamespaceResourceScope>>(
    client: &Client,
    namespace: &str,
    object: serde_json::Value,
) {
    let whole: Api<K> = Api::namespaced(client.clone(), namespace);
    let api = whole.metadata();
    let object = serde_json::from_value(object).unwrap();
    let made = whole.create(&object).await.unwrap();
    let expected = PartialObjectMeta::of(&made);
    assert_eq!(api.get("one").await.unwrap(), expected, "{}", K::KIND);
    let list = api.list().await.unwrap();
    assert_eq!(list.items, [expected], "{}", K::KIND);

    let mut watch = api.watch().after(list.resource_version()).await.unwrap();
    let patch = Patch::merge(json!({"metadata": {"annotations": {"note": "new"}}}));
    let patched = api.patch("one", patch.clone()).await.unwrap();
    assert_eq!(annotation(&patched.metadata, "note"), Some("new"), "{}", K::KIND);
    assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::Modified(patched), "{}", K::KIND);
    api.delete("one").await.unwrap();
    assert!(matches!(watch.next().await.unwrap().unwrap(), WatchEvent::Deleted(_)), "{}", K::KIND);
    assert!(api.get("one").await.unwrap_err().is_not_found(), "{}", K::KIND);
    assert!(api.create(&PartialObjectMeta::of(&made)).await.unwrap_err().is_invalid());
}

#[tokio::test]
async fn metadata_is_read_watched_patched_and_deleted() {
    for (form, client) in or_skip!(both_clients()) {
        widgets(&client).await;
        let namespace = namespace(&client, &format!("metadata-{form}")).await;
        let metadata = json!({"name": "one", "labels": {"a": "b"}});
        check::<Secret>(&client, &namespace, json!({"metadata": metadata, "data": {"password": "c2VjcmV0"}})).await;
        check::<Widget>(&client, &namespace, json!({"metadata": metadata, "spec": {"size": 2}})).await;
    }
}
