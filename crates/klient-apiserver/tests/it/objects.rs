//! Objects are created, read, updated and deleted as on a real server.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ComponentStatus, ConfigMap, Namespace, Pod, Secret},
};
use klient::{
    Api, Client, Patch,
    client::{Deleted, Pager},
    object::DynamicObject,
    options::{DeleteOptions, ListOptions, PatchOptions, PropagationPolicy},
    request::Target,
    resource::{ApiResource, GroupVersionKind, Scope},
};
use serde_json::{Value, json};

use crate::server::started;

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"k": "v"}})).unwrap()
}

async fn create(api: &Api<ConfigMap>, name: &str) -> ConfigMap {
    api.create(&map(name)).await.unwrap()
}

#[tokio::test]
async fn components_are_healthy() {
    let components: Api<ComponentStatus> = Api::cluster(started().await);
    let all = components.list().await.unwrap().items;
    let names: Vec<_> = all.into_iter().filter_map(|item| item.metadata.name).collect();
    assert_eq!(names, ["scheduler", "controller-manager", "etcd-0"]);
    let chosen = components.list().fields("metadata.name=etcd-0").await.unwrap();
    assert_eq!(chosen.items.len(), 1);
    let etcd = components.get("etcd-0").await.unwrap();
    assert_eq!(etcd.conditions.unwrap()[0].status, "True");
    assert!(components.get("kubelet").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn messages_show_empty_values_as_they_were_sent() {
    let client = started().await.to_builder().json_only().build();
    let resource = ApiResource::new(GroupVersionKind::new("apps", "v1", "DaemonSet"), "daemonsets", Scope::Namespaced);
    let sets = Api::<DynamicObject>::dynamic(client, resource, Target::Namespace("default".to_owned()));
    for (labels, shown) in [(json!({}), "{}"), (Value::Null, "null")] {
        let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"}, "spec":
            {"selector": {"matchLabels": {"app": "a"}}, "template":
                {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}}});
        let refused = sets.create(&serde_json::from_value(set).unwrap()).await.unwrap_err().to_string();
        let expected = format!("spec.template.metadata.labels: Invalid value: {shown}: `selector` does not match");
        assert!(refused.contains(&expected), "{refused}");
    }
}

