//! Built-in kinds that differ from all others: data, and small hooks that `kinds` lists.
//!
//! Handlers are generic over kinds. They call `resource.hooks`, or the functions here that join hooks with what all kinds share.

mod accounts;
mod autoscalers;
mod collector;
mod components;
mod defaults;
pub(crate) mod definitions;
mod devices;
mod disabled;
mod events;
mod hooks;
mod images;
mod ingresses;
mod kinds;
pub(crate) mod namespaces;
mod nodes;
mod pods;
mod profiles;
mod reviews;
mod rules;
mod services;
mod signing_requests;
pub(crate) mod tables;
pub(crate) mod versions;
mod volumes;
mod warnings;
mod workloads;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::{
    collector::Collector,
    defaults::fill,
    hooks::{Hooks, NameRule, Posted, Writing},
    kinds::hooks,
    nodes::taint,
    pods::{resized, tolerate},
    rules::{aggregate, qos_class, resource_names},
    volumes::protect,
};
use crate::{
    Result,
    admission::plugins::quota,
    causes::Causes,
    decode,
    managed::{self, Writer},
    registry::{self, Resource, Schema, Shape},
    server::Core,
    store::Committed,
};

/// Completes a decoded object: with defaults, and in the form in which Go writes it.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    if let Schema::BuiltIn(_) = resource.schema {
        if fill(resource, object) {
            // Decoded objects have no unknown fields, and defaults have the right types.
            let _ = decode::shape(resource, object);
        }
        if let Some(settle) = resource.hooks.settle {
            settle(object);
        }
        nulls(resource, object);
    }
}

/// Sets the fields that Go writes as null to null where they are empty.
pub(crate) fn null_empty_lists(resource: &Resource, object: &mut Value) {
    for pointer in resource.hooks.null_fields {
        null_list(object, pointer);
    }
}

/// Sets a list to null if it is empty.
fn null_list(object: &mut Value, pointer: &str) {
    if let Some(list) = crate::metadata::at_mut(object, pointer).filter(|list| **list == json!([])) {
        *list = Value::Null;
    }
}

/// Replaces the status of a new object.
pub(crate) fn reset_status(resource: &Resource, object: &mut Value, now: &str) {
    if let Some(new_status) = resource.hooks.new_status {
        object["status"] = new_status(object, now);
    }
}

/// Adds the fields that Go writes as null where they have no value.
pub(crate) fn nulls(resource: &Resource, object: &mut Value) {
    (resource.hooks.set_nulls)(object);
    for pointer in resource.hooks.null_fields {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(fields)) = crate::metadata::at_mut(object, parent) {
            fields.entry(name).or_insert(Value::Null);
        }
    }
    if let Some(conditions) = crate::metadata::at_mut(object, "/status/conditions").and_then(Value::as_array_mut) {
        null_times(resource, conditions);
    }
}

/// Adds the times of conditions that are not known, as null.
fn null_times(resource: &Resource, conditions: &mut [Value]) {
    let Schema::BuiltIn(types) = resource.schema else { return };
    let status = match types.fields.get("status").map(|field| &field.shape) {
        Some(Shape::Ref(status)) => registry::types().get(status),
        _ => None,
    };
    let list = status.and_then(|status| status.fields.get("conditions")).map(|field| &field.shape);
    let Some(Shape::List(condition)) = list else { return };
    let Shape::Ref(condition) = &**condition else { return };
    let Some(condition) = registry::types().get(condition) else { return };
    for fields in conditions.iter_mut().filter_map(Value::as_object_mut) {
        for name in TIMES.iter().filter(|name| condition.fields.contains_key(**name)) {
            fields.entry(*name).or_insert(Value::Null);
        }
    }
}

/// The times of conditions, none of which is a pointer in Go.
const TIMES: [&str; 4] = ["lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "lastUpdateTime"];

/// Records that the server itself has written the status of an object.
pub(crate) fn record_status(core: &Core, group: &str, plural: &str, before: &mut Value, object: &mut Value) {
    let groups = core.registry.groups();
    let Some(resource) = groups.find(group, "v1", plural) else { return };
    let writer = Writer::server("status", core.clock.now());
    let entries = managed::update(&groups, &resource, Some(before), object, &writer);
    managed::set_entries(object, entries);
}

/// Completes a new object before it is validated. Returns warnings that are sent even if the object is invalid.
pub(crate) fn before_create(writing: Writing<'_>, resource: &Resource, object: &mut Value) -> Result<Vec<String>> {
    if let Some(before_create) = resource.hooks.before_create {
        before_create(writing, object)?;
    }
    (resource.hooks.drop_disabled)(object);
    let mut told = Vec::new();
    if let Some(on_create) = resource.hooks.on_create {
        on_create(object, &mut told);
    }
    Ok(told)
}

/// Adds the invalid fields of an object besides its metadata. `part` is the subresource of the request.
pub(crate) fn validate(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    part: Option<&str>,
    causes: &mut Causes,
) {
    match (part, old) {
        (Some("status"), Some(old)) => (resource.hooks.validate_status)(object, old, causes),
        (Some(part), Some(old)) => (resource.hooks.validate_part)(part, object, old, causes),
        _ => (resource.hooks.validate)(object, old, causes),
    }
}

/// Adds warnings about a valid object. `part` is the subresource of the request.
pub(crate) fn warn(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    part: Option<&str>,
    told: &mut Vec<String>,
) {
    let warn = match part {
        None => resource.hooks.warnings,
        Some("status") => resource.hooks.status_warnings,
        Some(_) => None,
    };
    if let Some(warn) = warn {
        let mut found = warnings::Told::default();
        warn(object, old, &mut found);
        told.extend(found.into_texts());
    }
}

/// Acts on a committed change.
pub(crate) async fn after_change(core: &Arc<Core>, resource: &Resource, committed: &Committed) {
    if let Some(after_change) = resource.hooks.after_change {
        after_change(core, &committed.change).await;
    }
    core.collector.after_change(resource, committed);
    quota::recount(core, resource, &committed.change.key).await;
}
