//! The options of requests, as the real server interprets them, in both encodings.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use klient::{
    Api, Client, Clientset, Patch,
    client::{Deleted, http::Warning},
    object::{DynamicObject, VersionMatch},
    options::{
        ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions,
        PatchOptions, PropagationPolicy,
    },
    request::Target,
    resource::ApiResource,
    status::StatusCause,
};
use serde_json::{Value, json};

use crate::cluster::{both_clients, client, config, namespace, or_skip};

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"key": "old"}})).unwrap()
}

fn deployment_fields(replicas: i32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
    }})
}

async fn maps_in(client: &Client, namespace_name: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), &namespace(client, namespace_name).await)
}

#[tokio::test]
async fn dry_run_returns_the_result_and_changes_nothing() {
    for (form, client) in or_skip!(both_clients()) {
        let maps = maps_in(&client, &format!("options-dry-{form}")).await;
        let dry = maps.create(&map("a")).dry_run().await.unwrap();
        assert!(dry.metadata.uid.is_some());
        assert_eq!(maps.get_opt("a").await.unwrap(), None);

        let made = maps.create(&map("a")).await.unwrap();
        let mut changed = made.clone();
        changed.data.as_mut().unwrap().insert("key".to_owned(), "new".to_owned());
        let updated = maps.update(&changed).dry_run().await.unwrap();
        assert_eq!(updated.data, changed.data);
        let patch = Patch::merge(json!({"data": {"key": "new"}}));
        let patched = maps.patch("a", patch.clone()).dry_run().await.unwrap();
        assert_eq!(patched.data, changed.data);
        let fields = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"more": "x"}});
        let applied = maps.apply(&fields).manager("one").dry_run().await.unwrap();
        assert_eq!(applied.data.unwrap().len(), 2);
        let dry = DeleteOptions::default().dry_run();
        maps.delete("a").options(dry.clone()).await.unwrap();
        maps.delete_collection().options(DeleteCollectionOptions::default().delete(dry)).await.unwrap();
        assert_eq!(maps.get("a").await.unwrap(), made);
    }
}

#[tokio::test]
async fn field_validation_rejects_warns_or_ignores() {
    let config = or_skip!(config());
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let client = Client::builder_from_config(&config)
        .unwrap()
        .warning_handler(move |warning: &Warning| heard.lock().unwrap().push(warning.text.clone()))
        .build();
    let target = Target::Namespace(namespace(&client, "options-fields").await);
    let deployments: Api<DynamicObject> = Api::dynamic(client, ApiResource::of::<Deployment>(), target);
    let mut fields = deployment_fields(1);
    fields["spec"]["repliicas"] = json!(2);
    let object: DynamicObject = serde_json::from_value(fields).unwrap();

    let options = |validation| CreateOptions::default().dry_run().field_validation(validation);
    let refused = deployments.create(&object).options(options(FieldValidation::Strict).clone()).await.unwrap_err();
    assert!(refused.is_invalid() && refused.to_string().contains("unknown field \"spec.repliicas\""), "{refused}");
    deployments.create(&object).options(options(FieldValidation::Ignore).clone()).await.unwrap();
    assert_eq!(*warnings.lock().unwrap(), [""; 0]);
    for _ in 0..2 {
        deployments.create(&object).options(options(FieldValidation::Warn).clone()).await.unwrap();
    }
    assert_eq!(*warnings.lock().unwrap(), ["unknown field \"spec.repliicas\""]);

    deployments.apply(&deployment_fields(1)).manager("one").await.unwrap();
    let patch = Patch::merge(json!({"spec": {"pauused": true}}));
    let strict = PatchOptions::default().field_validation(FieldValidation::Strict);
    let refused = deployments.patch("web", patch.clone()).options(strict.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("unknown field \"spec.pauused\""), "{refused}");
}

