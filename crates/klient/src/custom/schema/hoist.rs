//! The pass for enums: moves properties, types and values out of `oneOf` and `anyOf`, where the server does not allow them.
//!
//! Branches that do not fit together are left to `unite`.

use serde_json::{Map, Value, map::Entry};

use super::{INT_OR_STRING, PRESERVE, Place, is_null, is_set, unite};

type Schema = Map<String, Value>;

/// The reason why branches do not fit together: two of them define the same thing in different ways.
struct Conflict;

pub(super) fn hoist(schema: &mut Schema, _: Place) {
    normalize(schema);
    if let Some(Value::Array(branches)) = schema.get("oneOf") {
        let original = branches.clone();
        match with_one_of(schema, original.clone()) {
            Ok(hoisted) => *schema = hoisted,
            Err(Conflict) => unite::one_of(schema, &original),
        }
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        let original = branches.clone();
        match with_any_of(schema, original.clone()) {
            Ok(hoisted) if has_type(&hoisted) || !unite::scalars(schema, &original) => *schema = hoisted,
            Ok(_) => {}
            Err(Conflict) => unite::any_of(schema, &original),
        }
    }
    if schema.contains_key("properties") {
        match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => {
                schema.remove("additionalProperties");
                schema.insert(PRESERVE.to_owned(), Value::Bool(true));
            }
            Some(Value::Bool(false)) => drop(schema.remove("additionalProperties")),
            _ => {}
        }
    }
    // The server does not support it. `x-kubernetes-list-type: set` is what it has instead.
    schema.remove("uniqueItems");
}

/// Sorts `required`, and removes keywords without content.
fn normalize(schema: &mut Schema) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        required.dedup();
    }
    schema.retain(|keyword, value| match (keyword.as_str(), value) {
        ("required", Value::Array(all)) => !all.is_empty(),
        ("properties" | "patternProperties", Value::Object(all)) => !all.is_empty(),
        _ => true,
    });
}

fn with_one_of(schema: &Schema, mut branches: Vec<Value>) -> Result<Schema, Conflict> {
    let mut schema = schema.clone();
    hoist_properties(&mut schema, &mut branches, true)?;
    hoist_values(&mut schema, &mut branches)?;
    if branches.is_empty() {
        schema.remove("oneOf");
    } else {
        schema.insert("oneOf".to_owned(), Value::Array(branches));
    }
    Ok(schema)
}

fn with_any_of(schema: &Schema, mut branches: Vec<Value>) -> Result<Schema, Conflict> {
    let mut schema = schema.clone();
    hoist_properties(&mut schema, &mut branches, false)?;
    schema.insert("anyOf".to_owned(), Value::Array(branches));
    Ok(schema)
}

/// Moves the properties and the type of each branch to the schema.
///
/// A tagged variant has one property, which gets the variant's description.
fn hoist_properties(schema: &mut Schema, branches: &mut [Value], describes: bool) -> Result<(), Conflict> {
    for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
        if is_object(branch) {
            let description = branch.remove("description");
            let mut properties = match branch.remove("properties") {
                Some(Value::Object(properties)) => properties,
                _ => Map::new(),
            };
            if let (true, Some(description)) = (describes, description)
                && properties.len() == 1
                && let Some(Value::Object(property)) = properties.values_mut().next()
            {
                property.insert("description".to_owned(), description);
            }
            for (name, property) in properties {
                add_property(schema, name, property)?;
            }
            branch.remove("additionalProperties");
            if let Some(kind) = branch.remove("type") {
                add_type(schema, kind)?;
            }
        } else if is_scalar(branch) {
            for keyword in ["type", "description", "default"] {
                branch.remove(keyword);
            }
        }
    }
    Ok(())
}

/// Moves the values of unit variants to the schema. schemars gives each a branch if one of them has documentation.
fn hoist_values(schema: &mut Schema, branches: &mut Vec<Value>) -> Result<(), Conflict> {
    let mut all = Vec::new();
    for branch in std::mem::take(branches) {
        let Some(Value::Array(values)) = branch.get("enum") else {
            branches.push(branch);
            continue;
        };
        if let Some(kind) = branch.get("type") {
            add_type(schema, kind.clone())?;
        }
        all.extend(values.iter().cloned());
    }
    if all.is_empty() {
        return Ok(());
    }
    match schema.entry("enum").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(values) => values.extend(all),
        _ => return Err(Conflict),
    }
    Ok(())
}

fn add_property(schema: &mut Schema, name: String, property: Value) -> Result<(), Conflict> {
    let Value::Object(properties) = schema.entry("properties").or_insert_with(|| Value::Object(Map::new())) else {
        return Err(Conflict);
    };
    match properties.entry(name) {
        Entry::Vacant(entry) => drop(entry.insert(property)),
        Entry::Occupied(entry) if *entry.get() == property => {}
        Entry::Occupied(_) => return Err(Conflict),
    }
    Ok(())
}

fn add_type(schema: &mut Schema, kind: Value) -> Result<(), Conflict> {
    match schema.entry("type") {
        Entry::Vacant(entry) => drop(entry.insert(kind)),
        Entry::Occupied(entry) if *entry.get() == kind => {}
        Entry::Occupied(_) => return Err(Conflict),
    }
    Ok(())
}

fn has_type(schema: &Schema) -> bool {
    schema.contains_key("type") || is_set(schema, INT_OR_STRING) || is_set(schema, PRESERVE)
}

/// Returns whether a branch has a keyword of objects.
pub(super) fn is_object(branch: &Schema) -> bool {
    let keywords = [
        "maxProperties",
        "minProperties",
        "required",
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
    ];
    keywords.iter().any(|keyword| branch.contains_key(*keyword))
}

/// Returns whether a branch has neither values nor a keyword of objects, arrays or other branches.
fn is_scalar(branch: &Schema) -> bool {
    let keywords =
        ["enum", "anyOf", "oneOf", "items", "additionalItems", "maxItems", "minItems", "uniqueItems", "contains"];
    !is_object(branch) && !keywords.iter().any(|keyword| branch.contains_key(*keyword))
}

/// Splits branches into those for values, and whether there was one for `null`.
pub(super) fn without_null(branches: &[Value]) -> (Vec<Value>, bool) {
    let values: Vec<Value> = branches.iter().filter(|branch| !is_null(branch)).cloned().collect();
    let has_null = values.len() < branches.len();
    (values, has_null)
}