#[tokio::test]
async fn counters_of_a_replication_controller_are_validated() {
    let client = started().await.to_builder().json_only().build();
    let resource = ApiResource::new(
        GroupVersionKind::new("", "v1", "ReplicationController"),
        "replicationcontrollers",
        Scope::Namespaced,
    );
    let controllers = Api::<DynamicObject>::dynamic(client, resource, Target::Namespace("default".to_owned()));
    let controller = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec":
        {"selector": {"app": "a"}, "template":
            {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}}});
    controllers.create(&serde_json::from_value(controller).unwrap()).await.unwrap();
    let status = json!({"status": {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 0, "availableReplicas": 1,
        "observedGeneration": -1}});
    let refused = controllers.status().patch("a", Patch::merge(status)).await.unwrap_err().to_string();
    for expected in [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas",
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn object_is_created_read_updated_and_deleted() {
    for client in [started().await, started().await.to_builder().json_only().build()] {
        let maps = maps(&client);
        let made = create(&maps, "web").await;
        assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
        assert_eq!(maps.get("web").await.unwrap(), made);
        let mut changed = made.clone();
        changed.data.as_mut().unwrap().insert("k".to_owned(), "w".to_owned());
        let updated = maps.update(&changed).await.unwrap();
        assert_ne!(updated.metadata.resource_version, made.metadata.resource_version);
        let conflict = maps.update(&changed).await.unwrap_err();
        assert!(conflict.is_conflict(), "{conflict}");
        assert!(maps.create(&map("web")).await.unwrap_err().is_already_exists());
        let gone = maps.delete("web").await.unwrap();
        assert!(matches!(gone, Deleted::Status(status) if status.is_success()));
        assert!(maps.get("web").await.unwrap_err().is_not_found());
        assert!(maps.delete("web").await.unwrap_err().is_not_found());
    }
}

#[tokio::test]
async fn update_without_changes_keeps_version() {
    let maps = maps(&started().await);
    let made = create(&maps, "web").await;
    let same = maps.update(&made).await.unwrap();
    assert_eq!(same.metadata.resource_version, made.metadata.resource_version);
}

#[tokio::test]
async fn patches_of_every_type_are_applied() {
    let client = started().await;
    let maps = maps(&client);
    create(&maps, "web").await;
    let options = PatchOptions::default();
    let merge = Patch::merge(json!({"data": {"k": null, "n": "1"}}));
    let patched = maps.patch("web", merge.clone()).options(options.clone()).await.unwrap();
    assert_eq!(serde_json::to_value(&patched.data).unwrap(), json!({"n": "1"}));
    let json: Patch = serde_json::from_value::<Vec<klient::patch::JsonPatchOperation>>(
        json!([{"op": "add", "path": "/data/m", "value": "2"}, {"op": "test", "path": "/data/n", "value": "1"}]),
    )
    .map(Patch::json)
    .unwrap();
    let patched = maps.patch("web", json.clone()).options(options.clone()).await.unwrap();
    assert_eq!(serde_json::to_value(&patched.data).unwrap(), json!({"m": "2", "n": "1"}));
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "one", "image": "x:1"}, {"name": "two", "image": "y:1"}]}}}}))
    .unwrap();
    let made = deployments.create(&deployment).await.unwrap();
    assert_eq!((made.metadata.generation, made.spec.replicas), (Some(1), Some(1)));
    let strategic =
        Patch::strategic(json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "y:2"}]}}}}));
    let patched = deployments.patch("web", strategic.clone()).options(options.clone()).await.unwrap();
    let containers = patched.spec.template.spec.unwrap().containers;
    assert_eq!(
        containers.iter().filter_map(|container| container.image.as_deref()).collect::<Vec<_>>(),
        ["x:1", "y:2"]
    );
    assert_eq!(patched.metadata.generation, Some(2));
    let scaled = deployments
        .scale()
        .patch("web", Patch::merge(json!({"spec": {"replicas": 4}})))
        .options(options.clone())
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(4));
    assert_eq!(deployments.get("web").await.unwrap().spec.replicas, Some(4));
}

#[tokio::test]
async fn list_selects_and_pages_objects() {
    let client = started().await;
    let maps = maps(&client);
    for number in 0..25 {
        create(&maps, &format!("map-{number:02}")).await;
    }
    let selected = maps.list().labels("app in (map-03, map-07)").await.unwrap();
    assert_eq!(selected.items.len(), 2);
    let one = maps.list().fields("metadata.name=map-11").await.unwrap();
    assert_eq!(one.items[0].metadata.name.as_deref(), Some("map-11"));
    let mut pager = Pager::new(maps.clone(), ListOptions::default().limit(7));
    let mut sizes = Vec::new();
    while let Some(page) = pager.next_page().await.unwrap() {
        if sizes.is_empty() {
            // Created after the first page, and therefore not part of this list.
            create(&maps, "map-24-later").await;
        }
        sizes.push(page.items.len());
    }
    assert_eq!(sizes, [7, 7, 7, 4]);
    assert_eq!(Api::<ConfigMap>::all(client).list().await.unwrap().items.len(), 26);
}

#[tokio::test]
async fn finalizers_keep_object_until_removed() {
    let maps = maps(&started().await);
    let mut held = map("held");
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    maps.create(&held).await.unwrap();
    let waiting = maps.delete("held").await.unwrap();
    assert!(matches!(waiting, Deleted::Object(object) if object.metadata.deletion_timestamp.is_some()));
    let none = Patch::merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", none.clone()).await.unwrap();
    assert!(maps.get("held").await.unwrap_err().is_not_found());
}

/// Waits for the garbage collector, which runs asynchronously.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it did not come to be so");
}

