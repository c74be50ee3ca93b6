//! Enums whose variants do not fit together by themselves: internally and adjacently tagged ones, and untagged scalars.
//!
//! The fields of all variants are united into one type. The branches say what each variant demands, in the keywords that the
//! server allows there: values, bounds and required fields, but no types.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    INT_OR_STRING, PRESERVE,
    hoist::{is_object, without_null},
    is_set,
};

type Schema = Map<String, Value>;

/// Unites the branches of a tagged enum.
///
/// An enum with variants that are strings and variants that are objects has no structural schema. It stays as it is, unless
/// the type says that unknown fields are preserved.
pub(super) fn one_of(schema: &mut Schema, branches: &[Value]) {
    match objects(branches) {
        Some(objects) => unite(schema, "oneOf", &objects),
        None if is_set(schema, PRESERVE) => {
            schema.remove("oneOf");
            schema.remove("type");
        }
        None => {}
    }
}

/// Unites the branches of an untagged enum.
pub(super) fn any_of(schema: &mut Schema, branches: &[Value]) {
    let (values, has_null) = without_null(branches);
    match objects(&values) {
        Some(objects) => unite(schema, "anyOf", &objects),
        None => {
            schema.remove("anyOf");
            schema.remove("type");
            schema.insert(PRESERVE.to_owned(), Value::Bool(true));
        }
    }
    if has_null {
        schema.insert("nullable".to_owned(), Value::Bool(true));
    }
}

/// Replaces the branches of an untagged enum without objects by one type. Returns false if they are something else.
pub(super) fn scalars(schema: &mut Schema, branches: &[Value]) -> bool {
    let (values, has_null) = without_null(branches);
    let is_typed = |value: &Value| value.get("type").is_some();
    // One value and null is an optional value, which another pass handles.
    if values.len() < 2 && has_null || !values.iter().any(is_typed) {
        return false;
    }
    schema.remove("anyOf");
    let united = values.into_iter().reduce(|a, b| united(&a, &b)).unwrap_or_default();
    if let Value::Object(mut united) = united {
        united.remove("description");
        schema.append(&mut united);
    }
    if has_null {
        schema.insert("nullable".to_owned(), Value::Bool(true));
    }
    true
}

/// Returns the branches if all are objects.
fn objects(branches: &[Value]) -> Option<Vec<Schema>> {
    let object = |branch: &Value| {
        let branch = branch.as_object()?;
        let is_typed = branch.get("type").is_some_and(|kind| kind == "object");
        (is_typed || is_object(branch)).then(|| branch.clone())
    };
    branches.iter().map(object).collect()
}

fn unite(schema: &mut Schema, keyword: &str, branches: &[Schema]) {
    let mut properties = take_properties(schema);
    for branch in branches {
        for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let whole = match properties.get(name) {
                Some(other) => united(other, property),
                None => property.clone(),
            };
            properties.insert(name.clone(), whole);
        }
        // Each variant may have fields that others do not have, so that only open maps say anything.
        if branch.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
            schema.insert(PRESERVE.to_owned(), Value::Bool(true));
        }
    }
    let always = branches.iter().map(required).reduce(|a, b| &a & &b).unwrap_or_default();
    let demands: Vec<Value> =
        branches.iter().map(|branch| Value::Object(demand(branch, &properties, &always))).collect();
    let mut all_required = required(schema);
    all_required.extend(always);
    if !all_required.is_empty() {
        schema.insert("required".to_owned(), json!(all_required));
    }
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert(keyword.to_owned(), Value::Array(demands));
}

fn take_properties(schema: &mut Schema) -> Schema {
    match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}

fn required(schema: &Schema) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns what a branch demands beyond the united properties, without the fields that all branches require.
fn demand(branch: &Schema, properties: &Schema, always: &BTreeSet<String>) -> Schema {
    let mut demand = Map::new();
    let own: Vec<String> = required(branch).into_iter().filter(|name| !always.contains(name)).collect();
    if !own.is_empty() {
        demand.insert("required".to_owned(), json!(own));
    }
    let mut narrowed = Map::new();
    for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let (Value::Object(property), Some(Value::Object(whole))) = (property, properties.get(name)) {
            let residue = residue(property, whole);
            if !residue.is_empty() {
                narrowed.insert(name.clone(), Value::Object(residue));
            }
        }
    }
    if !narrowed.is_empty() {
        demand.insert("properties".to_owned(), Value::Object(narrowed));
    }
    for keyword in ["oneOf", "anyOf", "allOf", "not", "minProperties", "maxProperties"] {
        if let Some(value) = branch.get(keyword) {
            demand.insert(keyword.to_owned(), value.clone());
        }
    }
    demand
}

