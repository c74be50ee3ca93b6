//! Passes for optional values, which schemars writes as `anyOf` of the value and `null`.

use serde_json::{Map, Value, json};

use super::{INT_OR_STRING, Place, is_set};

/// Merges `anyOf: [X, null]` into X with `nullable`.
pub(super) fn optional_values(schema: &mut Map<String, Value>, _: Place) {
    let Some([Value::Object(value), Value::Object(null)]) =
        schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
    else {
        return;
    };
    let is_null = null.get("enum") == Some(&json!([null])) && is_set(null, "nullable");
    if is_null && !value.contains_key("nullable") {
        let mut value = value.clone();
        schema.remove("anyOf");
        schema.append(&mut value);
        schema.insert("nullable".to_owned(), Value::Bool(true));
    }
}

/// Makes properties with int-or-strings nullable, unless they are required.
pub(super) fn optional_int_or_strings(schema: &mut Map<String, Value>, _: Place) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let is_optional = |name: &str| !required.iter().any(|one| one == name);
    for (_, property) in properties.iter_mut().filter(|(name, _)| is_optional(name)) {
        if let Value::Object(property) = property
            && is_set(property, INT_OR_STRING)
        {
            property.entry("nullable").or_insert(Value::Bool(true));
        }
    }
}
