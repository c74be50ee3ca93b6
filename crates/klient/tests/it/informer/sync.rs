//! The cache has the same objects as the server.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use klient::{
    Api, SharedInformer,
    informer::{FirstRead, InformerState, ObjectFormat},
    metrics::Registry,
    object::DynamicObject,
    request::Target,
    resource::{ApiResource, GroupVersionKind, Scope},
    wire::ManagedFields,
};
use serde_json::json;

use super::{World, cached, next, next_n, within};

#[tokio::test(start_paused = true)]
async fn informer_caches_existing_objects_and_changes() {
    for first_read in [FirstRead::List, FirstRead::WatchList] {
        let world = World::start().await;
        world.create("a").await;
        let informer = SharedInformer::builder(world.maps.clone()).first_read(first_read).build();
        assert_eq!(informer.status().state, InformerState::Idle);
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        world.assert_equal(&informer).await;
        world.create("b").await;
        world.set("a", "1").await;
        world.assert_equal(&informer).await;
        world.delete("a").await;
        world.assert_equal(&informer).await;
        assert_eq!(informer.status().state, InformerState::Synced);
        // Three lists are the test's own. The informer needs one list and one watch, or one watch for both.
        let requests = if first_read == FirstRead::List { 5 } else { 4 };
        assert_eq!(world.reads(), requests);
    }
}

