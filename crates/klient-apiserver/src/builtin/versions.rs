//! Conversion of objects to another version than the one that wrote them.
//!
//! Of the built-in kinds, only events and autoscalers have more than one version; the conversion of autoscalers is in `autoscalers`. Custom kinds change nothing but their `apiVersion`,
//! unless they have a webhook: see `conversion`.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    decode,
    registry::{self, Resource, Schema},
};

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
    if resource.hooks.settle.is_some() || resource.hooks.stored_as.is_some() {
        // Go writes the fields of each version that it always has, and omits empty ones.
        let _ = decode::shape(resource, &mut object);
        super::nulls(resource, &mut object);
    }
    object
}

/// Returns an object in the version in which it is stored, which tables and the metadata of an object are about.
pub(crate) fn unconverted<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    match resource.hooks.stored_as {
        Some(stored) if object["apiVersion"] == resource.api_version() => {
            let mut object = object.clone();
            (stored.convert)(&mut object);
            object["apiVersion"] = json!(registry::api_version(&resource.group, stored.version));
            Cow::Owned(object)
        }
        _ => Cow::Borrowed(object),
    }
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