#[tokio::test]
async fn namespace_waits_for_finalizers_of_others() {
    let namespaces: Api<Namespace> = Api::cluster(started().await);
    let held = json!({"metadata": {"name": "held"}, "spec": {"finalizers": ["example.com/hold"]}});
    namespaces.create(&serde_json::from_value(held).unwrap()).await.unwrap();
    namespaces.delete("held").await.unwrap();
    let finalizers = async || namespaces.get("held").await.unwrap().spec.unwrap().finalizers.unwrap();
    eventually(async || finalizers().await == ["example.com/hold"]).await;
    // The collector has finished only if more of its turns change nothing.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(finalizers().await, ["example.com/hold"]);
}

#[tokio::test]
async fn collector_deletes_objects_without_owners() {
    let client = started().await;
    let maps = maps(&client);
    let owner = create(&maps, "owner").await;
    let mut owned = map("owned");
    owned.metadata.owner_references = serde_json::from_value(json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "owner", "uid": owner.metadata.uid, "blockOwnerDeletion": true}]))
    .unwrap();
    maps.create(&owned).await.unwrap();
    maps.delete("owner").await.unwrap();
    eventually(async || maps.get_opt("owned").await.unwrap().is_none()).await;

    let owner = create(&maps, "owner").await;
    owned.metadata.owner_references.as_mut().unwrap()[0].uid = owner.metadata.uid.unwrap();
    maps.create(&owned).await.unwrap();
    let foreground = DeleteOptions::default().propagation_policy(PropagationPolicy::Foreground);
    assert!(matches!(maps.delete("owner").options(foreground).await.unwrap(), Deleted::Object(_)));
    eventually(async || maps.get_opt("owner").await.unwrap().is_none()).await;
    assert!(maps.get_opt("owned").await.unwrap().is_none());

    let owner = create(&maps, "owner").await;
    owned.metadata.owner_references.as_mut().unwrap()[0].uid = owner.metadata.uid.unwrap();
    maps.create(&owned).await.unwrap();
    let orphan = DeleteOptions::default().propagation_policy(PropagationPolicy::Orphan);
    maps.delete("owner").options(orphan).await.unwrap();
    eventually(async || maps.get_opt("owner").await.unwrap().is_none()).await;
    assert_eq!(maps.get("owned").await.unwrap().metadata.owner_references, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphan_that_changes_meanwhile_is_not_deleted() {
    let client = started().await;
    let maps = maps(&client);
    let deleted = async |name: &str| {
        let gone = async {
            while maps.get_opt(name).await.unwrap().is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap();
    };
    let owned_by = async |owner: &str, name: &str| {
        let uid = create(&maps, owner).await.metadata.uid;
        let mut owned = map(name);
        let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid}]);
        owned.metadata.owner_references = serde_json::from_value(reference).unwrap();
        maps.create(&owned).await.unwrap();
    };
    for round in 0..50 {
        owned_by("owner", "orphan").await;
        let writer = tokio::spawn({
            let maps = maps.clone();
            async move {
                for number in 0..20 {
                    let patch = json!({"data": {"k": number.to_string()}});
                    maps.patch("orphan", Patch::merge(patch)).await.unwrap();
                }
            }
        });
        let orphan = DeleteOptions::default().propagation_policy(PropagationPolicy::Orphan);
        maps.delete("owner").options(orphan).await.unwrap();
        deleted("owner").await;
        writer.await.unwrap();
        // The collector does one thing after the other: once it has deleted this, it is done with the orphan.
        owned_by("other", "dependent").await;
        maps.delete("other").await.unwrap();
        deleted("dependent").await;
        let orphan = maps.get_opt("orphan").await.unwrap();
        assert_eq!(orphan.map(|orphan| orphan.metadata.owner_references), Some(None), "round {round}");
        maps.delete("orphan").await.unwrap();
    }
}

