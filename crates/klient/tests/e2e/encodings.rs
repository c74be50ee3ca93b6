//! Objects read as protobuf equal those read as JSON, for every built-in object of a fresh server, and for objects of
//! many kinds created here.

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Service},
        discovery::v1::EndpointSlice,
        flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role},
        scheduling::v1::PriorityClass,
    },
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use klient::{
    Api, Client, Resource,
    options::{DeleteOptions, ListOptions, PropagationPolicy},
    wire::{ManagedFields, SplitOptions},
};
use serde_json::Value;

use crate::{
    cluster::{client, json_client, namespace, or_skip},
    kinds::{Sample, Visitor, visit_all},
};

/// Lists through both clients, and compares typed objects, raw metadata, and JSON values.
async fn check_list<K: Resource + PartialEq>(protobuf: &Api<K>, json: &Api<K>, selector: &str) -> usize {
    let options = ListOptions::default().labels(selector);
    let (left, right) =
        (protobuf.list().options(options.clone()).await.unwrap(), json.list().options(options.clone()).await.unwrap());
    assert_eq!(left.items, right.items, "{}", K::KIND);
    let split = SplitOptions::default().managed_fields(ManagedFields::Keep);
    let mut raw = [Vec::new(), Vec::new()];
    for (api, objects) in [protobuf, json].into_iter().zip(&mut raw) {
        api.list().options(options.clone()).for_each_raw(split, |item| objects.push(item.unwrap())).await.unwrap();
    }
    let [left, right] = raw;
    for (left, right) in left.iter().zip(&right) {
        assert_eq!(left.identity(), right.identity());
        assert_eq!(without_nulls(left.to_value::<K>().unwrap()), without_nulls(right.to_value::<K>().unwrap()));
    }
    left.len()
}

/// Removes `null` members, which Go writes for some absent times and lists.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[tokio::test]
async fn objects_of_a_fresh_server_are_equal_in_both_encodings() {
    let (protobuf, json) = (or_skip!(client()), or_skip!(json_client()));
    macro_rules! check {
        ($constructor:ident: $($kind:ty),* $(,)?) => {
            $(check_list::<$kind>(&Api::$constructor(protobuf.clone()), &Api::$constructor(json.clone()), "!app").await +)* 0
        };
    }
    let objects = check!(cluster: APIService, ClusterRole, ClusterRoleBinding, FlowSchema, PriorityLevelConfiguration, PriorityClass)
        + check!(all: Role, ConfigMap, EndpointSlice, Service);
    assert!(objects > 100, "only {objects} objects were compared");
}

/// A visitor that creates objects through one client and reads them through both.
struct Compare {
    protobuf: Client,
    json: Client,
    kinds: usize,
}

impl Visitor for Compare {
    async fn visit<K: Resource + PartialEq>(&mut self, api: impl Fn(&Client) -> Api<K>, sample: Sample) {
        let (protobuf, json) = (api(&self.protobuf), api(&self.json));
        let (writer, reader) = if self.kinds.is_multiple_of(2) { (&protobuf, &json) } else { (&json, &protobuf) };
        let made = writer.create(&sample.object("encodings", "encodings")).await.unwrap();
        assert_eq!(reader.get("encodings").await.unwrap(), made, "{}", K::KIND);
        assert_eq!(check_list(&protobuf, &json, "app=encodings").await, 1, "{}", K::KIND);
        // One resource may exist in two versions.
        let options = DeleteOptions::default().propagation_policy(PropagationPolicy::Background);
        writer.delete("encodings").options(options.clone()).await.unwrap();
        self.kinds += 1;
    }
}

#[tokio::test]
async fn objects_of_many_kinds_are_equal_in_both_encodings() {
    let (protobuf, json) = (or_skip!(client()), or_skip!(json_client()));
    let namespace = namespace(&protobuf, "encodings").await;
    let mut compare = Compare { protobuf, json, kinds: 0 };
    visit_all(&mut compare, &namespace).await;
    assert!(compare.kinds > 30, "only {} kinds", compare.kinds);
}
