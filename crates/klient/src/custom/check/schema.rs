//! Checks of structural schemas.

use klient_core::rule_cost::Occurrence;
use serde_json::{Map, Value};

use super::{Problems, field_paths, is_set};
use crate::custom::cel_cost::{check_rules, check_total};

pub(super) fn check(schema: &Value, problems: &mut Problems) {
    if schema["type"] != "object" {
        // A type without any schema leaves its reason here.
        let reason = schema["description"].as_str().filter(|text| text.contains("has no schema"));
        problems.add("", reason.unwrap_or("the type of the whole object must be object"));
        return;
    }
    for name in ["apiVersion", "kind"] {
        if schema["properties"].get(name).is_some_and(|field| field["type"] != "string") {
            problems.add(name, "must be a string");
        }
    }
    let cost = field(schema, "", Occurrence::ROOT, problems);
    if let Some(reason) = check_total(cost) {
        problems.add("", reason);
    }
}

/// Checks a schema that describes a field, an item, or the whole object. Returns the cost of its CEL rules.
fn field(schema: &Value, path: &str, occurrence: Occurrence, problems: &mut Problems) -> u64 {
    let Value::Object(keywords) = schema else {
        problems.add(path, "must be a schema, found a boolean");
        return 0;
    };
    check_type(keywords, schema, path, problems);
    for keyword in FORBIDDEN.iter().filter(|keyword| keywords.contains_key(**keyword)) {
        problems.add(path, format!("`{keyword}` is not supported by CustomResourceDefinitions"));
    }
    if is_set(schema, "uniqueItems") {
        problems.add(path, "`uniqueItems` is not supported: use `merge_strategy = ListMerge::Set`");
    }
    let is_map = keywords.get("additionalProperties").is_some_and(|values| *values != Value::Bool(true));
    if keywords.contains_key("properties") && is_map {
        problems.add(
            path,
            "`properties` and `additionalProperties` exclude each other: put the map into a field of its own",
        );
    }
    let preserves = is_set(schema, "x-kubernetes-preserve-unknown-fields");
    if is_set(schema, "x-kubernetes-embedded-resource") && !preserves && !keywords.contains_key("properties") {
        problems.add(path, "an embedded resource has fields, or preserves unknown fields");
    }
    if schema["items"].is_array() {
        problems.add(path, "tuples are not supported: all items of a list have one schema");
    }
    check_merge(schema, path, problems);
    check_default(schema, path, problems);
    field_paths::check(schema, path, problems);
    let mut cost = check_rules(schema, occurrence, &mut |reason| problems.add(path, reason));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for one in schema[keyword].as_array().into_iter().flatten() {
            branch(one, schema, path, keyword, problems);
        }
    }
    if let Some(not) = keywords.get("not") {
        branch(not, schema, path, "not", problems);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !path.is_empty() || name != "metadata" {
            cost = cost.saturating_add(field(property, &format!("{path}.{name}"), occurrence.field(), problems));
        }
    }
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "[*]")] {
        if schema[keyword].is_object() {
            let inner = field(&schema[keyword], &format!("{path}{mark}"), occurrence.within(schema), problems);
            cost = cost.saturating_add(inner);
        }
    }
    cost
}

fn check_type(keywords: &Map<String, Value>, schema: &Value, path: &str, problems: &mut Problems) {
    let int_or_string = is_set(schema, "x-kubernetes-int-or-string");
    let preserves = is_set(schema, "x-kubernetes-preserve-unknown-fields");
    match keywords.get("type").and_then(Value::as_str) {
        Some("array") if !keywords.contains_key("items") => problems.add(path, "has no schema for its items"),
        Some("object" | "array" | "string" | "integer" | "number" | "boolean") => {}
        Some(kind) => problems.add(path, format!("has the unknown type {kind}")),
        None if int_or_string || preserves => {}
        None => problems.add(path, without_type(schema)),
    }
}

fn without_type(schema: &Value) -> String {
    let branches = schema["oneOf"].as_array();
    let is_unit = |branch: &Value| branch["enum"].is_array();
    match branches {
        Some(all) if all.iter().any(is_unit) && !all.iter().all(is_unit) => {
            "is not structural: an enum with unit variants and data variants has no type; give the unit variants braces (`A {}`), \
             or tag the enum (`#[serde(tag = \"type\")]`), or accept any value \
             (`#[schemars(extend(\"x-kubernetes-preserve-unknown-fields\" = true))]`)"
                .to_owned()
        }
        _ if schema["enum"] == serde_json::json!([null]) => {
            "is not structural: a unit struct has no type; give it braces (`struct A {}`)".to_owned()
        }
        _ => "is not structural: it has no type; to accept any value, add \
              `#[schemars(extend(\"x-kubernetes-preserve-unknown-fields\" = true))]`"
            .to_owned(),
    }
}

