//! Objects in another version than the one that wrote them.
//!
//! Only few built-in kinds have more than one: events and autoscalers. Custom kinds keep everything but their version.

use serde_json::{Map, Value, json};

use crate::registry::Resource;

/// Whether stored objects may have to be changed to be read as this resource.
pub(crate) fn is_converted(resource: &Resource) -> bool {
    resource.is_custom() || matches!(resource.plural.as_str(), "events" | "horizontalpodautoscalers")
}

/// An object as this resource shows it.
pub(crate) fn present(resource: &Resource, mut object: Value) -> Value {
    let version = resource.api_version();
    if object["apiVersion"] == version {
        return object;
    }
    match (resource.group.as_str(), resource.plural.as_str(), resource.version.as_str()) {
        ("events.k8s.io", "events", _) => {
            rename(&mut object, &EVENT_NAMES, false);
            // Left out where they are empty, in this version only.
            if let Value::Object(fields) = &mut object {
                fields.retain(|name, value| !(name.starts_with("reporting") && value == ""));
            }
        }
        ("", "events", _) => rename(&mut object, &EVENT_NAMES, true),
        ("autoscaling", _, "v2") => autoscaler_to_v2(&mut object),
        ("autoscaling", _, "v1") => autoscaler_to_v1(&mut object),
        _ => {}
    }
    object["apiVersion"] = json!(version);
    object
}

/// Names of the same field in core/v1 and events.k8s.io/v1.
const EVENT_NAMES: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingInstance", "reportingInstance"),
];

fn rename(object: &mut Value, names: &[(&str, &str)], back: bool) {
    let Value::Object(fields) = object else { return };
    for (old, new) in names {
        let (from, to) = if back { (new, old) } else { (old, new) };
        if from != to
            && let Some(value) = fields.remove(*from)
        {
            fields.insert((*to).to_owned(), value);
        }
    }
}

fn autoscaler_to_v2(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        spec.insert("metrics".to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    if let Value::Object(status) = &mut object["status"] {
        status.entry("currentMetrics").or_insert(Value::Null);
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
    }
}

fn autoscaler_to_v1(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    let metrics = spec.remove("metrics");
    spec.remove("behavior");
    let cpu = metrics
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|metric| metric["resource"]["name"] == "cpu");
    if let Some(percent) = cpu.and_then(|metric| metric["resource"]["target"].get("averageUtilization")) {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
    }
    if let Value::Object(status) = &mut object["status"] {
        let kept: Map<String, Value> = std::mem::take(status)
            .into_iter()
            .filter(|(name, _)| !matches!(name.as_str(), "currentMetrics" | "conditions"))
            .collect();
        *status = kept;
        status.entry("currentReplicas").or_insert_with(|| json!(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn an_event_is_one_object_with_two_faces() {
        let registry = Registry::built_in();
        let core = registry.find("", "v1", "events").unwrap();
        let new = registry.find("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(core.table, new.table);
        let event = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "involvedObject": {"kind": "Pod"}});
        let seen = present(&new, event.clone());
        assert_eq!(seen["note"], "m");
        assert_eq!(seen["regarding"]["kind"], "Pod");
        assert_eq!(seen["apiVersion"], "events.k8s.io/v1");
        assert_eq!(present(&core, seen), event);
    }
}
