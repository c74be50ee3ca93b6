//! Controllers while the server has faults.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient::{
    Api, Controller, Patch, SharedInformer, WatchEvent,
    controller::{Outcome, Request},
    informer::InformerState,
    metrics::Registry,
    object::DynamicObject,
    request::Target,
    resource::{ApiResource, GroupVersionKind, Scope},
    wire::{ManagedFields, RawObject},
};
use klient_apiserver::Fault;
use serde_json::json;

use super::{Running, builder, done, factory};
use crate::informer::{
    World,
    source::{Page, Source as Scripted, object},
    within,
};

#[tokio::test(start_paused = true)]
async fn controller_recovers_after_an_outage_of_the_server() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let maps = world.maps.clone();
    let mut running = Running::start(builder(&world), move |request| {
        let (maps, name) = (maps.clone(), request.name().to_owned());
        async move {
            let seen = Patch::merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
            maps.patch(&name, seen.clone()).await?;
            Ok(Outcome::Done)
        }
    });
    while running.controller.status().succeeded < 2 {
        running.call().await;
        tokio::task::yield_now().await;
    }
    world.server.inject(Fault::internal_error());
    world.server.end_watches();
    running.controller.request(super::key("a"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let status = running.controller.status();
    assert!(status.failed >= 8 && status.failed < 40, "{status:?}");
    assert!(matches!(status.informers[0].state, InformerState::Stale { .. }), "{status:?}");
    world.server.clear_faults();
    world.create("c").await;
    within(async {
        loop {
            let labels = world.maps.get("c").await.unwrap().metadata.labels;
            if labels.is_some_and(|labels| labels.contains_key("seen")) {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_waits_until_its_kind_is_installed() {
    let world = World::start().await;
    let resource = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let (sender, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let controller = Controller::builder("widgets", factory(&world).dynamic(resource.clone()))
        .registry(Registry::new())
        .reconcile(move |request: Request<DynamicObject>| {
            sender.send(request.key().clone()).unwrap();
            done()
        });
    let task = tokio::spawn({
        let controller = controller.clone();
        async move { controller.run_until(std::future::pending()).await }
    });
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(controller.status().informers[0].state, InformerState::NotServed);
    let definitions: Api<CustomResourceDefinition> = Api::cluster(world.client.clone());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    definitions.create(&serde_json::from_value(definition).unwrap()).await.unwrap();
    let widgets = Api::dynamic(world.client.clone(), resource, Target::Namespace("default".to_owned()));
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let widget: DynamicObject = serde_json::from_value(widget).unwrap();
    within(async {
        while widgets.create(&widget).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    assert_eq!(within(calls.recv()).await.unwrap(), super::key("w"));
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn controller_fails_only_the_key_that_cannot_be_decoded() {
    let source = Scripted::default();
    let events = source.list(Page::new("5", &[("good", "5")])).watch();
    let builder = Controller::builder("maps", SharedInformer::new(source)).registry(Registry::new());
    let mut running = Running::start(builder, |request| {
        let read = request.object().map(|_| Outcome::Done);
        async { Ok(read?) }
    });
    running.call().await;
    let text = br#"{"metadata": {"name": "bad", "namespace": "n", "uid": "u", "resourceVersion": "6"}, "data": 5}"#;
    events.send(Ok(WatchEvent::Added(RawObject::from_json(text, ManagedFields::Drop).unwrap()))).unwrap();
    let call = running.call().await;
    assert_eq!(call.object().unwrap_err().to_string(), "failed to decode ConfigMap n/bad");
    assert_eq!(running.call().await.failures(), 1);
    events.send(Ok(WatchEvent::Modified(object("good", "7")))).unwrap();
    while running.call().await.name() != "good" {}
}

/// An error that panics when it is shown.
#[derive(Debug)]
struct Unprintable;

impl std::fmt::Display for Unprintable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("an error without words")
    }
}

impl std::error::Error for Unprintable {}

/// A rate limiter that panics.
struct Panicking;

impl klient::workqueue::RateLimiter<klient::ObjectKey> for Panicking {
    fn delay(&self, _: &klient::ObjectKey, _: u32) -> Duration {
        panic!("a limiter with a bug")
    }
}

/// Runs a controller with one worker, whose first reconcile of `a` fails. The worker panics outside of the reconciler.
async fn survives_a_panic(
    change: impl FnOnce(
        klient::controller::ControllerBuilder<ConfigMap>,
    ) -> klient::controller::ControllerBuilder<ConfigMap>,
) {
    // Errors are shown only if something listens. With a single subscriber in the process, `tracing` would ask only the thread that
    // first reaches a log line, which may be that of another test, and cache that nothing listens. So there are two.
    let subscriber = || tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let _other = tracing::Dispatch::new(subscriber());
    let _guard = tracing::subscriber::set_default(subscriber());
    let world = World::start().await;
    world.create("a").await;
    let failed = std::sync::atomic::AtomicBool::new(false);
    let mut running = Running::start(change(builder(&world).workers(1)), move |request| {
        let fails = request.name() == "a" && !failed.swap(true, std::sync::atomic::Ordering::SeqCst);
        async move { if fails { Err(Unprintable.into()) } else { Ok(Outcome::Done) } }
    });
    running.call().await;
    let again = running.call().await;
    assert_eq!(again.name(), "a", "the key is retried");
    world.create("b").await;
    assert_eq!(running.call().await.name(), "b", "other keys are reconciled");
    assert!(running.controller.status().panicked >= 1);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn worker_is_replaced_after_a_panic_in_an_error() {
    survives_a_panic(|builder| builder).await;
}

#[tokio::test(start_paused = true)]
async fn worker_is_replaced_after_a_panic_in_the_rate_limiter() {
    survives_a_panic(|builder| builder.rate_limiter(Panicking)).await;
}

#[tokio::test(start_paused = true)]
async fn worker_is_replaced_after_a_panic_in_on_error() {
    survives_a_panic(|builder| builder.on_error(|_, _| panic!("a policy with a bug"))).await;
}
