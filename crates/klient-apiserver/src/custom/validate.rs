//! Validation of custom objects against their structural schema, with the messages of the real server.

use klient_core::{Quantity, StatusCause};
use serde_json::Value;

/// Validates an object.
pub(super) fn validate(object: &Value, schema: &Value) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    check(object, schema, "", &mut causes);
    causes
}

fn check(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let shown = if path.is_empty() { "<nil>" } else { path };
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_i64() || value.is_u64() || value.is_string()) {
            let detail = format!("{shown} in body must be of type integer,string: \"{}\"", type_name(value));
            causes.push(StatusCause::type_invalid(shown, type_name(value), &detail));
        }
        return;
    }
    if let Some(expected) = schema["type"].as_str()
        && !is_of_type(value, expected)
    {
        let detail = format!("{shown} in body must be of type {expected}: \"{}\"", type_name(value));
        causes.push(StatusCause::type_invalid(shown, type_name(value), &detail));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let names: Vec<String> = allowed.iter().map(plain).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        causes.push(StatusCause::not_supported(shown, value.clone(), &names));
    }
    match value {
        Value::String(text) => check_text(text, schema, shown, causes),
        Value::Number(_) => check_number(value, schema, shown, causes),
        Value::Array(items) => check_list(items, schema, path, causes),
        Value::Object(fields) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    causes.push(StatusCause::required(join(path, name), ""));
                }
            }
            bound(fields.len(), schema, "minProperties", "maxProperties", "properties", shown, value, causes);
            let properties = schema["properties"].as_object();
            for (name, value) in fields {
                let at_root = path.is_empty() && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
                let inner = properties.and_then(|properties| properties.get(name));
                match (inner, schema.get("additionalProperties")) {
                    _ if at_root => {}
                    (Some(inner), _) | (None, Some(inner @ Value::Object(_))) => {
                        check(value, inner, &join(path, name), causes);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    combine(value, schema, path, causes);
}

fn check_text(text: &str, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        causes.push(StatusCause::too_long(path, usize::try_from(most).unwrap_or(usize::MAX)));
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        causes.push(StatusCause::invalid(path, text, &detail));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && let Ok(regex) = regex_lite::Regex::new(pattern)
        && !regex.is_match(text)
    {
        let detail = format!("{path} in body should match '{pattern}'");
        causes.push(StatusCause::invalid(path, text, &detail));
    }
    let fits = match schema["format"].as_str() {
        Some("date-time") => klient_core::parse_time(text).is_ok(),
        Some("quantity") => text.parse::<Quantity>().is_ok(),
        Some("byte") => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).is_ok(),
        Some("uuid") => text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        Some("ipv4") => text.parse::<std::net::Ipv4Addr>().is_ok(),
        Some("ipv6") => text.parse::<std::net::Ipv6Addr>().is_ok(),
        _ => true,
    };
    if !fits {
        let format = schema["format"].as_str().unwrap_or_default();
        let detail = format!("{path} in body must be of type {format}: \"{text}\"");
        causes.push(StatusCause::invalid(path, text, &detail));
    }
}

fn check_number(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let Some(number) = value.as_f64() else { return };
    let mut wrong = |detail: String| causes.push(StatusCause::invalid(path, value.clone(), &detail));
    if let Some(least) = schema["minimum"].as_f64() {
        let exclusive = schema["exclusiveMinimum"] == true;
        if number < least || (exclusive && number <= least) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            wrong(format!("{path} in body should be greater than{or_equal} {least}"));
        }
    }
    if let Some(most) = schema["maximum"].as_f64() {
        let exclusive = schema["exclusiveMaximum"] == true;
        if number > most || (exclusive && number >= most) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            wrong(format!("{path} in body should be less than{or_equal} {most}"));
        }
    }
    if let Some(step) = schema["multipleOf"].as_f64()
        && (number / step).fract() != 0.0
    {
        wrong(format!("{path} in body should be a multiple of {step}"));
    }
}

