//! Conversion of objects to another version than the one that wrote them.
//!
//! Of the built-in kinds, only events and autoscalers have more than one version. Custom kinds change nothing but their `apiVersion`,
//! unless they have a webhook: see `conversion`.

use serde_json::{Map, Value, json};

use crate::registry::{Resource, Schema};

/// Returns whether stored objects may have to be converted to be read as this resource.
pub(crate) fn is_converted(resource: &Resource) -> bool {
    resource.is_custom() || resource.hooks.convert.is_some()
}

/// Returns a stored object in the version of a resource.
pub(crate) fn present(resource: &Resource, mut object: Value) -> Value {
    let Schema::Custom(schema) = &resource.schema else { return convert(resource, object) };
    schema.storage.read(&mut object);
    if object["apiVersion"] == resource.api_version() {
        return object;
    }
    object = convert(resource, object);
    // What the other version does not have is not shown in it.
    schema.prune(&mut object);
    object
}

/// Returns an object in the version of a resource, with all of its fields.
pub(crate) fn convert(resource: &Resource, mut object: Value) -> Value {
    let version = resource.api_version();
    if object["apiVersion"] == version {
        return object;
    }
    if let Some(convert) = resource.hooks.convert {
        convert(&mut object);
    }
    object["apiVersion"] = json!(version);
    object
}

/// Converts an event of the core group to the group `events.k8s.io`.
pub(super) fn event_to_new(object: &mut Value) {
    rename(object, &EVENT_NAMES, false);
    // Empty ones are left out in this version only.
    if let Value::Object(fields) = object {
        fields.retain(|name, value| !(name.starts_with("reporting") && value == ""));
    }
}

/// Converts an event of the group `events.k8s.io` to the core group.
pub(super) fn event_to_core(object: &mut Value) {
    rename(object, &EVENT_NAMES, true);
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

/// Converts an autoscaler to version v2.
pub(super) fn autoscaler_to_v2(object: &mut Value) {
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

/// Converts an autoscaler to version v1.
pub(super) fn autoscaler_to_v1(object: &mut Value) {
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
    fn event_is_converted_between_its_two_groups() {
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
