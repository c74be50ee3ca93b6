//! From client-side to server-side apply: the fields of managers that updated become those of one that applies.

use serde_json::{Value, json};

use super::{extract::ExtractError, set::FieldSet};
use crate::{Patch, PatchKind};

/// Returns the patch that gives the fields of updating managers to one that applies, or nothing if they own none.
///
/// A program that moves from updates or `kubectl apply` to server-side apply needs it once per object. Otherwise the former manager
/// keeps its fields: nothing that the new manager no longer applies is ever removed. The patch fails with a conflict if the object has
/// changed since it was read.
///
/// # Errors
///
/// Returns an error if the object has no managed fields, or if they are malformed.
///
/// ```
/// use klient_core::fields::migrate_to_apply;
/// use serde_json::json;
///
/// let entry = json!({"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
///     "fieldsV1": {"f:data": {"f:color": {}}}});
/// let object = json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": [entry]}});
/// assert!(migrate_to_apply(&object, &["kubectl-client-side-apply"], "painter").unwrap().is_some());
/// assert!(migrate_to_apply(&object, &["another"], "painter").unwrap().is_none());
/// ```
#[doc(alias("csaupgrade", "UpgradeManagedFieldsPatch"))]
pub fn migrate_to_apply(object: &Value, from: &[&str], to: &str) -> Result<Option<Patch>, ExtractError> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().ok_or(ExtractError::NoManagedFields)?;
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let is_former = |entry: &Value| {
        from.contains(&text(entry, "manager").as_str())
            && text(entry, "operation") == "Update"
            && text(entry, "subresource").is_empty()
    };
    let Some(first) = entries.iter().position(is_former) else { return Ok(None) };
    let applied = entries.iter().position(|entry| {
        text(entry, "manager") == to && text(entry, "operation") == "Apply" && text(entry, "subresource").is_empty()
    });
    let at = applied.unwrap_or_else(|| {
        entries[first]["manager"] = json!(to);
        entries[first]["operation"] = json!("Apply");
        first
    });
    let parse = |entry: &Value| {
        FieldSet::from_value(&entry["fieldsV1"]).map_err(|error| ExtractError::Malformed(error.to_string()))
    };
    let mut fields = parse(&entries[at])?;
    for former in entries.iter().filter(|entry| is_former(entry)) {
        fields = fields.union(&parse(former)?);
    }
    entries[at]["fieldsV1"] = fields.to_value();
    entries.retain(|entry| !is_former(entry));
    let operations = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
    ]);
    Ok(Some(Patch::encode(PatchKind::Json, operations)))
}
