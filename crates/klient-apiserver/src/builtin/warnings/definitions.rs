//! Warnings about formats in the schemas of custom kinds that the real server does not know, and does not validate.

use std::collections::HashSet;

use serde_json::Value;

use super::Told;
use crate::custom::formats;

/// Adds warnings about unknown formats that the stored definition does not have.
pub(in crate::builtin) fn definition(object: &Value, old: Option<&Value>, told: &mut Told) {
    let found = unknown_formats(object);
    if found.is_empty() {
        return;
    }
    let known = old.map(unknown_formats).unwrap_or_default().into_iter().collect::<HashSet<_>>();
    let new = found.into_iter().filter(|format| !known.contains(format));
    told.extend(new.map(|format| format!("unrecognized format {format:?}")));
}

fn unknown_formats(definition: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        collect(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn collect<'v>(schema: &'v Value, found: &mut Vec<&'v str>) {
    let Value::Object(fields) = schema else { return };
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty())
        && formats::supported(schema).is_none()
    {
        found.push(format);
    }
    for name in ["items", "allOf", "anyOf", "oneOf", "not"] {
        match fields.get(name) {
            Some(Value::Array(schemas)) => schemas.iter().for_each(|schema| collect(schema, found)),
            Some(schema) => collect(schema, found),
            None => {}
        }
    }
    for schema in fields.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(_, schema)| schema) {
        collect(schema, found);
    }
    collect(&schema["additionalProperties"], found);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(format: &str) -> Value {
        let schema = json!({"properties": {"a": {"items": {"type": "string", "format": format}}}});
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn formats_are_warned_about_if_unknown_and_new() {
        let told = |object: &Value, old: Option<&Value>| {
            let mut told = Told::default();
            definition(object, old, &mut told);
            told.texts
        };
        assert_eq!(told(&with("date-time"), None), [""; 0]);
        assert_eq!(told(&with("zork"), None), ["unrecognized format \"zork\""]);
        assert_eq!(told(&with("zork"), Some(&with("zork"))), [""; 0]);
        assert_eq!(told(&with("zork"), Some(&with("date"))), ["unrecognized format \"zork\""]);
    }
}
