//! Validation of the defaults in the schema of a custom kind: each must be a valid value of its own schema.

use klient_core::StatusCause;
use serde_json::Value;

use super::{prune, validate};

/// Returns the invalid defaults of a schema and of the schemas in it.
pub(super) fn check(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = format!("{path}.default");
        if prune::has_unknown_fields(default, schema) {
            causes.push(StatusCause::invalid(&*at, default.clone(), "must not have unknown fields"));
        }
        for mut cause in validate::validate(default, schema, None) {
            cause.field = if cause.field.is_empty() { at.clone() } else { format!("{at}.{}", cause.field) };
            causes.push(cause);
        }
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        check(items, &format!("{path}.items"), causes);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        check(inner, &format!("{path}.properties[{name}]"), causes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_must_be_valid_value_of_its_schema() {
        let size = json!({"type": "integer", "minimum": 3, "default": 2});
        let part = json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": "x"}});
        let schema = json!({"type": "object", "properties": {"size": size, "part": part}});
        let mut causes = Vec::new();
        check(&schema, "s", &mut causes);
        let told: Vec<(&str, &str)> =
            causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
        assert_eq!(
            told,
            [
                ("s.properties[part].default", "Invalid value: {\"b\":\"x\"}: must not have unknown fields"),
                ("s.properties[size].default", "Invalid value: 2:  in body should be greater than or equal to 3"),
            ]
        );
    }
}
