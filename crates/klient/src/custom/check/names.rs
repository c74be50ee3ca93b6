//! Checks of everything in a definition but the schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

use super::Problems;

pub(super) fn check(definition: &CustomResourceDefinition, problems: &mut Problems) {
    let spec = &definition.spec;
    let name = format!("{}.{}", spec.names.plural, spec.group);
    if definition.metadata.name.as_deref() != Some(&name) {
        let found = definition.metadata.name.as_deref().unwrap_or_default();
        problems.add("metadata.name", format!("must be {name}, found {found:?}"));
    }
    if !spec.group.contains('.') {
        problems.add("spec.group", format!("{:?} has no dot: use a domain such as example.com", spec.group));
    }
    if (spec.group.ends_with(".k8s.io") || spec.group.ends_with(".kubernetes.io"))
        && !definition.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(APPROVED))
    {
        problems.add(
            "spec.group",
            format!("{:?} is reserved: use your own domain, or add the annotation {APPROVED}", spec.group),
        );
    }
    let stored: Vec<&str> =
        spec.versions.iter().filter(|version| version.storage).map(|version| &*version.name).collect();
    if stored.len() != 1 {
        let found = if stored.is_empty() { "none".to_owned() } else { stored.join(", ") };
        problems.add("spec.versions", format!("exactly one version must have `storage = true`, found {found}"));
    }
    for (index, version) in spec.versions.iter().enumerate() {
        if spec.versions[..index].iter().any(|other| other.name == version.name) {
            problems.add("spec.versions", format!("two versions are called {}", version.name));
        }
    }
}

/// Checks the paths of columns, selectable fields and the scale subresource against the schema.
pub(super) fn check_paths(version: &CustomResourceDefinitionVersion, schema: &Value, problems: &mut Problems) {
    for column in version.additional_printer_columns.iter().flatten() {
        if !column.json_path.starts_with('.') {
            problems.add("", format!("column {:?}: path {:?} must begin with a dot", column.name, column.json_path));
        } else if let Err(missing) = find(schema, &column.json_path) {
            problems.add(
                "",
                format!("column {:?}: path {:?} does not exist: no field {missing:?}", column.name, column.json_path),
            );
        }
    }
    for selectable in version.selectable_fields.iter().flatten() {
        let path = &selectable.json_path;
        match find(schema, path) {
            Err(missing) => problems.add("", format!("selectable field {path:?} does not exist: no field {missing:?}")),
            Ok(Some(field)) if !matches!(field["type"].as_str(), Some("string" | "integer" | "boolean")) => {
                problems.add("", format!("selectable field {path:?} must be a string, an integer or a boolean"));
            }
            Ok(_) => {}
        }
    }
    if let Some(scale) = version.subresources.as_ref().and_then(|subresources| subresources.scale.as_ref()) {
        let paths =
            [Some(&scale.spec_replicas_path), Some(&scale.status_replicas_path), scale.label_selector_path.as_ref()];
        for path in paths.into_iter().flatten() {
            if let Err(missing) = find(schema, path) {
                problems.add("", format!("scale: path {path:?} does not exist: no field {missing:?}"));
            }
        }
    }
}

/// Follows a path of plain fields. `None` if the path is of another form, or ends where fields are unknown.
fn find<'a>(schema: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut at = schema;
    if path.contains(['[', ']', '\\', '*', '?', '@']) {
        return Ok(None);
    }
    for name in path.split('.').skip(1) {
        // The server knows the metadata itself.
        if name == "metadata" {
            return Ok(None);
        }
        match at["properties"].get(name) {
            Some(field) => at = field,
            None if at["properties"].is_object() && !super::is_set(at, "x-kubernetes-preserve-unknown-fields") => {
                return Err(name.to_owned());
            }
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

const APPROVED: &str = "api-approved.kubernetes.io";
