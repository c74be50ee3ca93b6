//! The pass for schemas that the server would refuse: each is replaced by the narrowest one that it takes.

use serde_json::{Map, Value, json};

use super::{INT_OR_STRING, PRESERVE, Place, hoist::without_null, is_set, unite::united};

type Schema = Map<String, Value>;

pub(super) fn repair(schema: &mut Schema, place: Place) {
    repair_bounds(schema);
    repair_tuples(schema);
    if place == Place::Field {
        cut_references(schema);
        repair_types(schema);
        repair_maps(schema);
        remove_null_branch(schema);
        repair_branches(schema);
        repair_fields(schema);
    }
}

/// Recursive types have no finite schema: the recursion ends at the first repetition.
fn cut_references(schema: &mut Schema) {
    let has_reference = |one: &Value| one.get("$ref").is_some();
    let in_all_of = schema.get("allOf").and_then(Value::as_array).is_some_and(|all| all.iter().any(has_reference));
    if schema.remove("$ref").is_some() || in_all_of {
        schema.remove("allOf");
        schema.insert(PRESERVE.to_owned(), Value::Bool(true));
    }
    // The definitions of references.
    schema.remove("components");
    schema.remove("definitions");
    schema.remove("$defs");
}

/// A list of types becomes the one type that has them all.
fn repair_types(schema: &mut Schema) {
    let Some(Value::Array(types)) = schema.get("type") else { return };
    let schemas = types.iter().filter(|kind| *kind != "null").map(|kind| json!({"type": kind}));
    let is_nullable = types.iter().any(|kind| kind == "null");
    let whole = schemas.reduce(|a, b| united(&a, &b)).unwrap_or_default();
    schema.remove("type");
    if let Value::Object(mut whole) = whole {
        schema.append(&mut whole);
    }
    if is_nullable {
        schema.insert("nullable".to_owned(), Value::Bool(true));
    }
}

/// The server has no `patternProperties`, and no `additionalProperties` beside `properties`.
fn repair_maps(schema: &mut Schema) {
    if let Some(Value::Object(patterns)) = schema.remove("patternProperties")
        && let Some(whole) = patterns.into_iter().map(|(_, value)| value).reduce(|a, b| united(&a, &b))
    {
        schema.insert("additionalProperties".to_owned(), whole);
    }
    schema.remove("propertyNames");
    if schema.contains_key("properties") && schema.remove("additionalProperties").is_some() {
        schema.insert(PRESERVE.to_owned(), Value::Bool(true));
    }
}

/// The server has one schema for all items of an array, which must be there.
fn repair_tuples(schema: &mut Schema) {
    if schema.get("type").is_some_and(|kind| kind == "array") && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({PRESERVE: true}));
    }
    let Some(Value::Array(items)) = schema.get("items") else { return };
    let whole = items.iter().cloned().reduce(|a, b| united(&a, &b)).unwrap_or_else(|| json!({PRESERVE: true}));
    schema.insert("items".to_owned(), whole);
    schema.remove("additionalItems");
}

/// Exclusive bounds are booleans in OpenAPI 3.0.
fn repair_bounds(schema: &mut Schema) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Number(number)) = schema.get(exclusive) {
            let number = number.clone();
            schema.insert(bound.to_owned(), Value::Number(number));
            schema.insert(exclusive.to_owned(), Value::Bool(true));
        }
    }
}

/// `null` is not a branch, but a property of the whole.
fn remove_null_branch(schema: &mut Schema) {
    let Some(Value::Array(branches)) = schema.get("anyOf") else { return };
    let (mut values, has_null) = without_null(branches);
    if !has_null {
        return;
    }
    schema.insert("nullable".to_owned(), Value::Bool(true));
    if values.len() > 1 {
        schema.insert("anyOf".to_owned(), Value::Array(values));
        return;
    }
    schema.remove("anyOf");
    if let Some(Value::Object(mut value)) = values.pop() {
        schema.append(&mut value);
    }
}

/// Branches have no annotations.
fn repair_branches(schema: &mut Schema) {
    if !schema.contains_key("type") || is_set(schema, INT_OR_STRING) {
        return;
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(branch) = branch {
                branch
                    .retain(|keyword, _| !["description", "title", "default", "nullable"].contains(&keyword.as_str()));
            }
        }
    }
}

/// A field, an item or a value of a map has a type, or is declared to have any.
fn repair_fields(schema: &mut Schema) {
    for property in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        repair_field(property.1);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(field) = schema.get_mut(keyword) {
            repair_field(field);
        }
    }
}

fn repair_field(field: &mut Value) {
    let Value::Object(field) = field else { return };
    let has_type = field.contains_key("type") || is_set(field, INT_OR_STRING) || is_set(field, PRESERVE);
    let has_branches = ["oneOf", "allOf", "enum"].iter().any(|keyword| field.contains_key(*keyword));
    // Branches without a type may be a mistake in the type: `check` says which.
    if has_type || has_branches {
        return;
    }
    field.remove("anyOf");
    field.insert(PRESERVE.to_owned(), Value::Bool(true));
}
