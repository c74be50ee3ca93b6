//! Defaults of a schema, which the server sets before it evaluates rules.

use serde_json::Value;

/// Removes nulls where the schema does not allow them, and sets defaults.
pub(super) fn complete(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if fields.get(name).is_some_and(Value::is_null) && schema["nullable"] != true {
                    fields.remove(name);
                }
                if let (None, Some(default)) = (fields.get(name), schema.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    complete(schema, value);
                }
            }
            let named = schema["properties"].as_object();
            let entries = &schema["additionalProperties"];
            for (_, value) in fields.iter_mut().filter(|(name, _)| named.is_none_or(|named| !named.contains_key(*name)))
            {
                complete(entries, value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| complete(&schema["items"], item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_replace_absent_fields_and_forbidden_nulls() {
        let schema = json!({"properties": {
            "a": {"type": "integer", "default": 1},
            "b": {"type": "integer", "nullable": true, "default": 2},
            "c": {"properties": {"d": {"default": "x"}}},
            "e": {"items": {"properties": {"d": {"default": "x"}}}},
            "f": {"additionalProperties": {"properties": {"d": {"default": "x"}}}},
            "g": {"type": "string"},
        }});
        let mut value = json!({"a": null, "b": null, "c": {}, "e": [{}], "f": {"k": {"d": "y"}, "l": {}}, "g": null});
        complete(&schema, &mut value);
        let expected =
            json!({"a": 1, "b": null, "c": {"d": "x"}, "e": [{"d": "x"}], "f": {"k": {"d": "y"}, "l": {"d": "x"}}});
        assert_eq!(value, expected);
    }
}
