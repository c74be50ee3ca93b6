//! Pods: their tolerations, their status, and how long they take to end.

use serde_json::{Value, json};

use super::{disabled, rules};
use crate::metadata;

/// Copies the name of the service account to the field that had it in the past.
pub(super) fn copy_account(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".to_owned(), account);
    }
}

/// Adds the links to services to an update without them.
pub(super) fn keep_links(object: &mut Value) {
    if let Value::Object(spec) = &mut object["spec"] {
        spec.entry("enableServiceLinks").or_insert_with(|| json!(true));
    }
}

/// Adds the tolerations of a node that is not ready or unreachable, for five minutes each.
pub(crate) fn tolerate(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !tolerations.iter().any(|known| is_tolerated(known, key)) {
            let seconds = 300;
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds}));
        }
    }
    spec.insert("tolerations".to_owned(), json!(tolerations));
}

fn is_tolerated(toleration: &Value, key: &str) -> bool {
    (toleration["key"] == key || toleration.get("key").is_none())
        && (toleration["effect"] == "NoExecute" || toleration.get("effect").is_none())
}

/// Returns the status of a new pod. A class that the client wrote stays, whatever it is.
pub(super) fn new_status(object: &Value, now: &str) -> Value {
    let given = object["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    let mut status = json!({"phase": "Pending", "qosClass": given.unwrap_or_else(|| rules::qos_class(object))});
    if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": now,
        }]);
    }
    status
}

/// Adds the times of containers' states that are not known, as null.
pub(super) fn null_times(object: &mut Value) {
    let Some(status) = object.get_mut("status") else { return };
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in status.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for state in ["state", "lastState"] {
                for (name, times) in [("running", &["startedAt"][..]), ("terminated", &["startedAt", "finishedAt"])] {
                    let Some(Value::Object(fields)) = container.pointer_mut(&format!("/{state}/{name}")) else {
                        continue;
                    };
                    for time in times {
                        fields.entry(*time).or_insert(Value::Null);
                    }
                }
            }
        }
    }
}

/// Completes a status that a client wrote: a missing QoS class is that of the stored pod.
pub(super) fn on_status(object: &mut Value, old: &Value) {
    if !object["status"].is_object() {
        return;
    }
    let status = &mut object["status"];
    if let (Some(class), None) = (old["status"].get("qosClass"), status.get("qosClass")) {
        status["qosClass"] = class.clone();
    }
    disabled::pod_status(status);
}

/// Makes the address of a status the first of the list of addresses. A missing address is taken from the list.
pub(super) fn list_address(object: &mut Value) {
    let Some(status) = object.get_mut("status") else { return };
    let address = status["podIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
    let first = status["podIPs"].get(0).map(|first| first["ip"].clone());
    match (address, first) {
        (Some(address), first) if first != Some(json!(address)) => status["podIPs"] = json!([{"ip": address}]),
        (None, Some(first)) => status["podIP"] = first,
        _ => {}
    }
}

/// Returns the stored pod with the resources of a resize request, and no other change of it.
///
/// Added, removed and renamed containers stay, so that they are reported.
pub(crate) fn resized(old: &Value, mut asked: Value) -> Value {
    let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
    if CONTAINERS.iter().any(|list| count(&asked, list) != count(old, list)) {
        return asked;
    }
    let mut new = old.clone();
    take(&mut asked["spec"], &mut new["spec"], "resources");
    for list in CONTAINERS {
        let Some(wanted) = asked["spec"].get_mut(list).and_then(Value::as_array_mut) else { continue };
        let Some(containers) = new["spec"][list].as_array_mut() else { continue };
        if wanted.iter().zip(&*containers).any(|(wanted, container)| wanted["name"] != container["name"]) {
            containers.swap_with_slice(wanted);
            continue;
        }
        for (wanted, container) in wanted.iter_mut().zip(containers) {
            take(wanted, container, "resources");
            take(wanted, container, "resizePolicy");
        }
    }
    new
}

/// Moves a field from one object to another. A field that is absent is removed there.
fn take(from: &mut Value, to: &mut Value, name: &str) {
    let Value::Object(to) = to else { return };
    match from.as_object_mut().and_then(|from| from.remove(name)) {
        Some(value) => drop(to.insert(name.to_owned(), value)),
        None => drop(to.remove(name)),
    }
}

/// Returns the seconds that a pod has to end. A pod that runs on no node needs none.
pub(super) fn grace_period(object: &Value, requested: Option<i64>) -> i64 {
    // A deletion that has begun can only be made shorter.
    let before = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if metadata::is_deleting(object) && before > 0 {
        return requested.unwrap_or(before);
    }
    let is_scheduled = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !is_scheduled || has_ended {
        return 0;
    }
    requested.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30)
}

/// The lists of the containers whose resources can change.
pub(super) const CONTAINERS: [&str; 2] = ["initContainers", "containers"];
