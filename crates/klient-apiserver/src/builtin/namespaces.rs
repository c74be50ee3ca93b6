//! Namespaces: what they have, and how they and all that is in them are deleted.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    metadata,
    server::Core,
    store::{Change, ChangeKind},
};

pub(super) fn before_create(object: &mut Value) {
    let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        object["spec"]["finalizers"] = json!(["kubernetes"]);
    }
    label(object);
}

/// Every namespace can be selected by its name.
pub(super) fn label(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    if !name.is_empty() {
        metadata::of(object).entry("labels").or_insert_with(|| json!({}))["kubernetes.io/metadata.name"] = json!(name);
    }
}

pub(super) fn after_change(core: &Arc<Core>, change: &Change) {
    if change.kind == ChangeKind::Updated && change.object.raw().deletion_timestamp().is_some() {
        core.collector.empty_namespace(&change.key);
    }
}
