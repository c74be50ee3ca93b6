//! The times of managers' entries: when they change, and which entries they put first.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::ConfigMap,
};
use klient::{Api, Client, Patch, wire::ManagedFields};
use klient_apiserver::{ApiServer, ManualClock};
use serde_json::{Value, json};

/// A server whose time passes only if a test says so.
struct World {
    _server: ApiServer,
    clock: Arc<ManualClock>,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2030-01-02T03:04:00Z".parse().unwrap()));
        let server = ApiServer::builder().clock(Arc::clone(&clock)).start().await.unwrap();
        let client = Client::from_service(server.service()).to_builder().managed_fields(ManagedFields::Keep).build();
        Self { _server: server, clock, client }
    }

    fn advance(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }
}

fn data(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

/// Returns manager, operation and time of each entry, in their order.
fn entries(object: &ConfigMap) -> Vec<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    entries
        .map(|entry| {
            let time = entry.time.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
            let [manager, operation] = [&entry.manager, &entry.operation].map(|text| text.clone().unwrap_or_default());
            format!("{manager} {operation} {}", time.trim_start_matches("2030-01-02T03:"))
        })
        .collect()
}

#[tokio::test]
async fn writes_without_a_change_keep_versions_and_times() {
    let world = World::new().await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), "default");
    let configuration = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let status = json!({"status": {"observedGeneration": 1}});
    let scale = json!({"spec": {"replicas": 5}});
    deployments.apply(&configuration).manager("applier").await.unwrap();
    // A scale has owners only if the replicas have one already. Its new entry has no time, and so comes first.
    let replicas = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}});
    deployments.patch("a", Patch::merge(replicas)).manager("merger").await.unwrap();
    deployments.status().patch("a", Patch::merge(status.clone())).manager("control").await.unwrap();
    deployments.scale().patch("a", Patch::merge(scale.clone())).manager("scaler").await.unwrap();
    let before = deployments.get("a").await.unwrap();
    let managers = before.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref());
    assert_eq!(managers.collect::<Vec<_>>(), ["applier", "scaler", "control", "merger"]);
    world.advance(5);
    deployments.apply(&configuration).manager("applier").await.unwrap();
    deployments.patch("a", Patch::merge(label.clone())).manager("merger").await.unwrap();
    deployments.patch("a", Patch::strategic(label)).manager("merger").await.unwrap();
    deployments.update(&before).manager("merger").await.unwrap();
    deployments.status().patch("a", Patch::merge(status)).manager("control").await.unwrap();
    deployments.scale().patch("a", Patch::merge(scale)).manager("scaler").await.unwrap();
    assert_eq!(deployments.get("a").await.unwrap().metadata, before.metadata);
    // A change is recorded with the time of now, and only for its manager.
    let other = json!({"metadata": {"labels": {"a": "c"}}});
    let after = deployments.patch("a", Patch::merge(other)).manager("merger").await.unwrap();
    let times = |object: &Deployment| -> Vec<(String, String)> {
        let entries = object.metadata.managed_fields.iter().flatten();
        let time = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.to_string();
        entries
            .map(|entry| (entry.manager.clone().unwrap(), entry.time.as_ref().map(time).unwrap_or_default()))
            .collect()
    };
    let changed: Vec<_> = times(&after).into_iter().filter(|entry| !times(&before).contains(entry)).collect();
    assert_eq!(changed, [("merger".to_owned(), "2030-01-02T03:04:05Z".to_owned())]);
}

#[tokio::test]
async fn scale_loses_times_if_that_changes_the_order() {
    let world = World::new().await;
    let sets: Api<ReplicaSet> = Api::namespaced(world.client.clone(), "default");
    let scale = || Patch::merge(json!({"spec": {"replicas": 2}}));
    // An owner of the replicas without a time comes first. The real server restores times if the order stays.
    for (name, manager, seconds, expected) in [
        ("same-second", "a", 0, ["a 2030-01-02T03:04:00Z", "m 2030-01-02T03:04:00Z"]),
        ("later-name", "z", 0, ["z ", "m 2030-01-02T03:04:00Z"]),
        ("later", "a", 2, ["a ", "m 2030-01-02T03:04:00Z"]),
    ] {
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let set: ReplicaSet = serde_json::from_value(set).unwrap();
        sets.create(&set).manager("m").await.unwrap();
        world.advance(seconds);
        sets.patch(name, scale()).manager(manager).await.unwrap();
        sets.scale().patch(name, scale()).manager("scaler").await.unwrap();
        let found = sets.get(name).await.unwrap();
        let entries = found.metadata.managed_fields.iter().flatten();
        let times = entries.map(|entry| {
            let time = entry.time.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
            format!("{} {time}", entry.manager.as_deref().unwrap_or_default())
        });
        assert_eq!(times.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[tokio::test]
async fn entries_are_sorted_by_operation_time_and_manager() {
    let world = World::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    maps.apply(&data(&json!({"y": "1"}))).manager("y").await.unwrap();
    let set = |key: &str, value: &str| Patch::merge(json!({"data": {key: value}}));
    maps.patch("a", set("z", "1")).manager("z").await.unwrap();
    maps.patch("a", set("b", "1")).manager("b").await.unwrap();
    world.advance(5);
    maps.apply(&data(&json!({"x": "1"}))).manager("x").await.unwrap();
    world.advance(5);
    let sorted = maps.patch("a", set("a", "1")).manager("a").await.unwrap();
    assert_eq!(
        entries(&sorted),
        ["y Apply 04:00Z", "x Apply 04:05Z", "b Update 04:00Z", "z Update 04:00Z", "a Update 04:10Z"]
    );
    world.advance(5);
    let later = maps.patch("a", set("b", "2")).manager("b").await.unwrap();
    assert_eq!(
        entries(&later),
        ["y Apply 04:00Z", "x Apply 04:05Z", "z Update 04:00Z", "a Update 04:10Z", "b Update 04:15Z"]
    );
}

#[tokio::test]
async fn oldest_entries_are_merged_whatever_their_names() {
    let world = World::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    maps.apply(&data(&json!({"k": "v"}))).manager("applier").await.unwrap();
    // The last names are the oldest.
    for index in (0..12).rev() {
        world.advance(1);
        let patch = Patch::merge(json!({"data": {(format!("k{index:02}")): "v"}}));
        maps.patch("a", patch).manager(format!("m{index:02}")).await.unwrap();
    }
    let found = entries(&maps.get("a").await.unwrap());
    // The merged entry has the time of the youngest one in it: `m11`, `m10` and `m09`, at seconds 1 to 3.
    let expected: Vec<String> = ["applier Apply 04:00Z".to_owned(), "ancient-changes Update 04:03Z".to_owned()]
        .into_iter()
        .chain((0..9).rev().map(|index| format!("m{index:02} Update 04:{:02}Z", 12 - index)))
        .collect();
    assert_eq!(found, expected);
}
