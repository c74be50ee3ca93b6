//! Built-in kinds that differ from all others: data, and small hooks that `kinds` lists.
//!
//! Handlers are generic over kinds. They call `resource.hooks`, or the functions here that join hooks with what all kinds share.

mod collector;
mod defaults;
pub(crate) mod definitions;
mod events;
mod hooks;
mod kinds;
mod namespaces;
mod nodes;
mod pods;
mod reviews;
mod rules;
mod services;
pub(crate) mod tables;
pub(crate) mod versions;
mod volumes;
mod workloads;

use std::sync::Arc;

use klient_core::StatusCause;
use serde_json::Value;

pub(crate) use self::{
    collector::Collector,
    defaults::fill,
    hooks::{Hooks, NameRule, Posted},
    kinds::hooks,
};
use crate::{Result, registry::Resource, server::Core, store::Change};

/// Completes a new object before it is validated.
pub(crate) fn before_create(core: &Core, resource: &Resource, object: &mut Value) -> Result<()> {
    fill(resource, object);
    (resource.hooks.before_create)(core, object)
}

/// Completes a changed object before it is validated.
pub(crate) fn before_update(core: &Core, resource: &Resource, object: &mut Value, old: &Value) -> Result<()> {
    fill(resource, object);
    (resource.hooks.before_update)(core, object, old)
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
        if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
            fields.entry(name).or_insert(Value::Null);
        }
    }
}

/// Returns the invalid fields of an object besides its metadata.
pub(crate) fn validate(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    (resource.hooks.validate)(object, old, &mut causes);
    causes
}

/// Acts on a committed change.
pub(crate) async fn after_change(core: &Arc<Core>, resource: &Resource, change: &Arc<Change>) {
    if let Some(after_change) = resource.hooks.after_change {
        after_change(core, change).await;
    }
    core.collector.after_change(resource, change);
}
