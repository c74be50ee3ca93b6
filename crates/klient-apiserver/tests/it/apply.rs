//! Server-side apply and managed fields, through the client. `tests/differential` compares them with the real server.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use klient::{Api, Client, Patch, wire::ManagedFields};
use klient_apiserver::ApiServer;
use klient_apply::{apps::v1::DeploymentApply, core::v1::ConfigMapApply};
use serde_json::{Value, json};

async fn client() -> (ApiServer, Client) {
    let server = ApiServer::start().await.unwrap();
    let client = Client::from_service(server.service()).to_builder().managed_fields(ManagedFields::Keep).build();
    (server, client)
}

fn data(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

/// Returns the managers of an object and their fields.
fn owners<K: serde::Serialize>(object: &K) -> Vec<(String, Value)> {
    let object = serde_json::to_value(object).unwrap();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owner = |entry: &Value| {
        let [manager, operation] = ["manager", "operation"].map(|name| entry[name].as_str().unwrap());
        let subresource = entry["subresource"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
        (format!("{manager} {operation}{subresource}"), entry["fieldsV1"].clone())
    };
    entries.iter().map(owner).collect()
}

#[tokio::test]
async fn apply_conflicts_with_other_manager_unless_forced() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.apply(&data(&json!({"k": "1"}))).manager("one").await.unwrap();
    let error = maps.apply(&data(&json!({"k": "2"}))).manager("two").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let cause = &error.status().unwrap().causes()[0];
    assert_eq!((cause.field.as_str(), cause.message.as_str()), (".data.k", "conflict with \"one\""));
    let forced = maps.apply(&data(&json!({"k": "2"}))).manager("two").force().await.unwrap();
    assert_eq!(owners(&forced), [("two Apply".to_owned(), json!({"f:data": {"f:k": {}}}))]);
}

#[tokio::test]
async fn apply_removes_fields_that_manager_alone_owned() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.apply(&data(&json!({"mine": "1", "ours": "2"}))).manager("one").await.unwrap();
    maps.apply(&data(&json!({"ours": "2"}))).manager("two").await.unwrap();
    let less = maps.apply(&data(&json!({}))).manager("one").await.unwrap();
    assert_eq!(serde_json::to_value(less.data).unwrap(), json!({"ours": "2"}));
}

#[tokio::test]
async fn repeated_apply_writes_nothing() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let first = maps.apply(&data(&json!({"k": "1"}))).manager("one").await.unwrap();
    let second = maps.apply(&data(&json!({"k": "1"}))).manager("one").await.unwrap();
    assert_eq!(first.metadata, second.metadata);
}

#[tokio::test]
async fn object_has_at_most_ten_update_managers() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.apply(&data(&json!({"k": "1"}))).manager("one").await.unwrap();
    for index in 0..13 {
        let patch = Patch::merge(json!({"data": {(format!("k{index:02}")): "v"}}));
        maps.patch("a", patch).manager(format!("m{index:02}")).await.unwrap();
    }
    let owners = owners(&maps.get("a").await.unwrap());
    assert_eq!(owners.len(), 11);
    let merged = &owners.iter().find(|(owner, _)| owner == "ancient-changes Update").unwrap().1;
    assert_eq!(merged["f:data"], json!({"f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}}));
}

#[tokio::test]
async fn scale_and_status_have_owners_of_their_own() {
    let (_server, client) = client().await;
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let configuration = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    deployments.apply(&configuration).manager("one").await.unwrap();
    deployments.scale().patch("a", Patch::merge(json!({"spec": {"replicas": 5}}))).manager("scaler").await.unwrap();
    let status = Patch::merge(json!({"status": {"replicas": 5}}));
    deployments.status().patch("a", status).manager("control").await.unwrap();
    let owners = owners(&deployments.get("a").await.unwrap());
    let fields = |name: &str| owners.iter().find(|(owner, _)| owner == name).map(|(_, fields)| fields.clone());
    assert_eq!(fields("scaler Update scale"), Some(json!({"f:spec": {"f:replicas": {}}})));
    assert_eq!(fields("control Update status"), Some(json!({"f:status": {"f:replicas": {}}})));
    assert_eq!(fields("one Apply").unwrap()["f:spec"].get("f:replicas"), None);
    let error = deployments.apply(&configuration).manager("one").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
}

#[tokio::test]
async fn malformed_entries_of_request_are_ignored() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let before = maps.apply(&data(&json!({"k": "1"}))).manager("one").await.unwrap();
    for fields in [json!({"nonsense": {}}), json!({"k:{": {}}), json!({"f:a": {"v:": {}}}), json!({"i:x": {}})] {
        let entry = json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": fields});
        let patch = Patch::merge(json!({"metadata": {"managedFields": [entry]}}));
        let after = maps.patch("a", patch).await.unwrap();
        assert_eq!(owners(&after), owners(&before));
    }
}

#[tokio::test]
async fn typed_configuration_is_extracted_as_it_was_applied() {
    let (_server, client) = client().await;
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let web = DeploymentApply::new("web", "default").spec(|spec| {
        spec.replicas(2).selector(|selector| selector.match_labels([("app", "web")])).template(|template| {
            template.metadata(|metadata| metadata.labels([("app", "web")])).spec(|pod| {
                pod.container("server", |server| {
                    server
                        .image("x:1")
                        .env("A", |variable| variable.value("1"))
                        .port(80, "TCP", |port| port.name("http"))
                })
            })
        })
    });
    let live = deployments.apply(&web).manager("one").await.unwrap();
    assert_eq!(DeploymentApply::extract(&live, "one").unwrap(), web);
    let other = DeploymentApply::extract(&live, "two").unwrap();
    assert_eq!(other, DeploymentApply::new("web", "default"));
    // What was extracted can be changed and applied again.
    let scaled = DeploymentApply::extract(&live, "one").unwrap().spec(|spec| spec.replicas(5));
    let live = deployments.apply(&scaled).manager("one").await.unwrap();
    assert_eq!(live.spec.replicas, Some(5));
}

#[tokio::test]
async fn unchanged_configuration_is_not_sent() {
    let (server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let path = ("PATCH".to_owned(), "/api/v1/namespaces/default/configmaps/a".to_owned());
    let sent = || server.requests().get(&path).copied().unwrap_or_default();
    let settings = ConfigMapApply::new("a", "default").data([("k", "1")]);
    let live = maps.apply(&settings).manager("one").await.unwrap();
    assert!(maps.apply(&settings).manager("one").if_changed(&live).await.unwrap().is_none());
    assert_eq!(sent(), 1);
    // Another manager, and another value, are changes.
    assert!(maps.apply(&settings).manager("two").if_changed(&live).await.unwrap().is_some());
    let changed = ConfigMapApply::new("a", "default").data([("k", "2")]);
    assert!(maps.apply(&changed).manager("one").force().if_changed(&live).await.unwrap().is_some());
    let live = maps.get("a").await.unwrap();
    // A field that another manager has taken over is applied again, and conflicts.
    let error = maps.apply(&settings).manager("two").if_changed(&live).await.unwrap_err();
    let conflicts = error.status().unwrap().field_conflicts();
    assert_eq!((conflicts[0].manager.as_str(), conflicts[0].field.as_str()), ("one", ".data.k"));
    assert_eq!(sent(), 4);
}

#[tokio::test]
async fn configuration_without_name_is_refused_before_it_is_sent() {
    let (_server, client) = client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let error = maps.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).manager("one").await.unwrap_err();
    assert!(error.to_string().contains("metadata.name"), "{error}");
}
