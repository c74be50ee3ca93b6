//! Sources that are added and removed while a controller runs.

use std::time::Duration;

use http::Method;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{
    Api, ErrorKind, InformerFactory, ObjectKey, SharedInformer,
    controller::Outcome,
    informer::InformerState,
    object::DynamicObject,
    resource::{ApiResource, GroupVersionKind, Scope},
    status::{Status, StatusReason},
};
use klient_apiserver::Fault;
use serde_json::json;
use tokio::{sync::oneshot, time::Instant};

use super::{Running, builder, done, key};
use crate::informer::{
    World,
    source::{Page, Source as Scripted},
    within,
};

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

/// Starts a controller with a key `a` whose reconciles create a Secret each. They wait an hour for their own writes.
async fn start_creating_secrets(world: &World) -> Running {
    world.create("a").await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let mut running = Running::start(builder(world).wait_for_own_writes(Duration::from_secs(3600)), move |_| {
        let secrets = secrets.clone();
        async move {
            secrets.create(&serde_json::from_value(json!({"metadata": {"generateName": "s-"}}))?).await?;
            Ok(Outcome::Done)
        }
    });
    // Without a source of Secrets, nothing is waited for.
    assert_eq!(running.next().await, "a: configmaps default/a found");
    running.controller.request(key("a"));
    assert_eq!(running.next().await, "a: requested");
    running
}

fn secrets(world: &World) -> SharedInformer<Secret> {
    InformerFactory::new(world.client.clone()).namespace("default").core_v1().secrets()
}

/// Ends the watches. Those of Secrets are opened again after a delay.
fn hold_secrets(world: &World, delay: Duration) {
    world.server.inject(Fault::delay(delay).on_watches(true).on_path(SECRETS));
    world.server.end_watches();
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_until_added_source_shows_own_write() {
    let world = World::start().await;
    let mut running = start_creating_secrets(&world).await;
    let informer = secrets(&world);
    running.controller.add_source("secrets", informer.clone(), |_, _| {}).unwrap();
    within(informer.wait_for_sync()).await.unwrap();
    hold_secrets(&world, Duration::from_secs(20));
    running.controller.request(key("a"));
    running.next().await;
    running.controller.request(key("a"));
    running.quiet_for(Duration::from_secs(10)).await;
    assert_eq!(informer.lister().len(), 2);
    assert_eq!(running.next().await, "a: requested");
    // The new reconcile may have written as well by now.
    assert!(informer.lister().len() >= 3);
    assert_eq!(running.controller.status().stale, 0);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn removed_source_ends_the_wait_for_own_writes() {
    let world = World::start().await;
    let mut running = start_creating_secrets(&world).await;
    let informer = secrets(&world);
    running.controller.add_source("secrets", informer.clone(), |_, _| {}).unwrap();
    within(informer.wait_for_sync()).await.unwrap();
    hold_secrets(&world, Duration::from_secs(3000));
    running.controller.request(key("a"));
    running.next().await;
    running.controller.request(key("a"));
    running.quiet_for(Duration::from_secs(20)).await;
    let removed = Instant::now();
    assert!(running.controller.remove_source("secrets"));
    assert_eq!(running.next().await, "a: requested");
    assert!(removed.elapsed() < Duration::from_secs(1), "{:?}", removed.elapsed());
    // The controller has no cache of Secrets any more, so that none is stale.
    assert_eq!(running.controller.status().stale, 0);
    running.controller.request(key("a"));
    assert_eq!(running.next().await, "a: requested");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn added_source_without_a_cache_delays_no_reconcile() {
    let faults = [(Fault::respond(denied()), InformerState::Denied), (Fault::silence(), InformerState::Syncing)];
    for (fault, state) in faults {
        let world = World::start().await;
        world.server.inject(fault.on_method(Method::GET).on_path(SECRETS));
        let mut running = start_creating_secrets(&world).await;
        let informer = secrets(&world);
        let mut states = informer.states();
        running.controller.add_source("secrets", informer, |_, _| {}).unwrap();
        within(states.wait_for(|reached| *reached == state)).await.unwrap();
        let began = Instant::now();
        for _ in 0..2 {
            running.controller.request(key("a"));
            assert_eq!(running.next().await, "a: requested");
        }
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        // As with an informer that was stopped.
        assert_eq!(running.controller.status().stale, 1);
        running.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn added_source_that_is_denied_later_ends_the_wait() {
    let world = World::start().await;
    world.create("a").await;
    let builder = builder(&world).wait_for_own_writes(Duration::from_secs(3600));
    let mut running = Running::start(builder, |request| {
        let written = json!({"metadata": {"name": "m", "namespace": "n", "resourceVersion": "9"}});
        request.wrote(&serde_json::from_value::<ConfigMap>(written).unwrap());
        done()
    });
    running.next().await;
    let source = Scripted::default();
    let events = source.list(Page::new("5", &[])).watch();
    let informer = SharedInformer::new(source.clone());
    running.controller.add_source("others", informer.clone(), |_, _| {}).unwrap();
    within(informer.wait_for_sync()).await.unwrap();
    running.controller.request(key("a"));
    running.next().await;
    running.controller.request(key("a"));
    running.quiet_for(Duration::from_secs(20)).await;
    source.watch_fails(denied().into());
    drop(events);
    assert_eq!(running.next().await, "a: requested");
    assert_eq!(running.controller.status().added["others"].state, InformerState::Denied);
    assert_eq!(running.controller.status().stale, 1);
    running.stop().await.unwrap();
}

fn denied() -> Status {
    Status::failure(StatusReason::Forbidden, 403, "access is denied")
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
