//! Nodes: a new node is tainted until it is ready.

use serde_json::{Value, json};

/// Adds the taint of a node that is not ready yet.
pub(super) fn before_create(object: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    if !taints.iter().any(|known| known["key"] == taint["key"]) {
        object["spec"]["taints"] = json!([taints, vec![taint]].concat());
    }
}
