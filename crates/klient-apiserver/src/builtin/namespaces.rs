//! Namespaces: their finalizer, their label, and how they and all that is in them are deleted.

pub(crate) mod contents;

use std::sync::Arc;

use klient_core::Status;
use serde_json::{Value, json};

use crate::{
    Result, metadata,
    registry::Resource,
    server::Core,
    store::{Change, ChangeKind},
};

/// Adds the finalizer of a new namespace.
pub(super) fn before_create(object: &mut Value) {
    let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
        object["spec"]["finalizers"] = json!(finalizers);
    }
}

/// Keeps the finalizers of a changed namespace, which only the `finalize` subresource may change.
pub(super) fn before_update(object: &mut Value, old: &Value) {
    object["spec"] = old["spec"].clone();
}

/// Adds the label by which a namespace can be selected by its name, and the phase of a status without one.
pub(super) fn defaults(object: &mut Value) {
    if object["status"]["phase"].as_str().is_none_or(str::is_empty) {
        object["status"]["phase"] = json!("Active");
    }
    let name = metadata::text(object, "name").to_owned();
    if !name.is_empty() {
        metadata::of(object).entry("labels").or_insert_with(|| json!({}))["kubernetes.io/metadata.name"] = json!(name);
    }
}

/// Refuses to delete a namespace that every cluster has.
pub(super) fn before_delete(resource: &Resource, object: &Value) -> Result<()> {
    let name = metadata::text(object, "name");
    if matches!(name, "default" | "kube-system" | "kube-public") {
        let why = "this namespace may not be deleted";
        return Err(Box::new(Status::forbidden(&resource.group_resource(), name, why)));
    }
    Ok(())
}

/// Returns whether nothing keeps a namespace that is being deleted.
pub(super) fn is_removable(object: &Value) -> bool {
    object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// Marks a namespace as terminating.
pub(super) fn on_deletion(object: &mut Value) {
    object["status"]["phase"] = json!("Terminating");
    metadata::of(object).remove("deletionGracePeriodSeconds");
}

/// Starts to delete the contents of a namespace that is being deleted, and creates those of a new one.
pub(super) async fn after_change(core: &Arc<Core>, change: &Change) {
    match change.kind {
        ChangeKind::Created => contents::create(core, &change.key).await,
        ChangeKind::Updated if change.object.raw().deletion_timestamp().is_some() => {
            core.collector.empty_namespace(&change.key);
        }
        _ => {}
    }
}