#[tokio::test]
async fn delete_checks_its_preconditions() {
    for (form, client) in or_skip!(both_clients()) {
        let maps = maps_in(&client, &format!("options-preconditions-{form}")).await;
        let made = maps.create(&map("a")).await.unwrap();
        let patch = Patch::merge(json!({"data": {"key": "new"}}));
        let newer = maps.patch("a", patch.clone()).await.unwrap();
        let version = |map: &ConfigMap| map.metadata.resource_version.clone().unwrap();
        for wrong in [
            DeleteOptions::default().uid("another"),
            DeleteOptions::default().resource_version(version(&made)),
            DeleteOptions::default().uid("another").resource_version(version(&newer)),
        ] {
            let refused = maps.delete("a").options(wrong).await.unwrap_err();
            assert!(refused.is_conflict(), "{refused}");
        }
        let right = DeleteOptions::default().uid(made.metadata.uid.unwrap()).resource_version(version(&newer));
        assert!(
            matches!(maps.delete("a").options(right).await.unwrap(), Deleted::Status(status) if status.is_success())
        );
    }
}

#[tokio::test]
async fn propagation_policy_sets_finalizers() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("options-propagation-{form}")).await;
        let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
        for (policy, finalizer) in [
            (PropagationPolicy::Orphan, Some("orphan")),
            (PropagationPolicy::Foreground, Some("foregroundDeletion")),
            (PropagationPolicy::Background, None),
        ] {
            let name = format!("web-{}", policy.as_str().to_lowercase());
            let mut fields = deployment_fields(0);
            fields["metadata"]["name"] = json!(name);
            deployments.apply(&fields).manager("one").await.unwrap();
            let options = DeleteOptions::default().propagation_policy(policy);
            match (deployments.delete(&name).options(options.clone()).await.unwrap(), finalizer) {
                // The garbage collector, which would remove the finalizer, does not run here.
                (Deleted::Object(left), Some(finalizer)) => {
                    assert_eq!(left.metadata.finalizers.unwrap(), [finalizer]);
                    assert!(left.metadata.deletion_timestamp.is_some());
                }
                (Deleted::Status(status), None) => assert!(status.is_success()),
                (left, _) => panic!("{policy:?}: {left:?}"),
            }
        }
    }
}

#[tokio::test]
async fn read_has_the_requested_version() {
    for (form, client) in or_skip!(both_clients()) {
        let maps = maps_in(&client, &format!("options-versions-{form}")).await;
        maps.create(&map("a")).await.unwrap();
        let before = maps.list().await.unwrap().resource_version();
        let newest = maps.create(&map("b")).await.unwrap().metadata.resource_version.unwrap();
        let count = async |version| maps.list().version(version).await.unwrap().items.len();
        assert_eq!(count(VersionMatch::Exact(before)).await, 1);
        assert_eq!(count(VersionMatch::NotOlderThan(newest.clone().into())).await, 2);
        assert_eq!(count(VersionMatch::MostRecent).await, 2);
        assert!((0..=2).contains(&count(VersionMatch::Any).await));
        let not_older = GetOptions::default().version(VersionMatch::NotOlderThan(newest.clone().into()));
        maps.get("b").options(not_older).await.unwrap();

        // The server waits briefly for a version that it has not reached, and then responds with a timeout.
        let future = newest.parse::<u64>().unwrap() + 1_000_000_000;
        let options = ListOptions::default().version(VersionMatch::NotOlderThan(future.to_string().into()));
        let request = client.rest().get().resource(maps.resource()).max_retries(0);
        let error = request.options(|query| options.append_query(query)).list::<ConfigMap>().await.unwrap_err();
        assert!(error.is_timeout() && error.status().unwrap().is_version_too_large(), "{error:?}");
    }
}

#[tokio::test]
async fn page_has_the_remaining_count_and_a_stable_version() {
    for (form, client) in or_skip!(both_clients()) {
        let maps = maps_in(&client, &format!("options-pages-{form}")).await;
        for name in ["a", "b", "c", "d", "e"] {
            maps.create(&map(name)).await.unwrap();
        }
        let first = maps.list().limit(2).await.unwrap();
        assert_eq!((first.items.len(), first.remaining_item_count()), (2, Some(3)));
        maps.create(&map("f")).await.unwrap();
        let rest = ListOptions::default().continue_token(first.continue_token().unwrap());
        let rest = maps.list().options(rest).await.unwrap();
        let names: Vec<_> = rest.iter().map(|map| map.metadata.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["c", "d", "e"]);
        assert_eq!(rest.resource_version(), first.resource_version());
    }
}

