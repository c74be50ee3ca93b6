//! Validation of the versions of a definition. What all versions have in common is validated once, as a part of the definition.

use std::collections::HashSet;

use klient_core::StatusCause;
use serde_json::Value;

use super::{names, text, validate_columns, validate_schema, validate_subresources};
use crate::causes::Causes;

/// The parts of versions that are the same in all of them.
pub(super) struct Common<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
}

impl<'a> Common<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Self {
        let same = |name: &str| {
            let first = versions.first()?.get(name)?;
            versions.iter().all(|version| version.get(name) == Some(first)).then_some(first)
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

/// Validates that all versions have schemas, and each version.
pub(super) fn validate(versions: &[Value], common: &Common<'_>, causes: &mut Causes) {
    let has_schema = |schema: Option<&Value>| schema.is_some_and(|schema| schema.get("openAPIV3Schema").is_some());
    if !has_schema(common.schema) {
        for (index, version) in versions.iter().enumerate() {
            if !has_schema(version.get("schema")) {
                let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
                causes.add(|| StatusCause::required(field, ""));
            }
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        names::version(&text(&version["name"]), &path, causes);
        deprecation(version, &path, causes);
        let subresources = common.subresources.unwrap_or(&version["subresources"]);
        let has_status = subresources.get("status").is_some();
        if common.schema.is_none() {
            validate_schema(&version["schema"], has_status, &format!("{path}.schema"), causes);
        }
        if common.subresources.is_none() {
            validate_subresources(&version["subresources"], &format!("{path}.subresources"), causes);
        }
        if common.columns.is_none() {
            validate_columns(&version["additionalPrinterColumns"], &format!("{path}.additionalPrinterColumns"), causes);
        }
        let fields = version["selectableFields"].as_array().map_or(&[][..], Vec::as_slice);
        if common.selectable.is_none() && !fields.is_empty() {
            let at = format!("{path}.selectableFields");
            match version["schema"].get("openAPIV3Schema").filter(|_| common.schema.is_none()) {
                Some(schema) => selectable(fields, schema, &at, causes),
                None => {
                    let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                    causes.add(|| StatusCause::invalid(at, "", detail));
                }
            }
        }
    }
    unique_and_stored(versions, causes);
}

fn unique_and_stored(versions: &[Value], causes: &mut Causes) {
    let mut names = HashSet::new();
    // A list that was sent as an empty one is shown so later.
    let shown = || if versions.is_empty() { Value::Null } else { Value::from(versions.to_vec()) };
    if !versions.iter().all(|version| names.insert(version["name"].as_str())) {
        causes.add(|| StatusCause::invalid("spec.versions", shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.add(|| StatusCause::invalid("spec.versions", shown(), detail));
    }
    // The first version is also a field of its own.
    if let Some(first) = versions.first().map(|version| text(&version["name"])).filter(|name| !name.is_empty()) {
        names::version_field(&first, "spec.version", causes);
    }
}

/// Validates the parts that all versions have in common.
pub(super) fn validate_common(common: &Common<'_>, has_status: bool, causes: &mut Causes) {
    if let Some(schema) = common.schema {
        validate_schema(schema, has_status, "spec.validation", causes);
    }
    if let Some(subresources) = common.subresources {
        validate_subresources(subresources, "spec.subresources", causes);
    }
    if let Some(columns) = common.columns {
        validate_columns(columns, "spec.additionalPrinterColumns", causes);
    }
    if let Some(fields) = common.selectable.and_then(Value::as_array).filter(|fields| !fields.is_empty()) {
        match common.schema.and_then(|schema| schema.get("openAPIV3Schema")) {
            Some(schema) => selectable(fields, schema, "spec.selectableFields", causes),
            None => {
                let detail = "may only be set when validations.schema is included";
                causes.add(|| StatusCause::invalid("spec.selectableFields", "", detail));
            }
        }
    }
}

fn deprecation(version: &Value, path: &str, causes: &mut Causes) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let mut problems = Vec::new();
    if version["deprecated"] != true {
        problems.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    }
    for problem in problems {
        causes.add(|| StatusCause::invalid(format!("{path}.deprecationWarning"), warning, &problem));
    }
}

/// Validates the fields that lists can select by.
fn selectable(fields: &[Value], schema: &Value, path: &str, causes: &mut Causes) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let text = field["jsonPath"].as_str().unwrap_or_default();
        if text.is_empty() {
            causes.add(|| StatusCause::required(at, ""));
            continue;
        }
        let found = match schema_at(schema, text) {
            Ok(found) => found,
            Err(why) => {
                causes.add(|| StatusCause::invalid(at, text, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if text.starts_with(".metadata.") {
            causes.add(|| StatusCause::invalid(&*at, text, "must not point to fields in metadata"));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            causes.add(|| StatusCause::invalid(&*at, text, detail));
        }
        if seen.contains(&text) {
            causes.add(|| StatusCause::duplicate(at, text));
        } else {
            seen.insert(text);
        }
    }
    if seen.len() > MAX_SELECTABLE {
        causes.add(|| StatusCause::too_many(path, seen.len(), MAX_SELECTABLE));
    }
}

/// Returns the schema of the field that a path without indices leads to, or why there is none.
fn schema_at<'v>(schema: &'v Value, path: &str) -> Result<&'v Value, String> {
    let mut schema = schema;
    let mut rest = path;
    let mut next = || {
        let is_delimiter = rest.starts_with(['.', '[', ']']);
        let end = if is_delimiter { 1 } else { rest.find(['.', '[', ']']).unwrap_or(rest.len()) };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token).filter(|token| !token.is_empty())
    };
    while let Some(token) = next() {
        match token {
            "." => {
                let name = next().ok_or("unexpected end of JSON path")?;
                let field = match schema.get("properties") {
                    Some(fields) => fields.get(name),
                    None => schema.get("additionalProperties").filter(|schema| schema.is_object()),
                };
                schema = field.ok_or("does not refer to a valid field")?;
            }
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(schema)
}

/// Validates the versions that are stored.
pub(super) fn stored(object: &Value, causes: &mut Causes) {
    let list = &object["status"]["storedVersions"];
    let stored = list.as_array().map_or(&[][..], Vec::as_slice);
    let field = "status.storedVersions";
    if stored.is_empty() {
        causes.add(|| StatusCause::invalid(field, Value::Null, "must have at least one stored version"));
        return;
    }
    let versions = object["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, version) in versions.iter().enumerate().filter(|(_, version)| version["storage"] == true) {
        // A stored version counts once.
        let is_repeated = versions[..index].iter().any(|known| known["name"] == version["name"]);
        if stored.contains(&version["name"]) && !is_repeated {
            continue;
        }
        let detail = format!("must have the storage version {}", text(&version["name"]));
        causes.add(|| StatusCause::invalid(field, list.clone(), &detail));
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let name = text(name);
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.add(|| StatusCause::invalid(format!("{field}[{index}]"), name, &detail));
        }
    }
}

/// Returns whether a schema has a default.
pub(super) fn has_defaults(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("default") || fields.values().any(has_defaults),
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

const MAX_SELECTABLE: usize = 8;