/// Returns the validations of a schema that the united one lacks.
fn residue(schema: &Schema, whole: &Schema) -> Schema {
    // Without a type there is no place for the validations of fields.
    if is_set(whole, PRESERVE) || is_set(whole, INT_OR_STRING) {
        return Map::new();
    }
    let mut residue = Map::new();
    for keyword in VALIDATIONS {
        match (schema.get(*keyword), whole.get(*keyword)) {
            (Some(value), other) if other != Some(value) => drop(residue.insert((*keyword).to_owned(), value.clone())),
            _ => {}
        }
    }
    let own: Vec<String> = required(schema).difference(&required(whole)).cloned().collect();
    if !own.is_empty() {
        residue.insert("required".to_owned(), json!(own));
    }
    if let (Some(Value::Object(own)), Some(Value::Object(all))) = (schema.get("properties"), whole.get("properties")) {
        let mut properties = Map::new();
        for (name, property) in own {
            if let (Value::Object(property), Some(Value::Object(whole))) = (property, all.get(name)) {
                let inner = self::residue(property, whole);
                if !inner.is_empty() {
                    properties.insert(name.clone(), Value::Object(inner));
                }
            }
        }
        if !properties.is_empty() {
            residue.insert("properties".to_owned(), Value::Object(properties));
        }
    }
    residue
}

/// Returns a schema that allows whatever one of both allows, and as little else as possible.
pub(super) fn united(a: &Value, b: &Value) -> Value {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return any_value() };
    if without_annotations(a) == without_annotations(b) {
        return Value::Object(a.clone());
    }
    let mut whole = match (a.get("type").and_then(Value::as_str), b.get("type").and_then(Value::as_str)) {
        (Some("object"), Some("object")) => united_objects(a, b),
        (Some("array"), Some("array")) => match (a.get("items"), b.get("items")) {
            (Some(a), Some(b)) => object(json!({"type": "array", "items": united(a, b)})),
            _ => object(any_value()),
        },
        (Some(one), Some(other)) if one == other => united_scalars(one, a, b),
        (Some("integer" | "number"), Some("integer" | "number")) => object(json!({"type": "number"})),
        (Some("integer" | "string"), Some("integer" | "string")) => object(json!({INT_OR_STRING: true})),
        (Some("integer" | "string"), None) if is_set(b, INT_OR_STRING) => object(json!({INT_OR_STRING: true})),
        (None, Some("integer" | "string")) if is_set(a, INT_OR_STRING) => object(json!({INT_OR_STRING: true})),
        _ => object(any_value()),
    };
    if is_set(a, "nullable") || is_set(b, "nullable") {
        whole.insert("nullable".to_owned(), Value::Bool(true));
    }
    if let Some(description) = a.get("description") {
        whole.insert("description".to_owned(), description.clone());
    }
    Value::Object(whole)
}

fn united_scalars(kind: &str, a: &Schema, b: &Schema) -> Schema {
    let mut whole = object(json!({"type": kind}));
    for keyword in VALIDATIONS.iter().chain(&["format"]) {
        if let (Some(value), Some(other)) = (a.get(*keyword), b.get(*keyword))
            && value == other
        {
            whole.insert((*keyword).to_owned(), value.clone());
        }
    }
    if let (Some(Value::Array(values)), Some(Value::Array(others))) = (a.get("enum"), b.get("enum")) {
        let mut all = values.clone();
        all.extend(others.iter().filter(|other| !values.contains(other)).cloned());
        whole.insert("enum".to_owned(), Value::Array(all));
    }
    whole
}

fn united_objects(a: &Schema, b: &Schema) -> Schema {
    let mut whole = object(json!({"type": "object"}));
    match (a.get("additionalProperties"), b.get("additionalProperties")) {
        (None | Some(Value::Bool(false)), None | Some(Value::Bool(false))) => {}
        (Some(a), Some(b)) => drop(whole.insert("additionalProperties".to_owned(), united(a, b))),
        _ => {
            whole.insert(PRESERVE.to_owned(), Value::Bool(true));
            return whole;
        }
    }
    if is_set(a, PRESERVE) || is_set(b, PRESERVE) {
        whole.insert(PRESERVE.to_owned(), Value::Bool(true));
    }
    let fields = |schema: &Schema| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut properties = fields(a);
    for (name, property) in fields(b) {
        let field = properties.get(&name).map_or_else(|| property.clone(), |other| united(other, &property));
        properties.insert(name, field);
    }
    if !properties.is_empty() {
        whole.insert("properties".to_owned(), Value::Object(properties));
    }
    let both = &required(a) & &required(b);
    if !both.is_empty() {
        whole.insert("required".to_owned(), json!(both));
    }
    whole
}

fn without_annotations(schema: &Schema) -> Schema {
    let is_annotation = |keyword: &str| ["description", "title", "example", "default"].contains(&keyword);
    schema.iter().filter(|(keyword, _)| !is_annotation(keyword)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn any_value() -> Value {
    json!({PRESERVE: true})
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The keywords that the server allows in branches, without those for the fields of objects.
const VALIDATIONS: &[&str] = &[
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
];
