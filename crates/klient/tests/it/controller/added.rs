//! Sources that are added and removed while a controller runs.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    Api, ErrorKind, InformerFactory, ObjectKey,
    informer::InformerState,
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use serde_json::json;
use tokio::sync::oneshot;

use super::{Running, builder, done, key};
use crate::informer::{World, within};

async fn create_secret(world: &World, name: &str) {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Secret>::namespaced(world.client.clone(), "default").create(&secret).await.unwrap();
}

fn widgets() -> ApiResource {
    let gvk = GroupVersionKind::new("shop.example.com", "v1", "Widget");
    ApiResource::new(gvk, "widgets", Scope::Namespaced)
}

async fn define_widgets(world: &World) {
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
            }]
        }
    }))
    .unwrap();
    Api::<CustomResourceDefinition>::cluster(world.client.clone()).create(&definition).await.unwrap();
}

async fn create_widget(world: &World, name: &str) {
    let api: Api<DynamicObject> =
        Api::dynamic(world.client.clone(), widgets(), klient::request::Target::in_namespace("default"));
    let widget = json!({"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    let widget: DynamicObject = serde_json::from_value(widget).unwrap();
    // A definition is served a moment after it was created.
    while api.create(&widget).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn source_adds_keys_from_when_it_was_added_until_removed() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world), |_| done());
    create_secret(&world, "one").await;
    running.quiet_for(Duration::from_secs(5)).await;
    let secrets = || InformerFactory::new(world.client.clone()).namespace("default").core_v1().secrets();
    let add = || running.controller.add_source("secrets", secrets(), |event, keys| keys.add(event.key().clone()));
    add().unwrap();
    let error = add().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let expected = "cannot add source \"secrets\": the controller has one with this name, remove it first";
    assert_eq!(error.to_string(), expected);
    assert_eq!(running.next().await, "one: secrets default/one found");
    create_secret(&world, "two").await;
    assert_eq!(running.next().await, "two: secrets default/two added");
    assert_eq!(running.controller.status().added["secrets"].state, InformerState::Synced);
    assert!(running.controller.remove_source("secrets"));
    assert!(!running.controller.remove_source("secrets"));
    create_secret(&world, "three").await;
    running.quiet_for(Duration::from_secs(60)).await;
    assert!(running.controller.status().added.is_empty());
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn source_of_an_unknown_kind_harms_no_other() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world), |_| done());
    let informer = InformerFactory::new(world.client.clone()).dynamic(widgets());
    let mut states = informer.states();
    running.controller.add_source("widgets", informer, |_, keys| keys.add(key("widget"))).unwrap();
    within(states.wait_for(|state| *state == InformerState::NotServed)).await.unwrap();
    assert_eq!(running.controller.status().added["widgets"].state, InformerState::NotServed);
    world.create("a").await;
    assert_eq!(running.next().await, "a: configmaps default/a added");
    // The kind is installed later.
    define_widgets(&world).await;
    create_widget(&world, "w").await;
    assert_eq!(running.call().await.key(), &key("widget"));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn sources_follow_custom_resource_definitions() {
    let world = World::start().await;
    let mut running = Running::start(builder(&world), |_| done());
    let (stop, stopped) = oneshot::channel::<()>();
    let (controller, client) = (running.controller.clone(), world.client.clone());
    let following = tokio::spawn(async move {
        let is_ours = |definition: &CustomResourceDefinition| definition.spec.group == "shop.example.com";
        let map = |event: &klient::informer::Event<DynamicObject>, keys: &mut klient::controller::Keys<'_>| {
            keys.add(ObjectKey::namespaced("default", event.key().name()));
        };
        controller.follow_definitions(client, is_ours, map, async { drop(stopped.await) }).await
    });
    define_widgets(&world).await;
    create_widget(&world, "w").await;
    assert_eq!(running.call().await.key(), &key("w"));
    assert_eq!(running.controller.status().added.len(), 1);
    Api::<CustomResourceDefinition>::cluster(world.client.clone()).delete("widgets.shop.example.com").await.unwrap();
    let removed = async {
        while !running.controller.status().added.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    within(removed).await;
    drop(stop);
    following.await.unwrap().unwrap();
    running.stop().await.unwrap();
}
