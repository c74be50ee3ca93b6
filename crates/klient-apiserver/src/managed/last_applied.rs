//! The annotation of client-side apply, which `kubectl apply` keeps when it moves to server-side apply.

use klient_core::fields::{Conflict, Duplicates, FieldSet, Typed};
use serde_json::Value;

use super::{schema, update::without_entries};
use crate::{metadata, registry::Resource};

/// Returns the conflicts that are left if those with the manager's own client-side apply are not counted.
pub(super) fn conflicts(resource: &Resource, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let Some(own) = own_fields(resource, live) else { return conflicts };
    conflicts.into_iter().filter(|conflict| !own.contains(&conflict.path)).collect()
}

/// Returns the fields of the last configuration of client-side apply that still have their values.
fn own_fields(resource: &Resource, live: &Value) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last["apiVersion"] != resource.api_version() {
        return None;
    }
    let schema = schema::of(resource)?;
    let typed = |object: Value| Typed::new(&schema.schema, schema.root, object, Duplicates::Refused).ok();
    let (live, last) = (typed(without_entries(live))?, typed(last)?);
    let changes = last.compare(&live).ok()?;
    let own = last.to_field_set().ok()?;
    Some(own.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Writes a configuration to the annotation of an object that has one.
pub(super) fn refresh(object: &mut Value, configuration: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut configuration = configuration.clone();
    if let Some(Value::Object(annotations)) = configuration["metadata"].get_mut("annotations") {
        annotations.remove(ANNOTATION);
    }
    let Some(Value::Object(annotations)) = metadata::of(object).get_mut("annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), Value::from(format!("{configuration}\n")));
    let size: usize =
        annotations.iter().map(|(name, value)| name.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"].get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The manager of `kubectl apply --server-side`.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The size of all annotations of an object, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;
