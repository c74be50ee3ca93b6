//! JSON merge patch: objects are merged, null deletes, everything else replaces.

use serde_json::{Map, Value};

pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        let was_object = target.is_object();
        target.clone_from(patch);
        // Go's library removes nulls from the objects in a list, unless the list takes the place of an object.
        if !was_object {
            without_nulls(target);
        }
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// Removes the nulls of all objects in a value. Those that are items of lists stay.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patch_follows_rfc_7396_and_go_in_lists() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (
                json!({"a": [1]}),
                json!({"a": [{"b": null, "c": [{"d": null}, null]}]}),
                json!({"a": [{"c": [{}, null]}]}),
            ),
            (json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target;
            merge(&mut merged, &patch);
            assert_eq!(merged, expected);
        }
    }
}
