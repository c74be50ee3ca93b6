//! What is special about a few built-in kinds: defaults, rules, and what the server itself does about them.

mod collector;
mod defaults;
pub(crate) mod definitions;
mod namespaces;
pub(crate) mod reviews;
mod rules;
pub(crate) mod tables;
pub(crate) mod versions;

use std::sync::Arc;

use klient_core::{Status, StatusCause};
use serde_json::{Value, json};

pub(crate) use self::{collector::Collector, defaults::fill};
use crate::{Result, metadata, registry::Resource, server::Core, store::Change};

fn place(resource: &Resource) -> (&str, &str) {
    (resource.group.as_str(), resource.plural.as_str())
}

/// What a new object gets before it is checked.
pub(crate) fn before_create(core: &Core, resource: &Resource, object: &mut Value) -> Result<()> {
    fill(resource, object);
    protect(resource, object);
    match place(resource) {
        ("", "pods") => admit_pod(object),
        ("", "nodes") => {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
            if !taints.iter().any(|known| known["key"] == taint["key"]) {
                object["spec"]["taints"] = json!([taints, vec![taint]].concat());
            }
        }
        ("apps", "daemonsets") => {
            let annotations = metadata::of(object).entry("annotations").or_insert_with(|| json!({}));
            annotations["deprecated.daemonset.template.generation"] = json!("1");
        }
        ("", "namespaces") => namespaces::before_create(object),
        ("", "services") => services::allocate(core, object, None)?,
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::before_create(object),
        _ => {}
    }
    Ok(())
}

/// What the real server's admission gives every new pod.
fn admit_pod(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    let account = spec.entry("serviceAccountName").or_insert_with(|| json!("default")).clone();
    spec.insert("serviceAccount".to_owned(), account);
    spec.entry("enableServiceLinks").or_insert_with(|| json!(true));
    spec.entry("priority").or_insert_with(|| json!(0));
    spec.entry("preemptionPolicy").or_insert_with(|| json!("PreemptLowerPriority"));
    tolerate(spec);
}

/// A pod stays for a while on a node that does not answer.
fn tolerate(spec: &mut serde_json::Map<String, Value>) {
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|known| {
            (known["key"] == key || known.get("key").is_none())
                && (known["effect"] == "NoExecute" || known.get("effect").is_none())
        });
        if !is_tolerated {
            let seconds = 300;
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds}));
        }
    }
    spec.insert("tolerations".to_owned(), json!(tolerations));
}

/// Volumes and claims are not deleted while they are in use.
fn protect(resource: &Resource, object: &mut Value) {
    let finalizer = match place(resource) {
        ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
        ("", "persistentvolumes") => "kubernetes.io/pv-protection",
        _ => return,
    };
    let mut finalizers: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
        metadata::of(object).insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// What a changed object gets before it is checked.
pub(crate) fn before_update(core: &Core, resource: &Resource, object: &mut Value, old: &Value) -> Result<()> {
    fill(resource, object);
    match place(resource) {
        ("", "namespaces") => {
            // Only the finalize subresource may.
            object["spec"] = old["spec"].clone();
            namespaces::label(object);
        }
        ("", "pods") => {
            if let Value::Object(spec) = &mut object["spec"] {
                tolerate(spec);
            }
        }
        ("", "services") => services::allocate(core, object, Some(old))?,
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::before_update(object, old),
        _ => {}
    }
    Ok(())
}

/// What a new status gets from the server.
pub(crate) fn on_status(resource: &Resource, object: &mut Value, old: &Value) {
    if place(resource) != ("", "pods") || !object["status"].is_object() {
        return;
    }
    let status = &mut object["status"];
    if let Some(class) = old["status"].get("qosClass") {
        status["qosClass"] = class.clone();
    }
    if let Some(address) = status["podIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned)
        && status.get("podIPs").is_none()
    {
        status["podIPs"] = json!([{"ip": address}]);
    }
    null_times(status);
}

/// Times of a pod's conditions are there even if they are not known.
fn null_times(status: &mut Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for name in ["lastProbeTime", "lastTransitionTime"] {
            condition.entry(name).or_insert(Value::Null);
        }
    }
}

/// The status of a new object.
pub(crate) fn reset_status(resource: &Resource, object: &mut Value, now: &str) {
    let status = match place(resource) {
        ("", "pods") => {
            let mut status = json!({"phase": "Pending", "qosClass": rules::qos_class(object)});
            if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                status["conditions"] = json!([{
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": null, "lastTransitionTime": now,
                }]);
            }
            status
        }
        ("", "namespaces") => json!({"phase": "Active"}),
        ("", "persistentvolumes" | "persistentvolumeclaims") => json!({"phase": "Pending"}),
        ("", "services") => json!({"loadBalancer": {}}),
        ("networking.k8s.io", "ingresses") => json!({"loadBalancer": {}}),
        ("apps", "statefulsets") => json!({"replicas": 0, "availableReplicas": 0}),
        ("policy", "poddisruptionbudgets") => {
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
        }
        ("apiextensions.k8s.io", _) | ("", "nodes") => return,
        _ => json!({}),
    };
    object["status"] = status;
}