fn check_list(items: &[Value], schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let value = Value::Array(items.to_vec());
    bound(items.len(), schema, "minItems", "maxItems", "items", path, &value, causes);
    for (index, item) in items.iter().enumerate() {
        check(item, &schema["items"], &format!("{path}[{index}]"), causes);
    }
    let keys: Vec<&str> =
        schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let identity = |item: &Value| -> Option<Value> {
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Some(item.clone()),
            Some("map") => Some(keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect()),
            _ if schema["uniqueItems"] == true => Some(item.clone()),
            _ => None,
        }
    };
    let identities: Vec<Option<Value>> = items.iter().map(identity).collect();
    for (index, known) in identities.iter().enumerate() {
        if let Some(known) = known
            && identities[..index].iter().flatten().any(|before| before == known)
        {
            causes.push(StatusCause::duplicate(format!("{path}[{index}]"), known.clone()));
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one rule that lists and objects share")]
fn bound(
    count: usize,
    schema: &Value,
    least: &str,
    most: &str,
    what: &str,
    path: &str,
    value: &Value,
    causes: &mut Vec<StatusCause>,
) {
    let count = count as u64;
    if let Some(least) = schema[least].as_u64().filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} {what}");
        causes.push(StatusCause::invalid(path, value.clone(), &detail));
    }
    if let Some(most) = schema[most].as_u64().filter(|most| count > *most) {
        let (count, most) = (usize::try_from(count).unwrap_or_default(), usize::try_from(most).unwrap_or_default());
        causes.push(StatusCause::too_many(path, count, most));
    }
}

/// Validates `allOf`, `anyOf`, `oneOf` and `not`.
fn combine(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let shown = if path.is_empty() { "<nil>" } else { path };
    let fits = |inner: &Value| {
        let mut found = Vec::new();
        check(value, inner, path, &mut found);
        found.is_empty()
    };
    for inner in schema["allOf"].as_array().into_iter().flatten() {
        check(value, inner, path, causes);
    }
    if let Some(any) = schema["anyOf"].as_array()
        && !any.iter().any(&fits)
    {
        let detail = format!("{shown} in body must validate at least one schema (anyOf)");
        causes.push(StatusCause::invalid(shown, value.clone(), &detail));
    }
    if let Some(one) = schema["oneOf"].as_array()
        && one.iter().filter(|inner| fits(inner)).count() != 1
    {
        let detail = format!("{shown} in body must validate one and only one schema (oneOf)");
        causes.push(StatusCause::invalid(shown, value.clone(), &detail));
    }
    if schema.get("not").is_some_and(fits) {
        let detail = format!("{shown} in body must not validate the schema (not)");
        causes.push(StatusCause::invalid(shown, value.clone(), &detail));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_of_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(object: &Value, schema: &Value) -> Vec<String> {
        validate(object, schema).into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn validation_reports_every_rule_with_its_path() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object",
            "required": ["name"], "properties": {
                "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "mode": {"type": "string", "enum": ["on", "off"]},
                "port": {"x-kubernetes-int-or-string": true},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {"type": "array", "maxItems": 1, "items": {"type": "object",
                    "properties": {"k": {"type": "string"}}}}}}}});
        assert_eq!(fields(&json!({}), &schema), ["spec"]);
        assert_eq!(fields(&json!({"spec": {}}), &schema), ["spec.name"]);
        assert!(fields(&json!({"spec": {"name": "ok", "size": 5, "mode": "on", "port": "http"}}), &schema).is_empty());
        let mut wrong = fields(
            &json!({"spec": {"name": "A", "size": 9, "mode": "x", "port": 1.5, "set": ["a", "a"],
                "list": [{"k": 1}, {}]}}),
            &schema,
        );
        wrong.sort();
        wrong.dedup();
        assert_eq!(
            wrong,
            ["spec.list", "spec.list[0].k", "spec.mode", "spec.name", "spec.port", "spec.set[1]", "spec.size"]
        );
    }
}
