//! The JSON patch of a mutation.
//!
//! A handler sees a typed object, which has only the fields that its type knows. Its changes are therefore computed between two typed
//! forms, and merged into the object as it was sent, so that fields that the type does not know stay as they are.

use serde_json::{Map, Value, json};

/// Returns the operations that lead from an object as it was sent to the same object with a handler's changes.
///
/// `before` and `after` are the typed forms. There are no operations if nothing changed.
pub(super) fn operations(sent: &Value, before: &Value, after: Value) -> Vec<Value> {
    let merged = merge(sent, before, after);
    let mut operations = Vec::new();
    diff(sent, &merged, &mut String::new(), &mut operations);
    operations
}

/// Applies the change from `before` to `after` to `sent`.
fn merge(sent: &Value, before: &Value, after: Value) -> Value {
    if *before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(merge_fields(sent, before, after))
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            Value::Array(merge_items(sent, before, after))
        }
        (_, _, after) => after,
    }
}

fn merge_fields(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    after: Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = sent.clone();
    merged.retain(|name, _| !before.contains_key(name) || after.contains_key(name));
    for (name, after) in after {
        let value = match (sent.get(&name), before.get(&name)) {
            // A field that the type wrote although it was not sent, such as an empty list, is no change.
            (None, Some(before)) if *before == after => continue,
            (Some(sent), Some(before)) => merge(sent, before, after),
            _ => after,
        };
        merged.insert(name, value);
    }
    merged
}

/// Merges lists. Items are the same if they have the same name, or else the same place.
fn merge_items(sent: &[Value], before: &[Value], after: Vec<Value>) -> Vec<Value> {
    let name = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
    let is_same_length = before.len() == after.len();
    let merge_item = |(index, after): (usize, Value)| {
        let by_name =
            name(&after).and_then(|wanted| before.iter().position(|item| name(item).as_ref() == Some(&wanted)));
        let by_value = || before.iter().position(|item| *item == after);
        let by_place = || (is_same_length && name(&after).is_none()).then_some(index);
        match by_name.or_else(by_value).or_else(by_place) {
            Some(at) => merge(&sent[at], &before[at], after),
            None => after,
        }
    };
    after.into_iter().enumerate().map(merge_item).collect()
}

/// Adds the operations that lead from one value to another.
fn diff(from: &Value, to: &Value, path: &mut String, operations: &mut Vec<Value>) {
    if from == to {
        return;
    }
    let length = path.len();
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            for name in from.keys().filter(|name| !to.contains_key(*name)) {
                operations.push(json!({"op": "remove", "path": format!("{path}/{}", escaped(name))}));
            }
            for (name, to) in to {
                path.push('/');
                path.push_str(&escaped(name));
                match from.get(name) {
                    Some(from) => diff(from, to, path, operations),
                    None => operations.push(json!({"op": "add", "path": path, "value": to})),
                }
                path.truncate(length);
            }
        }
        (Value::Array(from), Value::Array(to)) if to.len() >= from.len() => {
            for (index, (from, to)) in from.iter().zip(to).enumerate() {
                path.push_str(&format!("/{index}"));
                diff(from, to, path, operations);
                path.truncate(length);
            }
            for added in &to[from.len()..] {
                operations.push(json!({"op": "add", "path": format!("{path}/-"), "value": added}));
            }
        }
        (_, to) => operations.push(json!({"op": "replace", "path": path, "value": to})),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_the_type_does_not_know_survive() {
        let sent =
            json!({"spec": {"a": 1, "new": true, "items": [{"name": "x", "v": 1, "new": 7}, {"name": "y", "v": 2}]}});
        let before = json!({"spec": {"a": 1, "items": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}});
        let after =
            json!({"spec": {"a": 2, "items": [{"name": "w", "v": 0}, {"name": "x", "v": 3}, {"name": "y", "v": 2}]}});
        let merged = merge(&sent, &before, after);
        assert_eq!(
            merged,
            json!({"spec": {"a": 2, "new": true, "items": [{"name": "w", "v": 0}, {"name": "x", "v": 3, "new": 7}, {"name": "y", "v": 2}]}})
        );
    }

    #[test]
    fn patch_names_only_what_changed() {
        let sent = json!({"metadata": {"labels": {"a/b": "1"}}, "list": [1, 2]});
        let after = json!({"metadata": {"labels": {"a/b": "2"}}, "list": [1, 2, 3]});
        assert_eq!(
            operations(&sent, &sent, after),
            [
                json!({"op": "add", "path": "/list/-", "value": 3}),
                json!({"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"}),
            ]
        );
        assert!(operations(&sent, &sent, sent.clone()).is_empty());
    }

    #[test]
    fn defaults_of_serialization_are_no_change() {
        let sent = json!({"spec": {}});
        let before = json!({"spec": {"list": []}, "status": {}});
        let mut after = before.clone();
        after["spec"]["a"] = json!(1);
        assert_eq!(operations(&sent, &before, after), [json!({"op": "add", "path": "/spec/a", "value": 1})]);
    }
}
