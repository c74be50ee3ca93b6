//! Events: their reporter, and the fields that lists and watches can select by, in each of their two groups.

use serde_json::Value;

/// The selectable fields of events in the core group.
pub(super) const CORE_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The selectable fields of events in the group `events.k8s.io`.
pub(super) const NEW_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "reason",
    "reportingController",
    "type",
];

/// Adds the reporter, which Go always writes.
pub(super) fn set_reporter(object: &mut Value) {
    let Value::Object(fields) = object else { return };
    for name in ["reportingComponent", "reportingInstance"] {
        fields.entry(name).or_insert_with(|| Value::from(""));
    }
}
