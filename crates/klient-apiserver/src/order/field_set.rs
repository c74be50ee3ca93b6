//! The canonical order of field sets: `.`, names, keys and values. Numbers in keys are ordered by value.

use std::cmp::Ordering;

use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// A value of `fieldsV1`.
pub(super) struct InCanonicalOrder<'a>(pub(super) &'a Value);

impl Serialize for InCanonicalOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let inner = |(name, value)| (name, InCanonicalOrder(value));
        // The order of names is that of their text.
        if fields.keys().filter(|name| is_item(name)).nth(1).is_none() {
            return serializer.collect_map(fields.iter().map(inner));
        }
        let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| compare(a, b));
        serializer.collect_map(sorted.into_iter().map(inner))
    }
}

/// Returns whether an element is an item of a list: a key or a value.
fn is_item(element: &str) -> bool {
    element.starts_with("k:") || element.starts_with("v:")
}

/// Compares two elements.
fn compare(a: &str, b: &str) -> Ordering {
    if !is_item(a) || !is_item(b) || a.as_bytes()[0] != b.as_bytes()[0] {
        return a.cmp(b);
    }
    match (serde_json::from_str(&a[2..]), serde_json::from_str(&b[2..])) {
        (Ok(a), Ok(b)) => compare_values(&a, &b),
        _ => a.cmp(b),
    }
}

/// Compares keys pairwise by name and value, and scalars by type and value.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| a.0.cmp(b.0).then_with(|| compare_values(a.1, b.1)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

#[cfg(test)]
mod tests {
    use klient_core::fields::FieldSet;
    use serde_json::json;

    use super::*;

    #[test]
    fn order_is_that_of_field_sets() {
        let value = json!({"f:b": {}, "f:a": {
            ".": {}, "k:{\"port\":443,\"protocol\":\"TCP\"}": {}, "k:{\"port\":80,\"protocol\":\"UDP\"}": {},
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:x": {}}}, "f:c": {"v:9": {}, "v:10": {}, "v:\"a b\"": {},
            "v:\"a\"": {}}});
        let set = FieldSet::from_value(&value).unwrap();
        assert_eq!(serde_json::to_string(&InCanonicalOrder(&value)).unwrap(), set.to_string());
    }
}
