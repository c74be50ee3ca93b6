//! When things happen, with a clock that runs ahead.

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::Deployment, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient::{Api, client::DynamicClient, resource::ApiResource};
use klient_apiserver::{ApiServer, Fault};
use klient_cli::sample_controller::{Foo, RESYNC, new_deployment};

use crate::world::{World, client_of};

/// A Deployment that is nobody's.
fn unowned(name: &str) -> Deployment {
    let mut owner = Foo::new("other", name, Some(1));
    owner.metadata.uid = Some("other".to_owned());
    let mut deployment = new_deployment(&owner).unwrap();
    deployment.metadata.owner_references = None;
    deployment
}

#[tokio::test(start_paused = true)]
async fn criterion_4_failures_wait_5_ms_and_twice_as_long_each_time() {
    let world = World::embedded().await;
    world.deployments.create(&unowned("web")).await.unwrap();
    world.create("a", "web", Some(1)).await;
    world.until(|status| status.failed == 1).await;
    // 5, 10, 20, ... ms: the eighth try is 635 ms after the first, the ninth 1275 ms.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.controller.status().failed, 8);
}

#[tokio::test(start_paused = true)]
async fn criterion_5_every_foo_is_looked_at_every_30_seconds_and_not_after_it_is_gone() {
    let world = World::embedded().await;
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = world.controller.status().succeeded;
    tokio::time::sleep(RESYNC * 4).await;
    assert_eq!(world.controller.status().succeeded, before + 4);
    world.foos.delete("a").await.unwrap();
    // The collector deletes the Deployment, of which the controller hears.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = world.controller.status().succeeded;
    tokio::time::sleep(RESYNC * 4).await;
    assert_eq!(world.controller.status().succeeded, after);
}

#[tokio::test(start_paused = true)]
async fn criterion_6_a_resync_of_deployments_is_no_reason() {
    let world = World::embedded().await;
    world.create("a", "", None).await;
    world.until(|status| status.succeeded == 1).await;
    let informers = world.controller.status().informers;
    assert_eq!(
        informers.iter().map(|informer| informer.resource.as_str()).collect::<Vec<_>>(),
        ["foos.samplecontroller.k8s.io", "deployments.apps",]
    );
    tokio::time::sleep(RESYNC + Duration::from_secs(1)).await;
    // One for the Foo, none for the Deployments.
    assert_eq!(world.controller.status().succeeded, 2);
}

#[tokio::test(start_paused = true)]
async fn criterion_8_a_failure_is_tried_again_until_it_succeeds_and_then_forgotten() {
    let world = World::embedded().await;
    let server = world.embedded.clone().unwrap();
    server.inject(Fault::internal_error().on_method(http::Method::POST).on_path("/apis/apps/v1").times(3));
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.until(|status| status.queue.failing + status.queue.delayed == 0).await;
    assert_eq!(world.controller.status().failed, 3);
}

#[tokio::test(start_paused = true)]
async fn criterion_10_a_stale_cache_leads_to_a_retry_and_not_to_a_second_deployment() {
    let server = ApiServer::start().await.unwrap();
    // Watches of Deployments begin a minute late: the cache does not show what is there.
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
    // Now the cache shows it, and what it is.
    world.events("a", "ErrResourceExists", 1).await;
}

#[tokio::test(start_paused = true)]
async fn criterion_13_a_conflict_is_tried_again() {
    let world = World::embedded().await;
    let server = world.embedded.clone().unwrap();
    server.inject(Fault::conflict().on_method(http::Method::PUT).when(|_, path, _| path.contains("/status")).times(2));
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    assert_eq!(world.controller.status().failed, 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_for_minutes_and_watches_that_break_lose_nothing() {
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
async fn a_foo_that_is_none_is_an_error_of_its_own_that_waits_for_a_change() {
    let server = ApiServer::start().await.unwrap();
    // Somebody else's definition of the kind, which lets anything in.
    let definition = serde_json::json!({
        "metadata": {"name": "foos.samplecontroller.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": "samplecontroller.k8s.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client_of(&server));
    definitions.create(&serde_json::from_value(definition).unwrap()).await.unwrap();
    let world = World::on_embedded(server).await;
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
