//! The status of a cluster's components, which is computed for each request. All of them are healthy here.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Returns the status of all components.
pub(super) fn statuses() -> Vec<Value> {
    let status = |name: &str| {
        json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]})
    };
    ["scheduler", "controller-manager", "etcd-0"].map(status).to_vec()
}

/// Returns a cell of a table.
pub(super) fn cell(object: &Value, column: &str, _now: Timestamp) -> Option<Value> {
    let conditions = object["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let healthy = conditions.iter().find(|condition| condition["type"] == "Healthy");
    let text = |name: &str| json!(healthy.and_then(|condition| condition[name].as_str()).unwrap_or_default());
    Some(match column {
        "Status" => match healthy {
            Some(condition) if condition["status"] == "True" => json!("Healthy"),
            Some(_) => json!("Unhealthy"),
            None => json!("Unknown"),
        },
        "Message" => text("message"),
        "Error" => text("error"),
        _ => return None,
    })
}
