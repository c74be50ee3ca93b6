//! The rules for `x-kubernetes-list-type` and `x-kubernetes-map-type` in schemas of custom kinds.

use std::collections::HashSet;

use klient_core::StatusCause;
use serde_json::{Value, json};

use super::path::Path;
use crate::causes::Causes;

/// Checks how lists and maps of a schema are merged.
pub(super) fn validate(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    let at = |keyword: &'static str| path.keyword(keyword);
    let kind = schema["type"].as_str().unwrap_or_default();
    let (list_type, map_type) = (schema["x-kubernetes-list-type"].as_str(), schema["x-kubernetes-map-type"].as_str());
    if let Some(map_type) = map_type {
        expect_type(kind, "object", "x-kubernetes-map-type", path, causes);
        if !matches!(map_type, "atomic" | "granular") {
            let field = at("x-kubernetes-map-type");
            causes.add(|| StatusCause::not_supported(field, map_type, &["atomic", "granular"]));
        }
    }
    let items = schema.get("items").filter(|items| items.is_object());
    if list_type.is_some() && !expect_type(kind, "array", "x-kubernetes-list-type", path, causes) {
        // Items are not checked.
    } else if let (Some("set"), Some(items)) = (list_type, items) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let inner_list = items.get("x-kubernetes-list-type").cloned();
        match items["type"].as_str() {
            Some("array") if inner_list.as_ref().is_some_and(|inner| *inner != json!("atomic")) => {
                let field = at("items.x-kubernetes-list-type");
                causes.add(|| StatusCause::invalid(field, inner_list.unwrap_or_default(), detail));
            }
            Some("object") if items["x-kubernetes-map-type"] != "atomic" => {
                let field = at("items.x-kubernetes-map-type");
                causes.add(|| StatusCause::invalid(field, inner_list.unwrap_or_default(), detail));
            }
            _ => {}
        }
    }
    if let Some(other) = list_type.filter(|list_type| !matches!(*list_type, "atomic" | "set" | "map")) {
        causes.add(|| StatusCause::not_supported(at("x-kubernetes-list-type"), other, &["atomic", "set", "map"]));
    }
    let keys: Vec<&str> =
        schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => causes.add(|| StatusCause::required(at("x-kubernetes-list-type"), detail)),
            Some("map") => {}
            Some(other) => causes.add(|| StatusCause::invalid(at("x-kubernetes-list-type"), other, detail)),
        }
    }
    if list_type == Some("map") {
        of_map(&keys, items, path, causes);
    }
    if let (Some(list_type @ ("map" | "set")), Some(items)) = (list_type, items) {
        nullable(list_type, &keys, items, path, causes);
    }
}

/// Checks the type of a schema with an extension. Returns whether it is right.
fn expect_type(kind: &str, expected: &str, extension: &str, path: &Path<'_>, causes: &mut Causes) -> bool {
    let detail = format!("must be {expected} if {extension} is specified");
    match kind {
        kind if kind == expected => return true,
        "" => causes.add(|| StatusCause::required(path.keyword("type"), &detail)),
        other => causes.add(|| StatusCause::invalid(path.keyword("type"), other, &detail)),
    }
    false
}

/// Checks a list whose items have keys.
fn of_map(keys: &[&str], items: Option<&Value>, path: &Path<'_>, causes: &mut Causes) {
    let at = |keyword: &'static str| path.keyword(keyword);
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        causes.add(|| StatusCause::required(at("x-kubernetes-list-map-keys"), detail));
    }
    let Some(items) = items else {
        causes.add(|| StatusCause::required(at("items"), "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    let kind = items["type"].as_str().unwrap_or_default();
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        causes.add(|| StatusCause::invalid(at("items.type"), kind, detail));
        return;
    }
    let mut seen = HashSet::new();
    for key in keys {
        match items["properties"].get(key).map(|inner| inner["type"].as_str()) {
            Some(Some("array" | "object")) => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                causes.add(|| StatusCause::invalid(format!("{path}.items.properties[{key}].type"), kind, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                causes.add(|| StatusCause::invalid(at("x-kubernetes-list-map-keys"), json!(keys), detail));
            }
        }
        if !seen.insert(*key) {
            let detail = "must not contain duplicate entries";
            causes.add(|| StatusCause::invalid(at("x-kubernetes-list-map-keys"), json!(keys), detail));
        }
    }
}

/// Checks that items and their keys are never null or absent.
fn nullable(list_type: &str, keys: &[&str], items: &Value, path: &Path<'_>, causes: &mut Causes) {
    if items["nullable"] == true {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        causes.add(|| StatusCause::forbidden(path.keyword("items.nullable"), &detail));
    }
    if list_type != "map" {
        return;
    }
    let required = items["required"].as_array().into_iter().flatten();
    let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
    for key in keys {
        let Some(inner) = items["properties"].get(key) else { continue };
        if !required.contains(key) && inner.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            causes.add(|| StatusCause::required(format!("{path}.items.properties[{key}].default"), detail));
        }
        if inner["nullable"] == true {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.add(|| StatusCause::forbidden(format!("{path}.items.properties[{key}].nullable"), detail));
        }
    }
}