#[tokio::test]
async fn field_managers_conflict_unless_forced() {
    for (form, client) in or_skip!(both_clients()) {
        let namespace = namespace(&client, &format!("options-apply-{form}")).await;
        let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
        let apply = async |options: ApplyOptions, replicas| {
            deployments.apply(&deployment_fields(replicas)).options(options.clone()).await
        };
        assert_eq!(apply(ApplyOptions::new("one"), 2).await.unwrap().spec.replicas, Some(2));
        // An equal value is shared, a different one is not.
        apply(ApplyOptions::new("two"), 2).await.unwrap();
        let conflict = apply(ApplyOptions::new("two"), 3).await.unwrap_err();
        assert!(conflict.is_conflict() && conflict.status().unwrap().code == 409, "{conflict}");
        let causes = conflict.status().unwrap().causes();
        assert_eq!((causes.len(), causes[0].field.as_str()), (1, ".spec.replicas"));
        assert_eq!(causes[0].reason, StatusCause::FIELD_MANAGER_CONFLICT);
        assert!(causes[0].message.contains("\"one\""), "{causes:?}");
        let forced = apply(ApplyOptions::new("two").force(), 3).await.unwrap();
        assert_eq!(forced.spec.replicas, Some(3));
        assert!(apply(ApplyOptions::new("one"), 2).await.unwrap_err().is_conflict());
    }
}

#[tokio::test]
async fn default_field_manager_is_the_program() {
    let client = or_skip!(client()).to_builder().managed_fields(klient::wire::ManagedFields::Keep).build();
    let maps = maps_in(&client, "options-manager").await;
    let manager = |map: &ConfigMap| map.metadata.managed_fields.as_ref().unwrap()[0].manager.clone().unwrap();
    let program = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(manager(&maps.create(&map("a")).await.unwrap()), program);
    let options = CreateOptions::default().manager("me");
    assert_eq!(manager(&maps.create(&map("b")).options(options.clone()).await.unwrap()), "me");
}

#[tokio::test]
async fn clientset_lists_every_group() {
    for (_, client) in or_skip!(both_clients()) {
        let all = Clientset::new(client);
        let options = ListOptions::default().limit(1);
        macro_rules! list {
            ($($version:ident: $($cluster:ident)* / $($namespaced:ident)*;)*) => {
                $(
                    $(all.$version().$cluster().list().options(options.clone()).await.unwrap();)*
                    $(
                        all.$version().$namespaced("").list().options(options.clone()).await.unwrap();
                        all.$version().$namespaced("default").list().options(options.clone()).await.unwrap();
                    )*
                )*
            };
        }
        list! {
            core_v1: nodes namespaces persistent_volumes / pods services secrets endpoints events;
            apps_v1: / deployments daemon_sets stateful_sets replica_sets;
            batch_v1: / jobs cron_jobs;
            autoscaling_v2: / horizontal_pod_autoscalers;
            rbac_v1: cluster_roles cluster_role_bindings / roles role_bindings;
            networking_v1: ingress_classes / ingresses network_policies;
            storage_v1: storage_classes csi_drivers csi_nodes volume_attachments / csi_storage_capacities;
            policy_v1: / pod_disruption_budgets;
            coordination_v1: / leases;
            discovery_v1: / endpoint_slices;
            events_v1: / events;
            node_v1: runtime_classes /;
            scheduling_v1: priority_classes /;
            flowcontrol_v1: flow_schemas priority_level_configurations /;
            certificates_v1: certificate_signing_requests /;
            admissionregistration_v1: validating_webhook_configurations mutating_webhook_configurations /;
            apiextensions_v1: custom_resource_definitions /;
            apiregistration_v1: api_services /;
        }
    }
}