/// Fields that Go writes as null where there is nothing.
pub(crate) fn nulls(resource: &Resource, object: &mut Value) {
    if place(resource) == ("", "pods") {
        null_times(&mut object["status"]);
    }
    let names: &[&str] = match place(resource) {
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => &["/rules"],
        ("", "events") => &["/eventTime", "/firstTimestamp", "/lastTimestamp"],
        ("events.k8s.io", "events") => &["/eventTime", "/deprecatedFirstTimestamp", "/deprecatedLastTimestamp"],
        ("apiextensions.k8s.io", "customresourcedefinitions") => &["/status/conditions"],
        ("autoscaling", _) if resource.version == "v2" => &["/status/currentMetrics"],
        _ => &[],
    };
    for pointer in names {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
            fields.entry(name).or_insert(Value::Null);
        }
    }
}

/// What is wrong with an object besides its metadata.
pub(crate) fn validate(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<StatusCause> {
    rules::validate(resource, object, old)
}

/// What a writer is told of, although it is allowed.
pub(crate) fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    match place(resource) {
        ("", "services") => services::warnings(&object["spec"]),
        _ => Vec::new(),
    }
}

/// What may not be deleted at all.
pub(crate) fn before_delete(resource: &Resource, object: &Value) -> Result<()> {
    let name = metadata::text(object, "name");
    if place(resource) == ("", "namespaces") && matches!(name, "default" | "kube-system" | "kube-public") {
        let why = "this namespace may not be deleted";
        return Err(Box::new(Status::forbidden(&resource.group_resource(), name, why)));
    }
    Ok(())
}

/// How long an object may go on before it is gone.
pub(crate) fn grace_period(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if place(resource) != ("", "pods") {
        return 0;
    }
    // What is ending already can only be hurried.
    let before = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if metadata::is_deleting(object) && before > 0 {
        return asked.unwrap_or(before);
    }
    // Nobody runs what was never placed or has ended.
    let placed = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !placed || ended {
        return 0;
    }
    asked.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30)
}

/// Whether an object that is being deleted may be gone as far as its own kind is concerned.
pub(crate) fn may_vanish(resource: &Resource, object: &Value) -> bool {
    match place(resource) {
        ("", "namespaces") => object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty),
        // Its objects go first.
        ("apiextensions.k8s.io", "customresourcedefinitions") => metadata::is_deleting(object),
        _ => true,
    }
}

/// What changes in an object that begins to be deleted.
pub(crate) fn on_deletion(resource: &Resource, object: &mut Value) {
    match place(resource) {
        ("", "namespaces") => {
            object["status"]["phase"] = json!("Terminating");
            metadata::of(object).remove("deletionGracePeriodSeconds");
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::terminating(object),
        _ => {}
    }
}

/// What the server does about a change.
pub(crate) async fn after_change(core: &Arc<Core>, resource: &Resource, change: &Arc<Change>) {
    match place(resource) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::after_change(core, change).await,
        ("", "namespaces") => namespaces::after_change(core, change),
        _ => {}
    }
    core.collector.after_change(resource, change);
}

mod services;
