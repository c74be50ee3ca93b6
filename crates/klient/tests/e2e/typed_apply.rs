//! Configurations of a derived kind, and applies that are skipped, on the real server.

use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, ObjectKey, SharedInformer,
    wire::{ManagedFields, raw::Encoding},
};
use serde_json::json;

use crate::cluster::{self, or_skip};

#[path = "../shared/typed_apply.rs"]
mod scenario;

#[tokio::test]
async fn derived_configurations_share_an_object() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply").await;
    scenario::two_managers_share_an_object(&client, &namespace).await;
}

#[tokio::test]
async fn conflicts_of_derived_configurations_are_values() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply-conflicts").await;
    scenario::conflicts_are_values(&client, &namespace).await;
}

#[tokio::test]
async fn status_of_derived_kind_is_applied_by_condition() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "typed-apply-status").await;
    scenario::status_is_applied_by_condition(&client, &namespace).await;
}

/// The cache has managed fields as the server sends them, in protobuf.
#[tokio::test]
async fn apply_of_unchanged_cached_object_is_skipped() {
    let client = or_skip!(cluster::client());
    let namespace = cluster::namespace(&client, "apply-if-changed").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let settings = |color: &str| {
        let data = json!({"color": color, "empty": ""});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data})
    };
    maps.apply(&settings("blue")).manager("painter").await.unwrap();
    for (managed_fields, is_sent) in [(ManagedFields::Keep, [false, true]), (ManagedFields::Drop, [true, true])] {
        let informer = SharedInformer::builder(maps.clone()).managed_fields(managed_fields).build();
        informer.start();
        informer.wait_for_sync().await.unwrap();
        let cached = informer.lister().get(&ObjectKey::namespaced(&namespace, "settings")).unwrap();
        assert_eq!(cached.wire().unwrap().encoding(), Encoding::Protobuf);
        for (color, is_sent) in ["blue", "red"].into_iter().zip(is_sent) {
            let apply = maps.apply(&settings(color)).manager("painter").dry_run().if_changed(&cached);
            assert_eq!(apply.await.unwrap().is_some(), is_sent, "{managed_fields:?} {color}");
        }
    }
}
