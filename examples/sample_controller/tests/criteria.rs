//! Criteria that are visible through the API.

use k8s_openapi::api::apps::v1::Deployment;
use klient::{
    owner::controller_of,
    wait::{Until, wait_for},
};
use klient_cli::sample_controller::{Foo, FooSpec};
use serde_json::json;

use crate::world::{LIMIT, World, on_both};

on_both! {
    criterion_3_repeated_core_events_are_counted
    criterion_6_foreign_deployments_are_ignored
    criterion_7_controller_has_two_workers
    criterion_9_foo_without_deployment_name_is_not_retried
    criterion_10_and_15_deployment_matches_foo
    criterion_11_foreign_deployment_warns_until_deleted
    criterion_12_update_replaces_whole_deployment
    criterion_12_foo_without_replicas_keeps_size
    criterion_13_status_follows_deployment_without_extra_writes
    criterion_14_success_is_recorded_as_event
    criterion_16_replicas_follow_foo_and_are_restored
    criterion_16_deleted_deployment_is_recreated
    criterion_16_new_name_creates_another_deployment
    criterion_16_replicas_out_of_bounds_are_refused
    criterion_16_collector_deletes_deployment_of_deleted_foo
}

fn wants(replicas: i32) -> impl Fn(&Deployment) -> bool + Send + Sync {
    move |deployment| deployment.spec.replicas == Some(replicas)
}

fn foreign(name: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "other"}},
            "template": {
                "metadata": {"labels": {"app": "other"}},
                "spec": {"containers": [{"name": "other", "image": "other:1"}]},
            },
        },
    }))
    .unwrap()
}

async fn criterion_3_repeated_core_events_are_counted(world: &World) {
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.patch_foo("a", json!({"metadata": {"labels": {"x": "1"}}})).await;
    let event = world.events("a", "Synced", 2).await;
    assert_eq!(event.source.unwrap().component.as_deref(), Some("sample-controller"));
    assert_eq!(event.involved_object.kind.as_deref(), Some("Foo"));
    assert_eq!(event.involved_object.api_version.as_deref(), Some("samplecontroller.k8s.io/v1alpha1"));
}

async fn criterion_6_foreign_deployments_are_ignored(world: &World) {
    let foo = world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.until(|status| status.queue.ready + status.queue.in_process == 0).await;
    let before = world.controller.status().succeeded;
    let mut unowned = foreign("unowned");
    world.deployments.create(&unowned).await.unwrap();
    unowned.metadata.name = Some("of-another".to_owned());
    // A Foo of another group is another kind. The embedded server's collector deletes its dependent soon.
    let uid = foo.metadata.uid.unwrap();
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Foo", "name": "a", "uid": uid, "controller": true}]);
    unowned.metadata.owner_references = serde_json::from_value(owner).unwrap();
    world.deployments.create(&unowned).await.unwrap();
    // The next change is seen after these two.
    world.patch_foo("a", json!({"metadata": {"labels": {"x": "1"}}})).await;
    world.until(|status| status.succeeded > before).await;
    assert_eq!(world.controller.status().succeeded, before + 1);
}

async fn criterion_7_controller_has_two_workers(world: &World) {
    let metrics = world.registry.render();
    let workers = "controller_runtime_max_concurrent_reconciles{controller=\"sample-controller\"} 2";
    assert!(metrics.contains(workers), "{metrics}");
}

async fn criterion_9_foo_without_deployment_name_is_not_retried(world: &World) {
    world.create("a", "", Some(1)).await;
    world.until(|status| status.succeeded == 1).await;
    let status = world.controller.status();
    assert_eq!((status.failed, status.queue.delayed), (0, 0));
    // A change queues the Foo again.
    world.patch_foo("a", json!({"spec": {"deploymentName": "web"}})).await;
    world.deployment("web", wants(1)).await;
}

async fn criterion_10_and_15_deployment_matches_foo(world: &World) {
    let foo = world.create("a", "web", Some(2)).await;
    let made = world.deployment("web", |_| true).await;
    let owner = controller_of(&made.metadata).unwrap();
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str(), &owner.uid),
        ("Foo", "a", foo.metadata.uid.as_ref().unwrap())
    );
    assert_eq!(
        (owner.api_version.as_str(), owner.block_owner_deletion),
        ("samplecontroller.k8s.io/v1alpha1", Some(true))
    );
    let labels = made.spec.selector.match_labels.unwrap();
    assert_eq!((labels["app"].as_str(), labels["controller"].as_str(), labels.len()), ("nginx", "a", 2));
    assert_eq!(made.spec.template.metadata.unwrap().labels.unwrap(), labels);
    let containers = made.spec.template.spec.unwrap().containers;
    assert_eq!((containers[0].name.as_str(), containers[0].image.as_deref()), ("nginx", Some("nginx:latest")));
    assert_eq!((made.spec.replicas, made.metadata.labels), (Some(2), None));
    if world.embedded.is_none() {
        let managers = made.metadata.managed_fields.unwrap();
        assert_eq!(managers[0].manager.as_deref(), Some("sample-controller"));
    }
}

