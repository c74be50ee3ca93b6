//! Fields of features that are disabled: the real server removes them before it validates an object.

use serde_json::Value;

/// Removes the disabled fields of a pod.
pub(super) fn pod(object: &mut Value) {
    pod_spec(object.get_mut("spec"));
}

/// Removes the disabled fields of a kind with a pod template.
pub(super) fn template(object: &mut Value) {
    pod_spec(object.pointer_mut("/spec/template/spec"));
}

/// Removes the disabled fields of a cron job.
pub(super) fn cron_job(object: &mut Value) {
    pod_spec(object.pointer_mut("/spec/jobTemplate/spec/template/spec"));
}

/// Removes the disabled fields of a stateful set.
pub(super) fn stateful_set(object: &mut Value) {
    template(object);
    remove(object.pointer_mut("/spec/updateStrategy/rollingUpdate"), &["maxUnavailable"]);
}

/// Removes the disabled fields of a lease.
pub(super) fn lease(object: &mut Value) {
    remove(object.get_mut("spec"), &["strategy", "preferredHolder"]);
}

/// Removes the disabled fields of a node.
pub(super) fn node(object: &mut Value) {
    remove(object.get_mut("spec"), &["configSource"]);
}

fn pod_spec(spec: Option<&mut Value>) {
    let Some(Value::Object(spec)) = spec else { return };
    spec.remove("schedulingGroup");
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(Value::Object(lifecycle)) = container.get_mut("lifecycle") else { continue };
            if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
                remove(Some(container), &["lifecycle"]);
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let sources = volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut);
        for source in sources.into_iter().flatten() {
            remove(Some(source), &["clusterTrustBundle", "podCertificate"]);
        }
    }
}

fn remove(object: Option<&mut Value>, names: &[&str]) {
    if let Some(Value::Object(fields)) = object {
        for name in names {
            fields.remove(*name);
        }
    }
}
