//! Criteria about time, on a paused clock.

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::Deployment, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{Api, Patch, client::DynamicClient, resource::ApiResource};
use klient_apiserver::{ApiServer, Fault};
use klient_cli::sample_controller::{Foo, FooSpec, RESYNC, new_deployment};

use crate::world::World;

/// Returns a Deployment without an owner.
fn unowned(name: &str) -> Deployment {
    let mut owner = Foo::new("other", FooSpec::new(name, Some(1)));
    owner.metadata.uid = Some("other".to_owned());
    let mut deployment = new_deployment(&owner).unwrap();
    deployment.metadata.owner_references = None;
    deployment
}

#[tokio::test(start_paused = true)]
async fn criterion_4_failures_back_off_from_5_ms() {
    let world = World::embedded().await;
    world.deployments.create(&unowned("web")).await.unwrap();
    world.create("a", "web", Some(1)).await;
    world.until(|status| status.failed == 1).await;
    // 5, 10, 20, ... ms: the eighth attempt is 635 ms after the first, the ninth 1275 ms.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.controller.status().failed, 8);
}

#[tokio::test(start_paused = true)]
async fn criterion_5_foo_is_resynced_every_30_s_until_deleted() {
    let world = World::embedded().await;
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = world.controller.status().succeeded;
    tokio::time::sleep(RESYNC * 4).await;
    assert_eq!(world.controller.status().succeeded, before + 4);
    world.foos.delete("a").await.unwrap();
    // The collector deletes the Deployment, which queues its owner.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = world.controller.status().succeeded;
    tokio::time::sleep(RESYNC * 4).await;
    assert_eq!(world.controller.status().succeeded, after);
}

#[tokio::test(start_paused = true)]
async fn criterion_6_resync_of_deployments_queues_nothing() {
    let world = World::embedded().await;
    world.create("a", "", None).await;
    world.until(|status| status.succeeded == 1).await;
    let informers = world.controller.status().informers;
    assert_eq!(
        informers.iter().map(|informer| informer.resource.as_str()).collect::<Vec<_>>(),
        ["foos.samplecontroller.k8s.io", "deployments.apps",]
    );
    tokio::time::sleep(RESYNC + Duration::from_secs(1)).await;
    // One reconcile for the Foo, none for the Deployments.
    assert_eq!(world.controller.status().succeeded, 2);
}

#[tokio::test(start_paused = true)]
async fn criterion_8_failure_is_retried_until_success() {
    let world = World::embedded().await;
    let server = world.embedded.clone().unwrap();
    server.inject(Fault::internal_error().on_method(http::Method::POST).on_path("/apis/apps/v1").times(3));
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.until(|status| status.queue.failing + status.queue.delayed == 0).await;
    assert_eq!(world.controller.status().failed, 3);
}

#[tokio::test(start_paused = true)]
async fn criterion_10_stale_cache_causes_retry_not_duplicate() {
    let server = ApiServer::start().await.unwrap();
    // Watches of Deployments start a minute late, so that the cache is stale.
    server.inject(
        Fault::delay(Duration::from_secs(60)).on_watches(true).when(|_, path, _| path.contains("/deployments")),
    );
    let world = World::on_embedded(server).await;
    world.until(|status| status.informers.iter().all(|informer| informer.resource_version.as_str() != "")).await;
    world.deployments.create(&unowned("web")).await.unwrap();
    world.create("a", "web", Some(1)).await;
    world.until(|status| status.failed >= 3).await;
    let server = world.embedded.as_ref().unwrap();
    let made = ("POST".to_owned(), format!("/apis/apps/v1/namespaces/{}/deployments", world.namespace));
    assert!(server.requests()[&made] >= 4, "it tried to make what it did not see");
    // The cache has the Deployment and its missing owner by now.
    world.events("a", "ErrResourceExists", 1).await;
}

#[tokio::test(start_paused = true)]
async fn criterion_13_conflict_is_retried() {
    let world = World::embedded().await;
    let server = world.embedded.clone().unwrap();
    server.inject(Fault::conflict().on_method(http::Method::PUT).when(|_, path, _| path.contains("/status")).times(2));
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    assert_eq!(world.controller.status().failed, 2);
}

#[tokio::test(start_paused = true)]
async fn controller_survives_outage_and_broken_watches() {
    let world = World::embedded().await;
    let server = world.embedded.clone().unwrap();
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    server.inject(Fault::internal_error());
    server.end_watches();
    tokio::time::sleep(Duration::from_secs(300)).await;
    server.clear_faults();
    world.patch_foo("a", serde_json::json!({"spec": {"replicas": 5}})).await;
    world.deployment("web", |deployment| deployment.spec.replicas == Some(5)).await;
}

#[tokio::test(start_paused = true)]
async fn undecodable_foo_fails_once_until_changed() {
    let world = World::embedded().await;
    // Another definition of the kind, which accepts any fields.
    let version = serde_json::json!({
        "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    let definitions: Api<CustomResourceDefinition> = Api::cluster(world.client.clone());
    let patch = Patch::merge(serde_json::json!({"spec": {"versions": [version]}}));
    definitions.patch("foos.samplecontroller.k8s.io", patch).await.unwrap();
    let anything = DynamicClient::new(world.client.clone()).in_namespace(&ApiResource::of::<Foo>(), &world.namespace);
    let odd = serde_json::json!({
        "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {"name": "odd"}, "spec": {"replicas": "many"},
    });
    anything.create(&serde_json::from_value(odd).unwrap()).await.unwrap();
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.until(|status| status.failed == 1).await;
    let terminal = "controller_runtime_terminal_reconcile_errors_total{controller=\"sample-controller\"} 1";
    assert!(world.registry.render().contains(terminal));
    assert_eq!(world.controller.status().queue.failing, 0);
}