async fn criterion_11_foreign_deployment_warns_until_deleted(world: &World) {
    world.deployments.create(&foreign("web")).await.unwrap();
    world.create("a", "web", Some(1)).await;
    let event = world.events("a", "ErrResourceExists", 1).await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.message.as_deref(), Some("Resource \"web\" already exists and is not managed by Foo"));
    // Each retry records a warning.
    world.until(|status| status.failed >= 3).await;
    world.events("a", "ErrResourceExists", 2).await;
    assert_eq!(world.deployment("web", |_| true).await.spec.replicas, Some(3), "it is not ours");
    world.deployments.delete("web").await.unwrap();
    let ours = |deployment: &Deployment| controller_of(&deployment.metadata).is_some_and(|owner| owner.name == "a");
    world.deployment("web", ours).await;
}

async fn criterion_12_update_replaces_whole_deployment(world: &World) {
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    let marks =
        json!({"metadata": {"labels": {"mine": "yes"}, "annotations": {"deployment.kubernetes.io/revision": "1"}}});
    world.patch_deployment("web", marks).await;
    world.patch_foo("a", json!({"spec": {"replicas": 4}})).await;
    let scaled = world.deployment("web", wants(4)).await;
    assert_eq!((scaled.metadata.labels, scaled.metadata.annotations), (None, None));
}

async fn criterion_12_foo_without_replicas_keeps_size(world: &World) {
    world.create("a", "web", None).await;
    world.synced("a").await;
    assert_eq!(world.deployment("web", |_| true).await.spec.replicas, Some(1), "the server's default");
    let before = world.controller.status().succeeded;
    world.patch_deployment("web", json!({"spec": {"replicas": 7}})).await;
    world.until(|status| status.succeeded > before).await;
    assert_eq!(world.deployment("web", |_| true).await.spec.replicas, Some(7));
}

async fn criterion_13_status_follows_deployment_without_extra_writes(world: &World) {
    world.create("a", "web", Some(3)).await;
    world.synced("a").await;
    let mut deployment = world.deployment("web", wants(3)).await;
    deployment.status =
        serde_json::from_value(json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 2})).unwrap();
    world.deployments.update_status(&deployment).await.unwrap();
    let two = Until::is(|foo: &Foo| foo.status.as_ref().is_some_and(|status| status.available_replicas == 2));
    let told = wait_for(&world.foos, "a", &two, LIMIT).await.unwrap().unwrap();
    // Another reconcile changes nothing, and therefore writes nothing.
    world.until(|status| status.queue.ready + status.queue.in_process == 0).await;
    let before = world.controller.status().succeeded;
    world.controller.request(klient::ObjectKey::of(&told));
    world.until(|status| status.succeeded > before).await;
    let again = world.foos.get("a").await.unwrap();
    assert_eq!(again.metadata.resource_version, told.metadata.resource_version);
}

async fn criterion_14_success_is_recorded_as_event(world: &World) {
    world.create("a", "web", Some(1)).await;
    let event = world.events("a", "Synced", 1).await;
    assert_eq!((event.type_.as_deref(), event.message.as_deref()), (Some("Normal"), Some("Foo synced successfully")));
}

async fn criterion_16_replicas_follow_foo_and_are_restored(world: &World) {
    world.create("a", "web", Some(1)).await;
    world.deployment("web", wants(1)).await;
    world.patch_foo("a", json!({"spec": {"replicas": 2}})).await;
    world.deployment("web", wants(2)).await;
    let drifted = world.patch_deployment("web", json!({"spec": {"replicas": 9}})).await;
    let back = world.deployment("web", wants(2)).await;
    assert_ne!(back.metadata.resource_version, drifted.metadata.resource_version);
}

async fn criterion_16_deleted_deployment_is_recreated(world: &World) {
    world.create("a", "web", Some(1)).await;
    let first = world.deployment("web", |_| true).await.metadata.uid;
    world.deployments.delete("web").await.unwrap();
    world.deployment("web", move |deployment| deployment.metadata.uid != first).await;
}

async fn criterion_16_new_name_creates_another_deployment(world: &World) {
    let foo = world.create("a", "web", Some(1)).await;
    world.deployment("web", |_| true).await;
    world.patch_foo("a", json!({"spec": {"deploymentName": "site"}})).await;
    world.deployment("site", wants(1)).await;
    let old = world.deployment("web", |_| true).await;
    assert_eq!(Some(&controller_of(&old.metadata).unwrap().uid), foo.metadata.uid.as_ref());
}

async fn criterion_16_replicas_out_of_bounds_are_refused(world: &World) {
    for replicas in [0, 11] {
        let refused = world.foos.create(&Foo::new("a", FooSpec::new("web", Some(replicas)))).await;
        assert_eq!(refused.unwrap_err().status().unwrap().code, 422);
    }
}

async fn criterion_16_collector_deletes_deployment_of_deleted_foo(world: &World) {
    world.create("a", "web", Some(1)).await;
    world.synced("a").await;
    world.until(|status| status.queue.ready + status.queue.in_process == 0).await;
    let before = world.controller.status().succeeded;
    world.foos.delete("a").await.unwrap();
    if world.embedded.is_some() {
        wait_for(&world.deployments, "web", &Until::absent(), LIMIT).await.unwrap();
        // Only the deletion of the Deployment was reconciled.
        assert!(world.controller.status().succeeded <= before + 1);
    } else {
        // The real kube-apiserver has no collector: that is another process.
        wait_for(&world.foos, "a", &Until::absent(), LIMIT).await.unwrap();
        let filtered = "klient_controller_filtered_events_total{controller=\"sample-controller\"} 1";
        world.until(|_| world.registry.render().contains(filtered)).await;
        assert_eq!(world.controller.status().succeeded, before, "a Foo that is gone is not looked at");
        world.deployment("web", |_| true).await;
    }
}
