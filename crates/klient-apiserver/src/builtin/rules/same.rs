//! Equality of values as Go compares them: absent lists and maps are the same as empty ones.
//!
//! Normalised objects have no empty maps, so that an empty object is a struct, which an absent one does not equal.

use serde_json::{Map, Value};

/// Returns whether two values are the same.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let of = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
            let all = |from: &Map<String, Value>| from.keys().all(|name| is_same(&of(one, name), &of(other, name)));
            all(one) && all(other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other || (is_nothing(one) && is_nothing(other)),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
