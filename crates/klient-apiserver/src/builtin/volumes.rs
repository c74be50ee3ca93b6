//! Persistent volumes and claims: finalizers that keep them while they are in use, and the sources of claims.

use serde_json::{Value, json};

use crate::metadata;

/// Adds a finalizer to a new volume or claim.
pub(crate) fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
        metadata::of(object).insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// Copies the source of a claim's data to the field that does not have it. Sources of other kinds are dropped from the older field,
/// unless the stored claim has one.
pub(super) fn unite_sources(object: &mut Value, old: Option<&Value>) {
    let had = |name: &str| old.is_some_and(|old| old["spec"].get(name).is_some());
    let Value::Object(spec) = &mut object["spec"] else { return };
    let is_elsewhere = |source: &Value| source["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty());
    // Sources in other namespaces are a disabled feature, except in claims that had a source before.
    if spec.get("dataSourceRef").is_some_and(is_elsewhere) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            let group = source["apiGroup"].as_str().unwrap_or_default();
            let is_known = matches!(
                (group, source["kind"].as_str().unwrap_or_default()),
                ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            );
            if is_known || had("dataSource") || had("dataSourceRef") {
                spec.insert("dataSourceRef".to_owned(), source);
            } else {
                spec.remove("dataSource");
            }
        }
        (None, Some(mut source)) if !is_elsewhere(&source) => {
            // Only the newer field can have an empty namespace.
            source.as_object_mut().and_then(|fields| fields.remove("namespace"));
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// Adds the groups of a claim's sources that have none, which Go writes as null.
pub(super) fn null_groups(object: &mut Value) {
    for name in ["dataSource", "dataSourceRef"] {
        if let Some(Value::Object(source)) = object["spec"].get_mut(name) {
            source.entry("apiGroup").or_insert(Value::Null);
        }
    }
}
