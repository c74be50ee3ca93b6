//! `if_changed` against the objects of an informer's cache, in each of their forms.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, ObjectKey, SharedInformer,
    client::DynamicClient,
    informer::{CachedObject, InformerBuilder, ObjectFormat},
    metrics::Registry,
    object::DynamicObject,
    resource::ApiResource,
    wire::ManagedFields,
};
use klient_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::embedded;

fn settings(color: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": color}})
}

/// Returns the cached object of an informer, once it is in the cache.
async fn cached<K: klient::Resource>(informer: InformerBuilder<Api<K>>) -> (SharedInformer<K>, CachedObject<K>) {
    let informer = informer.build();
    informer.start();
    informer.wait_for_sync().await.unwrap();
    let object = informer.lister().get(&ObjectKey::namespaced("default", "settings")).unwrap();
    (informer, object)
}

fn skipped() -> u64 {
    Registry::global().counter("klient_applies_skipped_total", "", &[]).value()
}

/// Returns whether the same configuration, one with another value, and one without the value are sent.
async fn sent<K: klient::Resource>(maps: &Api<ConfigMap>, cached: &CachedObject<K>) -> [bool; 3] {
    let less = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let mut sent = [false; 3];
    for (sent, configuration) in sent.iter_mut().zip([settings("blue"), settings("red"), less]) {
        // A dry run leaves the object as it is in the cache.
        let apply = maps.apply(&configuration).manager("painter").dry_run();
        *sent = apply.if_changed(cached).await.unwrap().is_some();
    }
    sent
}

async fn start() -> (ApiServer, Client, Api<ConfigMap>) {
    let server = ApiServer::start().await.unwrap();
    let client = embedded::client(&server);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.apply(&settings("blue")).manager("painter").await.unwrap();
    (server, client, maps)
}

#[tokio::test]
async fn apply_of_unchanged_cached_object_is_skipped() {
    let (_server, client, maps) = start().await;
    let before = skipped();
    let keep = |maps: &Api<ConfigMap>| SharedInformer::builder(maps.clone()).managed_fields(ManagedFields::Keep);

    // Protobuf, and typed objects.
    let (_wire, object) = cached(keep(&maps)).await;
    assert!(object.wire().is_some());
    assert_eq!(sent(&maps, &object).await, [false, true, true]);
    let (_decoded, object) = cached(keep(&maps).object_format(ObjectFormat::Decoded)).await;
    assert!(object.decoded().is_some());
    assert_eq!(sent(&maps, &object).await, [false, true, true]);

    // JSON, whose list items have neither kind nor version.
    let json_maps: Api<ConfigMap> = Api::namespaced(client.to_builder().json_only().build(), "default");
    let (_json, object) = cached(keep(&json_maps)).await;
    assert_eq!(sent(&maps, &object).await, [false, true, true]);
    for format in [ObjectFormat::Wire, ObjectFormat::Decoded] {
        let dynamic: Api<DynamicObject> =
            DynamicClient::new(client.clone()).in_namespace(&ApiResource::of::<ConfigMap>(), "default");
        let informer = SharedInformer::builder(dynamic).managed_fields(ManagedFields::Keep).object_format(format);
        let (_dynamic, object) = cached(informer).await;
        assert_eq!(sent(&maps, &object).await, [false, true, true], "{format:?}");
    }
    // Other tests of this process may skip applies, too.
    assert!(skipped() >= before + 5);
}

#[tokio::test]
async fn apply_is_sent_if_the_cache_lacks_managed_fields() {
    let (_server, _client, maps) = start().await;
    for format in [ObjectFormat::Wire, ObjectFormat::Decoded] {
        let (_lean, object) = cached(SharedInformer::builder(maps.clone()).object_format(format)).await;
        assert_eq!(sent(&maps, &object).await, [true; 3], "{format:?}");
    }
}

/// Without the owned field, the configuration that would remove it looks like what is applied.
#[tokio::test]
async fn apply_is_sent_if_the_cache_lacks_owned_fields() {
    let (_server, _client, maps) = start().await;
    let lean = SharedInformer::builder(maps.clone()).managed_fields(ManagedFields::Keep);
    let (_lean, object) = cached(lean.transform(|map: &mut ConfigMap| map.data = None)).await;
    assert_eq!(sent(&maps, &object).await, [true; 3]);
    let metadata = SharedInformer::builder(maps.metadata()).managed_fields(ManagedFields::Keep);
    let (_metadata, object) = cached(metadata).await;
    assert_eq!(sent(&maps, &object).await, [true; 3]);
}

#[tokio::test]
async fn apply_is_sent_after_another_manager_took_over() {
    let (_server, _client, maps) = start().await;
    maps.apply(&settings("blue")).manager("other").force().await.unwrap();
    maps.apply(&settings("red")).manager("other").force().await.unwrap();
    let keep = SharedInformer::builder(maps.clone()).managed_fields(ManagedFields::Keep);
    let (_informer, object) = cached(keep).await;
    let apply = maps.apply(&settings("blue")).manager("painter").force().if_changed(&object);
    assert_eq!(apply.await.unwrap().unwrap().data.unwrap()["color"], "blue");
}
