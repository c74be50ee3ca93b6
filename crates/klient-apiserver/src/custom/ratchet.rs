//! Validation ratcheting: an update can leave parts of an object invalid that it does not change.
//!
//! Items of lists are compared by their keys. The real server compares only fields that the schema has, so that a part with
//! other fields counts as changed.

use serde_json::Value;

/// Returns whether a value is equal in the stored object.
pub(super) fn is_unchanged(value: &Value, old: &Value, schema: &Value) -> bool {
    match (value, old) {
        (Value::Array(items), Value::Array(old_items)) => {
            if items.len() != old_items.len() {
                return false;
            }
            if schema["x-kubernetes-list-type"] != "map" {
                return items == old_items;
            }
            let Some(inner) = schema.get("items") else { return items == old_items };
            items.iter().all(|item| self::item(item, old, schema).is_some_and(|old| is_unchanged(item, old, inner)))
        }
        (Value::Object(fields), Value::Object(old_fields)) => {
            fields.len() == old_fields.len()
                && fields.iter().all(|(name, value)| {
                    let inner = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                    let inner = inner.filter(|inner| inner.is_object());
                    old_fields.get(name).zip(inner).is_some_and(|(old, inner)| is_unchanged(value, old, inner))
                })
        }
        _ => value == old,
    }
}

/// Returns the item of a stored list that has the keys of an item.
pub(super) fn item<'a>(item: &Value, old: &'a Value, schema: &Value) -> Option<&'a Value> {
    if schema["x-kubernetes-list-type"] != "map" {
        return None;
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
    let identity = |item: &Value| -> Option<Vec<Value>> {
        let is_scalar = |value: &&Value| !(value.is_null() || value.is_array() || value.is_object());
        keys.iter().map(|key| item.get(key.as_str()?).filter(is_scalar).cloned()).collect()
    };
    let wanted = identity(item)?;
    old.as_array()?.iter().find(|old| identity(old).as_ref() == Some(&wanted))
}
