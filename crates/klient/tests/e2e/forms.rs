//! What is read as protobuf equals what is read as JSON, for every built-in object that a fresh server has, and for
//! objects of many kinds made here.

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration,
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Node, PersistentVolume, Pod, Secret, Service, ServiceAccount},
        discovery::v1::EndpointSlice,
        flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role},
        scheduling::v1::PriorityClass,
        storage::v1::StorageClass,
    },
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use klient::{
    CreateOptions, GetOptions, ListOptions, Resource,
    client::{Api, Client},
    wire::{ManagedFields, SplitOptions},
};
use serde_json::{Value, json};

use crate::cluster::{client, json_client, namespace, or_skip};

/// Lists through both and compares typed objects, raw metadata, and JSON values.
async fn check_list<K: Resource + PartialEq>(protobuf: &Api<K>, json: &Api<K>) -> usize {
    let (left, right) =
        (protobuf.list(&ListOptions::default()).await.unwrap(), json.list(&ListOptions::default()).await.unwrap());
    assert_eq!(left.items, right.items, "{}", K::KIND);
    let split = SplitOptions::default().managed_fields(ManagedFields::Keep);
    let mut raw = [Vec::new(), Vec::new()];
    for (api, objects) in [protobuf, json].into_iter().zip(&mut raw) {
        api.list_raw(&ListOptions::default(), split, |item| objects.push(item.unwrap())).await.unwrap();
    }
    let [left, right] = raw;
    for (left, right) in left.iter().zip(&right) {
        assert_eq!(left.identity(), right.identity());
        assert_eq!(without_nulls(left.to_value::<K>().unwrap()), without_nulls(right.to_value::<K>().unwrap()));
    }
    left.len()
}

/// Go's JSON writes `null` for some absent times and lists.
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
async fn what_a_fresh_server_has_is_the_same_in_both_forms() {
    let (protobuf, json) = (or_skip!(client()), or_skip!(json_client()));
    macro_rules! check {
        ($constructor:ident: $($kind:ty),* $(,)?) => {
            $(check_list::<$kind>(&Api::$constructor(protobuf.clone()), &Api::$constructor(json.clone())).await +)* 0
        };
    }
    let objects = check!(cluster: APIService, ClusterRole, ClusterRoleBinding, FlowSchema, PriorityLevelConfiguration, PriorityClass)
        + check!(all: Role, ConfigMap, EndpointSlice, Service);
    assert!(objects > 100, "only {objects} objects were compared");
}

/// Makes an object through one client and reads it through both.
async fn check_made<K>(clients: [&Client; 2], namespace: &str, object: Value)
where
    K: Resource<Scope = NamespaceResourceScope> + PartialEq,
{
    let object: K = serde_json::from_value(object).unwrap();
    let [protobuf, json] = clients.map(|client| Api::<K>::namespaced(client.clone(), namespace));
    let made = protobuf.create(&CreateOptions::default(), &object).await.unwrap();
    let name = made.metadata().name.clone().unwrap();
    assert_eq!(protobuf.get(&name, &GetOptions::default()).await.unwrap(), made, "{}", K::KIND);
    assert_eq!(json.get(&name, &GetOptions::default()).await.unwrap(), made, "{}", K::KIND);
}

#[tokio::test]
async fn namespaced_objects_of_many_kinds_are_the_same_in_both_forms() {
    let (protobuf, json_client) = (or_skip!(client()), or_skip!(json_client()));
    let namespace = namespace(&protobuf, "forms").await;
    let clients = [&protobuf, &json_client];
    let meta =
        |name: &str| json!({"name": name, "labels": {"app": "web"}, "annotations": {"note": "a \"quoted\" \u{e9}"}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
        "name": "web", "image": "web:1", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
        "ports": [{"containerPort": 80}], "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }]}});
    let job = json!({"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "j", "image": "j"}]}}});
    macro_rules! check {
        ($($kind:ty => $rest:expr;)*) => {
            $({
                let mut object = $rest;
                object["metadata"] = meta("one");
                check_made::<$kind>(clients, &namespace, object).await;
            })*
        };
    }
    check! {
        ConfigMap => json!({"data": {"a": "b"}, "binaryData": {"c": "AAEC"}});
        Secret => json!({"type": "Opaque", "data": {"password": "c2VjcmV0"}});
        ServiceAccount => json!({"automountServiceAccountToken": false});
        Service => json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}});
        Pod => json!({"spec": {"serviceAccountName": "one", "containers": template["spec"]["containers"].clone()}});
        Deployment => json!({"spec": {"replicas": 0, "selector": selector, "template": template.clone()}});
        StatefulSet => json!({"spec": {"serviceName": "web", "selector": selector, "template": template.clone()}});
        DaemonSet => json!({"spec": {"selector": selector, "template": template.clone()}});
        Job => json!({"spec": job.clone()});
        CronJob => json!({"spec": {"schedule": "*/5 * * * *", "suspend": false, "jobTemplate": {"spec": job.clone()}}});
        Lease => json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-11-15T10:00:00.123456Z"}});
        NetworkPolicy => json!({"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": selector}]}]}});
        Ingress => json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}});
        PodDisruptionBudget => json!({"spec": {"minAvailable": "50%", "selector": selector}});
        Role => json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]});
        HorizontalPodAutoscaler => json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]}});
    }
}

#[tokio::test]
async fn cluster_scoped_objects_of_many_kinds_are_the_same_in_both_forms() {
    let (protobuf, json_client) = (or_skip!(client()), or_skip!(json_client()));
    macro_rules! check {
        ($($kind:ty => $rest:expr;)*) => {
            $({
                let mut object = $rest;
                object["metadata"] = json!({"name": "forms-cluster-one"});
                let object: $kind = serde_json::from_value(object).unwrap();
                let (left, right) = (Api::<$kind>::cluster(protobuf.clone()), Api::<$kind>::cluster(json_client.clone()));
                let made = left.create(&CreateOptions::default(), &object).await.unwrap();
                assert_eq!(right.get("forms-cluster-one", &GetOptions::default()).await.unwrap(), made);
            })*
        };
    }
    check! {
        Namespace => json!({});
        Node => json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
        PersistentVolume => json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
        StorageClass => json!({"provisioner": "example.com/x", "parameters": {"a": "b"}});
        ValidatingWebhookConfiguration => json!({"webhooks": [{"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": [
                {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}]}]});
    }
}