fn check_merge(schema: &Value, path: &str, problems: &mut Problems) {
    let kind = schema["type"].as_str().unwrap_or_default();
    if let Some(map_type) = schema["x-kubernetes-map-type"].as_str()
        && (kind != "object" || !["atomic", "granular"].contains(&map_type))
    {
        problems.add(path, format!("`MapMerge` is for maps and structs, found {kind}"));
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let Some(list_type) = schema["x-kubernetes-list-type"].as_str() else { return };
    if kind != "array" {
        problems.add(path, format!("`ListMerge` is for lists, found {kind}"));
        return;
    }
    let items = &schema["items"];
    match list_type {
        "atomic" => {}
        "set" => {
            let is_scalar = matches!(items["type"].as_str(), Some("string" | "integer" | "number" | "boolean"));
            let is_atomic = items["x-kubernetes-map-type"] == "atomic" || items["x-kubernetes-list-type"] == "atomic";
            if !is_scalar && !is_atomic && !is_set(items, "x-kubernetes-int-or-string") {
                problems
                    .add(path, "`ListMerge::Set` is for lists of scalars: use `ListMerge::Map` for lists of structs");
            }
            if is_set(items, "nullable") {
                problems.add(path, "`ListMerge::Set` does not allow optional elements");
            }
        }
        "map" if items["type"] != "object" => problems.add(path, "`ListMerge::Map` is for lists of structs"),
        "map" => {
            if keys.is_none_or(Vec::is_empty) {
                problems.add(path, "`ListMerge::Map` needs at least one key");
            }
            for key in keys.into_iter().flatten().filter_map(Value::as_str) {
                check_key(items, key, path, problems);
            }
        }
        other => problems.add(path, format!("unknown list type {other:?}")),
    }
}

fn check_key(items: &Value, key: &str, path: &str, problems: &mut Problems) {
    let Some(field) = items["properties"].get(key) else {
        let fields: Vec<&str> =
            items["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        problems.add(path, format!("unknown merge key {key:?}: the items have the fields {}", fields.join(", ")));
        return;
    };
    if !matches!(field["type"].as_str(), Some("string" | "integer" | "number" | "boolean")) {
        problems.add(path, format!("merge key {key:?} must be a scalar"));
    }
    let is_required = items["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key));
    if !is_required && field.get("default").is_none() {
        problems.add(path, format!("merge key {key:?} must be required, or have a default"));
    }
    if is_set(field, "nullable") {
        problems.add(path, format!("merge key {key:?} must not be nullable"));
    }
}

fn check_default(schema: &Value, path: &str, problems: &mut Problems) {
    let Some(default) = schema.get("default") else { return };
    let fits = default.is_null() && is_set(schema, "nullable")
        || match schema["type"].as_str() {
            Some("string") => default.is_string(),
            Some("integer") => default.is_i64() || default.is_u64(),
            Some("number") => default.is_number(),
            Some("boolean") => default.is_boolean(),
            Some("array") => default.is_array(),
            Some("object") => default.is_object(),
            _ => true,
        };
    if !fits {
        problems.add(path, format!("default {default} is not a {}", schema["type"].as_str().unwrap_or_default()));
    } else if let Some(values) = schema["enum"].as_array()
        && !values.contains(default)
    {
        problems.add(path, format!("default {default} is not one of the allowed values"));
    }
}

/// Checks a branch, which may have validations, and nothing else.
fn branch(schema: &Value, outside: &Value, path: &str, keyword: &str, problems: &mut Problems) {
    let Value::Object(keywords) = schema else { return };
    let int_or_string = is_set(outside, "x-kubernetes-int-or-string");
    let is_forbidden = |name: &str| {
        (["description", "title", "default", "nullable", "additionalProperties"].contains(&name))
            || (name == "type" && !int_or_string)
            || name.starts_with("x-")
    };
    for name in keywords.keys().filter(|name| is_forbidden(name)) {
        problems.add(path, format!("is not structural: `{name}` is not allowed in `{keyword}`"));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        branch(inner, &outside["properties"][name], &format!("{path}.{name}"), keyword, problems);
    }
    if schema["items"].is_object() {
        branch(&schema["items"], &outside["items"], &format!("{path}[]"), keyword, problems);
    }
    for nested in ["allOf", "anyOf", "oneOf"] {
        for one in schema[nested].as_array().into_iter().flatten() {
            branch(one, outside, path, nested, problems);
        }
    }
    if let Some(not) = keywords.get("not") {
        branch(not, outside, path, "not", problems);
    }
}

const FORBIDDEN: &[&str] =
    &["$ref", "$schema", "id", "additionalItems", "definitions", "dependencies", "patternProperties"];
