//! Schemas of custom kinds, as documents publish them.

use serde_json::{Map, Value, json};

/// Returns the schema of a kind in a document of version 3. `recorded` is a recorded schema, which has the properties of every kind.
pub(super) fn version_three(schema: &Value, recorded: &Value) -> Value {
    let mut out = publish(schema, recorded, false);
    add_common(&mut out, recorded);
    out
}

/// Returns the schema of a kind in a document of version 2.
pub(super) fn version_two(schema: &Value, recorded: &Value) -> Value {
    // kubectl would refuse unknown fields if any property was published.
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({"type": "object"});
    }
    let mut out = publish(schema, recorded, true);
    add_common(&mut out, recorded);
    out
}

/// Adds the properties that every kind has.
fn add_common(schema: &mut Value, recorded: &Value) {
    for name in ["apiVersion", "kind", "metadata"] {
        schema["properties"][name] = recorded["properties"][name].clone();
    }
}

/// Returns a schema without values that Go omits, and with the properties of embedded resources.
fn publish(schema: &Value, recorded: &Value, is_two: bool) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut out: Map<String, Value> = fields.iter().filter(|(_, value)| !is_omitted(value)).map(copy).collect();
    if is_two {
        simplify(&mut out);
    }
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        properties.values_mut().for_each(|inner| *inner = publish(inner, recorded, is_two));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner @ Value::Object(_)) = out.get_mut(name) {
            *inner = publish(inner, recorded, is_two);
        }
    }
    if out.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !is_two {
        unfold_int_or_string(&mut out);
    }
    let preserves = out.contains_key("x-kubernetes-preserve-unknown-fields");
    if out.contains_key("x-kubernetes-embedded-resource") && !(is_two && preserves) {
        embed(&mut out, recorded);
    }
    Value::Object(out)
}

fn copy((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Returns whether Go omits a value.
fn is_omitted(value: &Value) -> bool {
    matches!(value, Value::Bool(false) | Value::Null)
}

/// Removes what version 2 cannot express.
fn simplify(schema: &mut Map<String, Value>) {
    let nullable: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, inner)| inner["nullable"] == true)
        .map(|(name, _)| name.clone())
        .collect();
    for name in ["allOf", "oneOf", "anyOf", "not", "default"] {
        schema.remove(name);
    }
    if schema.remove("nullable") == Some(Value::Bool(true)) {
        for name in ["type", "items", "properties"] {
            schema.remove(name);
        }
    }
    let preserves = schema.contains_key("x-kubernetes-preserve-unknown-fields");
    if preserves {
        schema.remove("items");
        schema.remove("properties");
    }
    let kind = schema.get("type").and_then(Value::as_str);
    if (kind == Some("array") && !schema.contains_key("items")) || (kind == Some("object") && preserves) {
        schema.remove("type");
    }
    let of_entries = schema.get("additionalProperties").is_some_and(|inner| inner["nullable"] == true);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !of_entries && !name.as_str().is_some_and(|name| nullable.iter().any(|n| n == name)));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

/// Says in terms of JSON schema that a value is an integer or a string.
fn unfold_int_or_string(schema: &mut Map<String, Value>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first_of_all = schema.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first_of_all == Some(&either) {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf".to_owned(), either);
        return;
    }
    let all = schema.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.insert(0, json!({"anyOf": either}));
    }
}

/// Adds the properties of an embedded resource.
fn embed(schema: &mut Map<String, Value>, recorded: &Value) {
    let embedded = &recorded["properties"]["spec"]["properties"]["embedded"];
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for name in ["apiVersion", "kind", "metadata"] {
        properties[name] = embedded["properties"][name].clone();
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_two_drops_what_kubectl_cannot_read() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}},
            "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"x": {}}},
            "c": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "d": {"type": "array"}, "e": {"type": "string", "default": "x", "nullable": false}}});
        assert_eq!(
            publish(&schema, &Value::Null, true),
            json!({"type": "object", "required": ["b"], "properties": {
                "a": {}, "b": {"x-kubernetes-preserve-unknown-fields": true}, "c": {"x-kubernetes-int-or-string": true},
                "d": {}, "e": {"type": "string"}}})
        );
    }

    #[test]
    fn version_three_unfolds_int_or_string() {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let plain = publish(&json!({"x-kubernetes-int-or-string": true}), &Value::Null, false);
        assert_eq!(plain["anyOf"], either);
        let other = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"pattern": "x"}]});
        assert_eq!(publish(&other, &Value::Null, false)["allOf"], json!([{"anyOf": either}]));
    }
}
