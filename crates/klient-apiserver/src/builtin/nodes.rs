//! Nodes: a new node is tainted until it is ready.

use serde_json::{Value, json};

/// Makes the address range of a node the first of the list of ranges. A missing range is taken from the list.
pub(super) fn list_range(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    let first = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned();
    match (spec.get("podCIDR").filter(|range| **range != "").cloned(), first) {
        (Some(range), first) if first.as_ref() != Some(&range) => {
            spec.insert("podCIDRs".to_owned(), json!([range]));
        }
        (None, Some(first)) => drop(spec.insert("podCIDR".to_owned(), first)),
        _ => {}
    }
}

/// Removes the configuration of a node's status, which is a disabled feature.
pub(super) fn drop_config(object: &mut Value, _: &Value) {
    if let Some(Value::Object(status)) = object.get_mut("status") {
        status.remove("config");
    }
}

/// Adds the taint of a node that is not ready yet.
pub(crate) fn taint(object: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    if !taints.iter().any(|known| known["key"] == taint["key"]) {
        object["spec"]["taints"] = json!([taints, vec![taint]].concat());
    }
}
