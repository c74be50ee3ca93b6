//! Pruning of unknown fields, and defaults, by the schema of a custom kind.

use serde_json::{Map, Value};

/// The handling of nulls that the schema does not allow and that have no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    Dropped,
    Kept,
}

/// Removes fields that the schema does not have. `apiVersion`, `kind` and `metadata` are not part of the schema.
pub(super) fn prune_root(object: &mut Value, schema: &Value, unknown: &mut Vec<String>) {
    let Value::Object(fields) = object else { return };
    let kept: Vec<(String, Value)> =
        ["apiVersion", "kind", "metadata"].iter().filter_map(|name| fields.remove_entry(*name)).collect();
    prune(object, schema, "", unknown);
    if let Value::Object(fields) = object {
        fields.extend(kept);
    }
}

/// Returns whether a schema has defaults.
pub(super) fn has_defaults(schema: &Value) -> bool {
    let inner = schema["properties"].as_object().into_iter().flat_map(Map::values);
    schema.get("default").is_some()
        || inner.chain(schema.get("items")).chain(schema.get("additionalProperties")).any(has_defaults)
}

/// Sets defaults.
pub(super) fn default_root(object: &mut Value, schema: &Value, nulls: Nulls) {
    fill(object, schema, nulls);
}

/// Returns whether a value has fields that its schema does not have.
pub(super) fn has_unknown_fields(value: &Value, schema: &Value) -> bool {
    let mut unknown = Vec::new();
    prune(&mut value.clone(), schema, "", &mut unknown);
    !unknown.is_empty()
}

fn prune(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => prune_object(fields, schema, path, unknown),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(item, item_schema, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

fn prune_object(fields: &mut Map<String, Value>, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties");
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let embedded = schema["x-kubernetes-embedded-resource"] == true;
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let mut dropped = Vec::new();
    for (name, value) in fields.iter_mut() {
        if embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        match (properties.and_then(|properties| properties.get(name)), additional) {
            (Some(inner), _) => prune(value, inner, &join(name), unknown),
            (None, Some(inner @ Value::Object(_))) => prune(value, inner, &join(name), unknown),
            (None, Some(Value::Bool(true))) => {}
            _ if preserves => {}
            _ => dropped.push(name.clone()),
        }
    }
    for name in dropped {
        fields.remove(&name);
        unknown.push(join(&name));
    }
}

fn fill(value: &mut Value, schema: &Value, nulls: Nulls) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, inner) in properties.into_iter().flatten() {
                let default = inner.get("default");
                // A null that the schema does not allow counts as absent.
                let is_null = fields.get(name).is_some_and(Value::is_null) && inner["nullable"] != true;
                let is_dropped = nulls == Nulls::Dropped && inner["type"].is_string();
                if is_null && (default.is_some() || is_dropped) {
                    fields.remove(name);
                }
                if let (None, Some(default)) = (fields.get(name), default) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    fill(value, inner, nulls);
                }
            }
            if let Some(inner @ Value::Object(_)) = schema.get("additionalProperties") {
                let known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
                for (_, value) in fields.iter_mut().filter(|(name, _)| !known(name)) {
                    fill(value, inner, nulls);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(item, inner, nulls));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prune_removes_and_reports_unknown_fields() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"b": {}}}}}}}});
        let mut object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "odd": 1}, "extra": 1,
            "spec": {"size": 1, "no": 2, "free": {"x": 1}, "map": {"k": {"a": 1, "z": 2}}, "list": [{"b": 1, "c": 2}]}});
        let mut unknown = Vec::new();
        prune_root(&mut object, &schema, &mut unknown);
        assert_eq!(
            object,
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "odd": 1},
                "spec": {"size": 1, "free": {"x": 1}, "map": {"k": {"a": 1}}, "list": [{"b": 1}]}})
        );
        unknown.sort();
        assert_eq!(unknown, ["extra", "spec.list[0].c", "spec.map.k.z", "spec.no"]);
    }

    #[test]
    fn defaults_are_set_below_present_fields() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "default": 3}, "n": {"type": "string", "nullable": true, "default": "x"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}}}}}});
        let mut object = json!({});
        default_root(&mut object, &schema, Nulls::Dropped);
        assert_eq!(object, json!({"spec": {"size": 3, "n": "x"}}));
        let mut object = json!({"spec": {"size": null, "n": null, "list": [{}, {"p": "UDP"}]}});
        default_root(&mut object, &schema, Nulls::Dropped);
        assert_eq!(object, json!({"spec": {"size": 3, "n": null, "list": [{"p": "TCP"}, {"p": "UDP"}]}}));
    }

    #[test]
    fn nulls_without_defaults_are_kept_if_wanted() {
        let schema = json!({"type": "object", "properties": {
            "size": {"type": "integer", "default": 3}, "text": {"type": "string"}}});
        let given = json!({"size": null, "text": null});
        for (nulls, expected) in [(Nulls::Dropped, json!({"size": 3})), (Nulls::Kept, json!({"size": 3, "text": null}))]
        {
            let mut object = given.clone();
            default_root(&mut object, &schema, nulls);
            assert_eq!(object, expected);
        }
    }
}
