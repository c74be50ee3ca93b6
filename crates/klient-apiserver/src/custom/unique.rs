//! Uniqueness of items in lists of the types `set` and `map`.

use std::collections::HashMap;

use klient_core::StatusCause;
use serde_json::{Map, Value};

use crate::causes::Causes;

/// Returns a cause for each item that occurs a second time.
pub(super) fn validate(value: &Value, schema: &Value, path: &str) -> Causes {
    match value {
        Value::Array(items) => of_list(items, schema, path),
        Value::Object(fields) => of_object(fields, schema, path),
        _ => Causes::new(),
    }
}

fn of_object(fields: &Map<String, Value>, schema: &Value, path: &str) -> Causes {
    let mut causes = Causes::new();
    if let Some(inner @ Value::Object(_)) = schema.get("additionalProperties") {
        causes.extend(fields.iter().flat_map(|(name, value)| validate(value, inner, &format!("{path}[{name}]"))));
    }
    for (name, value) in fields {
        if let Some(inner) = schema["properties"].get(name) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            causes.extend(validate(value, inner, &path));
        }
    }
    causes
}

fn of_list(items: &[Value], schema: &Value, path: &str) -> Causes {
    let mut causes = Causes::new();
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => causes.extend(duplicates(items, path)),
        Some("map") => {
            let odd = items.iter().position(|item| !item.is_null() && !item.is_object());
            if let Some(index) = odd {
                let detail = "must be an object for an array of list-type map";
                causes.add(|| StatusCause::invalid(format!("{path}[{index}]"), items[index].clone(), detail));
            } else {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().map_or(&[][..], Vec::as_slice);
                let identity = |item: &Value| -> Value {
                    let keys = keys.iter().filter_map(Value::as_str);
                    keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone()))).collect()
                };
                let identities: Vec<Value> = items.iter().map(identity).collect();
                causes.extend(duplicates(&identities, path));
            }
        }
        _ => {}
    }
    if let Some(inner) = schema.get("items") {
        let below = items.iter().enumerate();
        causes.extend(below.flat_map(|(index, item)| validate(item, inner, &format!("{path}[{index}]"))));
    }
    causes
}

/// Returns a cause for the second occurrence of each value. Further ones are not reported.
fn duplicates(items: &[Value], path: &str) -> Causes {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut causes = Causes::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            causes.add(|| StatusCause::duplicate(format!("{path}[{index}]"), item.clone()));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn second_occurrence_of_an_item_is_reported() {
        let schema = json!({"properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object"}}}});
        let value = json!({"set": ["a", "a", "a", "b"], "map": [{"k": 1, "x": 1}, {"k": 1, "x": 2}, {"k": 2}]});
        let found: Vec<_> =
            validate(&value, &schema, "").into_iter().map(|cause| (cause.field, cause.message)).collect();
        let expected = [("map[1]", "Duplicate value: {\"k\":1}"), ("set[1]", "Duplicate value: \"a\"")];
        assert_eq!(found, expected.map(|(field, message)| (field.to_owned(), message.to_owned())));
    }
}
