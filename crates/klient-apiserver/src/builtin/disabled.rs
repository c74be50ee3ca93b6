//! Fields of features that are disabled: the real server removes them before it validates an object.

use serde_json::Value;

/// Removes the disabled fields of a pod.
pub(super) fn pod(object: &mut Value) {
    at(object, "/spec", pod_spec);
}

/// Removes the disabled fields of a pod's status.
pub(super) fn pod_status(status: &mut Value) {
    remove(status, &["nodeAllocatableResourceClaimStatuses"]);
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in items(status, list) {
            items(container, "volumeMounts").for_each(|mount| remove(mount, &["volumeStatus"]));
        }
    }
}

/// Removes the disabled fields of a kind with a pod template.
pub(super) fn template(object: &mut Value) {
    at(object, "/spec/template/spec", pod_spec);
}

/// Removes the disabled fields of a pod template.
pub(super) fn pod_template(object: &mut Value) {
    at(object, "/template/spec", pod_spec);
}

/// Removes the disabled fields of a cron job.
pub(super) fn cron_job(object: &mut Value) {
    at(object, "/spec/jobTemplate/spec/template/spec", pod_spec);
}

/// Removes the disabled fields of a stateful set.
pub(super) fn stateful_set(object: &mut Value) {
    template(object);
    at(object, "/spec/updateStrategy/rollingUpdate", |update| remove(update, &["maxUnavailable"]));
}

/// Removes the fields of an endpoint slice that only an older version had.
pub(super) fn endpoint_slice(object: &mut Value) {
    for endpoint in object["endpoints"].as_array_mut().into_iter().flatten() {
        remove(endpoint, &["deprecatedTopology"]);
    }
}

/// Removes the disabled fields of a lease.
pub(super) fn lease(object: &mut Value) {
    at(object, "/spec", |spec| remove(spec, &["strategy", "preferredHolder"]));
}

/// Removes the disabled fields of a node.
pub(super) fn node(object: &mut Value) {
    at(object, "/spec", |spec| remove(spec, &["configSource"]));
    at(object, "/status", |status| remove(status, &["config"]));
}

/// Returns the items of a list, or none if there is no list.
fn items<'v>(object: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn at(object: &mut Value, pointer: &str, change: impl Fn(&mut Value)) {
    if let Some(value) = object.pointer_mut(pointer) {
        change(value);
    }
}

fn pod_spec(spec: &mut Value) {
    let Value::Object(spec) = spec else { return };
    spec.remove("schedulingGroup");
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(Value::Object(lifecycle)) = container.get_mut("lifecycle") else { continue };
            if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
                remove(container, &["lifecycle"]);
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let sources = volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut);
        for source in sources.into_iter().flatten() {
            remove(source, &["clusterTrustBundle", "podCertificate"]);
        }
    }
}

fn remove(object: &mut Value, names: &[&str]) {
    if let Value::Object(fields) = object {
        for name in names {
            fields.remove(*name);
        }
    }
}