#[tokio::test(start_paused = true)]
async fn wait_until_seen_shows_own_writes() {
    let world = World::start().await;
    let informer = world.synced().await;
    for value in 0..20 {
        let version = if value == 0 { world.create("a").await } else { world.set("a", &value.to_string()).await };
        within(informer.wait_until_seen(&version)).await.unwrap();
        assert_eq!(cached(&informer)[&klient::ObjectKey::namespaced("default", "a")], version);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_last_handle_stops_informer() {
    let world = World::start().await;
    let informer = world.synced().await;
    let lister = informer.lister();
    drop(informer);
    let version = world.create("a").await;
    // A lister keeps the informer running.
    within(async {
        while lister.snapshot().resource_version().compare(&version).is_none_or(std::cmp::Ordering::is_lt) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let store = lister.snapshot();
    assert_eq!(store.len(), 1);
    drop(lister);
    let before = world.reads();
    world.create("b").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.reads(), before, "the watch has ended");
}

#[tokio::test(start_paused = true)]
async fn stop_is_final_and_wakes_waiting_callers() {
    let world = World::start().await;
    let informer = world.synced().await;
    let mut events = informer.events();
    informer.stop().await;
    assert!(events.next().await.is_none());
    assert_eq!(informer.status().state, InformerState::Stopped);
    assert!(informer.wait_until_seen(&u64::MAX.to_string().as_str().into()).await.is_err());
    informer.start();
    assert_eq!(informer.status().state, InformerState::Stopped);

    let never_started = world.informer();
    let waiting = tokio::spawn({
        let informer = never_started.clone();
        async move { informer.wait_for_sync().await }
    });
    tokio::task::yield_now().await;
    never_started.stop().await;
    within(waiting).await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn run_until_stops_after_signal() {
    let world = World::start().await;
    let informer = world.informer();
    let signal = async { within(informer.wait_for_sync()).await.unwrap() };
    within(informer.run_until(signal)).await;
    assert_eq!(informer.status().state, InformerState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn informer_caches_only_selected_objects() {
    let world = World::start().await;
    world.create_with("a", json!({"app": "web"})).await;
    world.create_with("b", json!({"app": "db"})).await;
    let informer = SharedInformer::builder(world.maps.clone()).labels("app=web").build();
    informer.start();
    let mut events = informer.events();
    assert_eq!(next(&mut events).await, "*a");
    let patch = klient::Patch::merge(json!({"metadata": {"labels": {"app": "web"}}}));
    world.maps.patch("b", patch.clone()).await.unwrap();
    let patch = klient::Patch::merge(json!({"metadata": {"labels": {"app": "db"}}}));
    world.maps.patch("a", patch.clone()).await.unwrap();
    assert_eq!(next_n(&mut events, 2).await, ["+b", "-a"]);
}

#[tokio::test(start_paused = true)]
async fn informer_stores_objects_in_wire_form_or_decoded() {
    let world = World::start().await;
    world.create("a").await;
    for form in [ObjectFormat::Wire, ObjectFormat::Decoded] {
        let informer = SharedInformer::builder(world.maps.clone()).object_format(form).build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        let object = informer.lister().namespace("default").get("a").unwrap();
        assert_eq!(object.wire().is_some(), form == ObjectFormat::Wire);
        assert_eq!(object.decode().unwrap().data.as_ref().unwrap()["n"], "0");
        let same = std::sync::Arc::ptr_eq(&object.decode().unwrap(), &object.decode().unwrap());
        assert_eq!(same, form == ObjectFormat::Decoded);
        assert!(!object.resource_version().is_empty() && object.uid().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn transform_changes_objects_before_they_are_stored() {
    let world = World::start().await;
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}})).unwrap();
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    secrets.create(&secret).await.unwrap();
    for form in [ObjectFormat::Wire, ObjectFormat::Decoded] {
        let informer = SharedInformer::builder(secrets.clone())
            .object_format(form)
            .transform(|secret: &mut Secret| secret.data = None)
            .build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        let cached = informer.lister().namespace("default").get("s").unwrap();
        assert_eq!(cached.decode().unwrap().data, None);
        assert!(!cached.resource_version().is_empty());
        assert!(!format!("{cached:?} {informer:?}").contains("hunter2"));
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_transform_skips_one_object() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let informer = SharedInformer::builder(world.maps.clone())
        .transform(|map: &mut ConfigMap| assert_ne!(map.metadata.name.as_deref(), Some("a")))
        .build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    assert_eq!(informer.lister().len(), 1);
    assert_eq!(informer.status().decode_errors, 1);
}

#[tokio::test(start_paused = true)]
async fn informer_caches_metadata_and_dynamic_objects() {
    let world = World::start().await;
    world.create_with("a", json!({"app": "web"})).await;
    let metadata = SharedInformer::new(world.maps.metadata());
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    let resource = ApiResource::new(gvk, "configmaps", Scope::Namespaced);
    let dynamic: SharedInformer<DynamicObject> =
        SharedInformer::new(Api::dynamic(world.client.clone(), resource, Target::AllNamespaces));
    metadata.start();
    dynamic.start();
    within(metadata.wait_for_sync()).await.unwrap();
    within(dynamic.wait_for_sync()).await.unwrap();
    let one = metadata.lister().namespace("default").get("a").unwrap();
    assert_eq!(one.label("app").as_deref(), Some("web"));
    assert_eq!(one.decode().unwrap().metadata.name.as_deref(), Some("a"));
    let one = dynamic.lister().namespace("default").get("a").unwrap().decode().unwrap();
    assert_eq!(one.types.as_ref().unwrap().kind, "ConfigMap");
    assert_eq!(one.data["data"]["n"], "0");
}

#[tokio::test(start_paused = true)]
async fn informer_waits_for_custom_resource_definition() {
    let world = World::start().await;
    let gvk = GroupVersionKind::new("example.com", "v1", "Widget");
    let resource = ApiResource::new(gvk, "widgets", Scope::Namespaced);
    let widgets = Api::dynamic(world.client.clone(), resource.clone(), Target::Namespace("default".to_owned()));
    let informer = SharedInformer::new(widgets.clone());
    informer.start();
    let mut states = informer.states();
    within(states.wait_for(|state| *state == InformerState::NotServed)).await.unwrap();
    let definitions = klient::Clientset::new(world.client.clone()).apiextensions_v1().custom_resource_definitions();
    let definition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
                 "names": {"plural": "widgets", "kind": "Widget"},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                     {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }))
    .unwrap();
    definitions.create(&definition).await.unwrap();
    within(informer.wait_for_sync()).await.unwrap();
    let widget = DynamicObject::new("w", &resource).data(json!({"spec": {"size": 3}}));
    let made = widgets.create(&widget).await.unwrap();
    let version = made.metadata.resource_version.unwrap().into();
    within(informer.wait_until_seen(&version)).await.unwrap();
    let cached = informer.lister().namespace("default").get("w").unwrap();
    assert_eq!(cached.decode().unwrap().data["spec"]["size"], 3);
}

#[tokio::test(start_paused = true)]
async fn informer_keeps_managed_fields_only_on_request() {
    let world = World::start().await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m", "managedFields": [
        {"manager": "me", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}}))
    .unwrap();
    world.maps.create(&map).await.unwrap();
    let mut lens = Vec::new();
    for managed_fields in [ManagedFields::Drop, ManagedFields::Keep] {
        let informer = SharedInformer::builder(world.maps.clone()).managed_fields(managed_fields).build();
        informer.start();
        within(informer.wait_for_sync()).await.unwrap();
        let object = informer.lister().namespace("default").get("m").unwrap();
        let kept = object.decode().unwrap().metadata.managed_fields.is_some();
        assert_eq!(kept, managed_fields == ManagedFields::Keep);
        lens.push(informer.status().bytes);
    }
    assert!(lens[0] < lens[1], "{lens:?}");
}

#[tokio::test(start_paused = true)]
async fn informer_records_metrics() {
    let world = World::start().await;
    world.create("a").await;
    let registry = Registry::new();
    let informer = SharedInformer::builder(world.maps.clone()).metrics(&registry, "maps").build();
    informer.start();
    within(informer.wait_for_sync()).await.unwrap();
    let version = world.create("b").await;
    within(informer.wait_until_seen(&version)).await.unwrap();
    let text = within(async {
        loop {
            let text = registry.render();
            // Events are counted right after they were applied.
            if text.contains("informer_events_total{name=\"maps\",resource=\"configmaps\"} 1") {
                return text;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for line in [
        "informer_store_objects{name=\"maps\",resource=\"configmaps\"} 2".to_owned(),
        "informer_relists_total{name=\"maps\",resource=\"configmaps\",reason=\"initial\"} 1".to_owned(),
        "informer_synced{name=\"maps\",resource=\"configmaps\"} 1".to_owned(),
        format!("informer_store_resource_version{{name=\"maps\",resource=\"configmaps\"}} {version}"),
        "informer_queued_items{name=\"maps\",resource=\"configmaps\"} 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is missing in\n{text}");
    }
    assert!(informer.status().bytes > 0);
}