#[tokio::test]
async fn namespace_deletion_deletes_its_objects() {
    let client = started().await;
    let namespaces: Api<Namespace> = Api::cluster(client.clone());
    let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    let made = namespaces.create(&shop).await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Active"));
    let inside: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    create(&inside, "a").await;
    namespaces.delete("shop").await.unwrap();
    eventually(async || namespaces.get_opt("shop").await.unwrap().is_none()).await;
    assert!(inside.get_opt("a").await.unwrap().is_none());
    let missing = inside.create(&map("b")).await.unwrap_err();
    assert!(missing.is_not_found() && missing.to_string().contains("namespaces \"shop\""), "{missing}");
    assert!(namespaces.delete("default").await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn custom_kind_is_served_once_defined() {
    let client = started().await;
    let definitions = ApiResource::new(
        GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
        Scope::Cluster,
    );
    let definitions = Api::<DynamicObject>::dynamic(client.clone(), definitions, Target::Cluster);
    let definition: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1},
                        "color": {"type": "string", "default": "red"}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}))
    .unwrap();
    definitions.create(&definition).await.unwrap();
    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
    let api = Api::<DynamicObject>::dynamic(client.clone(), widgets, Target::Namespace("default".to_owned()));
    let widget = |spec: Value| -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": spec, "status": {"x": 1}}))
        .unwrap()
    };
    let made = api.create(&widget(json!({"size": 2, "odd": 1}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 2, "color": "red"}));
    assert_eq!((made.data.get("status"), made.metadata.generation), (None, Some(1)));
    let invalid = api.create(&widget(json!({"size": 0}))).await.unwrap_err();
    assert!(invalid.is_invalid() && invalid.to_string().contains("spec.size"), "{invalid}");
    let status = Patch::merge(json!({"status": {"x": 2}, "spec": {"size": 9}}));
    let patched = api.status().patch("a", status.clone()).await.unwrap();
    assert_eq!((&patched.data["status"]["x"], &patched.data["spec"]["size"]), (&json!(2), &json!(2)));
    assert_eq!(patched.metadata.generation, Some(1));
    definitions.delete("widgets.example.com").await.unwrap();
    eventually(async || definitions.get_opt("widgets.example.com").await.unwrap().is_none()).await;
    assert!(api.get("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn create_generates_names_and_encodes_string_data() {
    let client = started().await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"generateName": "token-"}, "stringData": {"a": "b"}})).unwrap();
    let made = secrets.create(&secret).await.unwrap();
    let name = made.metadata.name.unwrap();
    assert!(name.starts_with("token-") && name.len() == 11, "{name}");
    assert_eq!(made.data.unwrap()["a"].0, b"b");
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    let dry = secrets.create(&secret).dry_run().await.unwrap();
    assert!(secrets.get_opt(&dry.metadata.name.unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn pod_is_bound_and_evicted() {
    let client = started().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let pod: Pod = serde_json::from_value(
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}),
    )
    .unwrap();
    let made = pods.create(&pod).await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    let binding = serde_json::from_value(json!({"metadata": {"name": "web"}, "target": {"name": "node-1"}})).unwrap();
    pods.bind(&binding).await.unwrap();
    assert_eq!(pods.get("web").await.unwrap().spec.unwrap().node_name.as_deref(), Some("node-1"));
    assert!(pods.bind(&binding).await.unwrap_err().is_conflict());
    pods.evict("web").await.unwrap();
    assert!(pods.get("web").await.unwrap().metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn token_review_knows_only_configured_tokens() {
    use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview};

    let server = klient_apiserver::ApiServer::builder().token("secret", "jane").start().await.unwrap();
    let auth = klient::client::auth::StaticAuth::bearer("secret").unwrap();
    let client = crate::server::client(&server).to_builder().auth(auth).build();
    let me: Api<SelfSubjectReview> = Api::cluster(client.clone());
    let me = me.create(&SelfSubjectReview::default()).await.unwrap();
    assert_eq!(me.status.unwrap().user_info.unwrap().username.as_deref(), Some("jane"));
    let reviews: Api<TokenReview> = Api::cluster(client);
    for (token, user) in [("secret", Some("jane")), ("another", None)] {
        let review: TokenReview = serde_json::from_value(json!({"spec": {"token": token}})).unwrap();
        let status = reviews.create(&review).await.unwrap().status.unwrap();
        assert_eq!(status.authenticated.unwrap_or_default(), user.is_some());
        assert_eq!(status.user.and_then(|user| user.username).as_deref(), user);
    }
}
