//! Validation of custom objects against their structural schema, with the messages and in the order of the real server.
//!
//! The real server visits the properties of an object in random order. Here the order is alphabetical.

use klient_core::StatusCause;
use serde_json::Value;

use super::{formats, patterns, ratchet};
use crate::causes::Causes;

/// Validates a value. Invalid parts that are equal in `old` are accepted. Fields of causes are relative to the value.
pub(super) fn validate(value: &Value, schema: &Value, old: Option<&Value>) -> Causes {
    check(value, schema, old, "").causes
}

/// The result of a validation.
#[derive(Default)]
struct Outcome {
    causes: Causes,
    /// The number of checks, by which the real server chooses the alternative whose causes it reports.
    count: usize,
}

impl Outcome {
    /// Adds a cause, unless it is there already.
    fn add(&mut self, cause: StatusCause) {
        if !self.causes.is_full() && !self.causes.contains(&cause) {
            self.causes.add(|| cause);
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        other.causes.into_iter().for_each(|cause| self.add(cause));
    }

    fn is_valid(&self) -> bool {
        self.causes.is_empty()
    }
}

fn check(value: &Value, schema: &Value, old: Option<&Value>, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    check_type(value, schema, path, &mut outcome);
    if !value.is_null() {
        combine(value, schema, path, &mut outcome);
        match value {
            Value::String(text) => check_text(text, schema, path, &mut outcome),
            Value::Number(_) => check_number(value, schema, path, &mut outcome),
            Value::Array(items) => check_list(items, schema, old, path, &mut outcome),
            _ => {}
        }
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.is_empty())
        && (value.is_null() || !allowed.contains(value))
    {
        let names: Vec<String> = allowed.iter().map(plain).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        outcome.add(StatusCause::not_supported(path, value.clone(), &names));
    }
    if let Value::Object(_) = value {
        check_object(value, schema, old, path, &mut outcome);
    }
    outcome.count += 3;
    if !outcome.is_valid() && old.is_some_and(|old| ratchet::is_unchanged(value, old, schema)) {
        outcome.causes.clear();
    }
    outcome
}

fn check_type(value: &Value, schema: &Value, path: &str, outcome: &mut Outcome) {
    let expected: &[&str] = match schema["type"].as_str() {
        _ if schema["x-kubernetes-int-or-string"] == true => &["integer", "string"],
        Some(expected) => &[expected],
        None => &[],
    };
    let format = formats::supported(schema);
    if expected.is_empty() && format.is_none() {
        return;
    }
    outcome.count += 1;
    let mut wrong = |expected: &str, found: &str| {
        let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
        outcome.add(StatusCause::type_invalid(path, found, &detail));
    };
    if value.is_null() {
        if !expected.is_empty() && schema["nullable"] != true {
            wrong(&expected.join(","), "null");
        }
        return;
    }
    let is_number = expected.iter().any(|name| matches!(*name, "number" | "integer"));
    let fits = expected.iter().any(|expected| is_of_type(value, expected));
    match format {
        Some(format) if !fits && !value.is_string() && !value.is_array() => wrong(format, go_format(value)),
        // The format is checked instead.
        Some(_) if !is_number && (value.is_string() || value.is_array()) => outcome.count += 1,
        _ if !fits => wrong(&expected.join(","), type_name(value)),
        _ => outcome.count += 1,
    }
}

fn check_text(text: &str, schema: &Value, path: &str, outcome: &mut Outcome) {
    outcome.count += 1;
    let length = text.chars().count() as u64;
    let pattern = schema["pattern"].as_str().filter(|pattern| !pattern.is_empty());
    // Only the first problem is reported.
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        outcome.add(StatusCause::too_long(path, usize::try_from(most).unwrap_or(usize::MAX)));
    } else if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        outcome.add(StatusCause::invalid(path, text, &detail));
    } else if let Some(pattern) = pattern
        && !patterns::matches(pattern, text)
    {
        let detail = format!("{path} in body should match '{pattern}'");
        outcome.add(StatusCause::invalid(path, text, &detail));
    }
    let Some(format) = formats::supported(schema).filter(|format| !matches!(*format, "int32" | "int64")) else {
        return;
    };
    outcome.count += 1;
    if !formats::fits(text, format) {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        outcome.add(StatusCause::type_invalid(path, text, &detail));
    }
}

fn check_number(value: &Value, schema: &Value, path: &str, outcome: &mut Outcome) {
    outcome.count += 2;
    let Some(number) = value.as_f64() else { return };
    let (kind, format) = (schema["type"].as_str().unwrap_or_default(), formats::supported(schema));
    let is_in_range = match (kind, format) {
        ("integer", Some("int32")) => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        ("integer", _) => value.is_i64() || number.fract() == 0.0 && number.abs() < 9.3e18,
        (_, Some("float")) => number.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if !is_in_range {
        let format = format.map_or_else(|| "(default format)".to_owned(), |format| format!("with format {format}"));
        let detail = format!("Checked value must be of type {kind} {format} in {path}");
        outcome.add(StatusCause::invalid("", "", &detail));
    }
    let mut wrong = |detail: String| outcome.add(StatusCause::invalid(path, value.clone(), &detail));
    if let Some(step) = schema["multipleOf"].as_f64()
        && (number / step).fract() != 0.0
    {
        wrong(format!("{path} in body should be a multiple of {step}"));
    }
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
}

fn check_list(items: &[Value], schema: &Value, old: Option<&Value>, path: &str, outcome: &mut Outcome) {
    outcome.count += 2;
    if let Some(inner) = schema.get("items") {
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| ratchet::item(item, old, schema));
            outcome.merge(check(item, inner, old, &format!("{path}[{index}]")));
        }
    }
    bound(items.len(), schema, ("minItems", "maxItems", "items"), path, outcome);
}

fn check_object(value: &Value, schema: &Value, old: Option<&Value>, path: &str, outcome: &mut Outcome) {
    let Value::Object(fields) = value else { return };
    outcome.count += 1;
    bound(fields.len(), schema, ("minProperties", "maxProperties", "properties"), path, outcome);
    let of_field = |name: &str| {
        // The version of the stored object is not visible, because both objects have that of the request.
        let is_type = path.is_empty() && matches!(name, "apiVersion" | "kind");
        old.filter(|_| !is_type).and_then(|old| old.as_object()?.get(name))
    };
    let properties = schema["properties"].as_object();
    if let Some(inner @ Value::Object(_)) = schema.get("additionalProperties") {
        let is_known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        for (name, value) in fields.iter().filter(|(name, _)| !is_known(name)) {
            outcome.merge(check(value, inner, of_field(name), &format!("{path}.{name}")));
        }
    }
    for (name, inner) in properties.into_iter().flatten() {
        if let Some(value) = fields.get(name) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            outcome.merge(check(value, inner, of_field(name), &path));
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            outcome.add(StatusCause::required(format!("{path}.{name}"), ""));
        }
    }
}

/// Checks the number of items of a list or of fields of an object. `rule` names the keywords and what they count.
fn bound(count: usize, schema: &Value, rule: (&str, &str, &str), path: &str, outcome: &mut Outcome) {
    let (least, most, what) = rule;
    let given = count as u64;
    if let Some(least) = schema[least].as_u64().filter(|least| given < *least) {
        let detail = format!("{path} in body should have at least {least} {what}");
        outcome.add(StatusCause::invalid(path, given, &detail));
    }
    if let Some(most) = schema[most].as_u64().filter(|most| given > *most) {
        outcome.add(StatusCause::too_many(path, count, usize::try_from(most).unwrap_or_default()));
    }
}

/// Validates `anyOf`, `oneOf`, `allOf` and `not`. Errors about these themselves have no field.
fn combine(value: &Value, schema: &Value, path: &str, outcome: &mut Outcome) {
    let alternatives = |keyword: &str| -> Option<Vec<Outcome>> {
        let schemas = schema[keyword].as_array().filter(|schemas| !schemas.is_empty())?;
        Some(schemas.iter().map(|inner| check(value, inner, None, path)).collect())
    };
    let wrong = |detail: String| StatusCause::invalid("", "", &detail);
    outcome.count += 2;
    if let Some(any) = alternatives("anyOf") {
        match any.iter().position(Outcome::is_valid) {
            Some(first) => outcome.count += any[first].count,
            None => {
                outcome.add(wrong(format!("{path:?} must validate at least one schema (anyOf)")));
                outcome.merge(best(any));
            }
        }
    }
    if let Some(one) = alternatives("oneOf") {
        match one.iter().filter(|inner| inner.is_valid()).count() {
            0 => {
                outcome.add(wrong(format!("{path:?} must validate one and only one schema (oneOf). Found none valid")));
                outcome.merge(best(one));
            }
            1 => outcome.count += one.iter().find(|inner| inner.is_valid()).map_or(0, |inner| inner.count),
            several => outcome.add(wrong(format!(
                "{path:?} must validate one and only one schema (oneOf). Found {several} valid alternatives"
            ))),
        }
    }
    if let Some(all) = alternatives("allOf") {
        let (given, valid) = (all.len(), all.iter().filter(|inner| inner.is_valid()).count());
        all.into_iter().for_each(|inner| outcome.merge(inner));
        if valid < given {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(wrong(format!("{path:?} must validate all the schemas (allOf){none}")));
        }
    }
    if schema.get("not").is_some_and(|inner| check(value, inner, None, path).is_valid()) {
        outcome.add(wrong(format!("{path:?} must not validate the schema (not)")));
    }
}

/// Returns the first of the outcomes with the most checks.
fn best(outcomes: Vec<Outcome>) -> Outcome {
    let most = outcomes.iter().map(|outcome| outcome.count).max();
    outcomes.into_iter().find(|outcome| Some(outcome.count) == most).unwrap_or_default()
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
        _ => false,
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

/// Returns the format that Go's type of a value has.
fn go_format(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(object: &Value, schema: &Value, old: Option<&Value>) -> Vec<String> {
        validate(object, schema, old).into_iter().map(|cause| cause.field).collect()
    }

    fn schema() -> Value {
        json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object",
            "required": ["name"], "properties": {
                "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "mode": {"type": "string", "enum": ["on", "off"]},
                "port": {"x-kubernetes-int-or-string": true},
                "free": {"type": "object", "maxProperties": 1, "x-kubernetes-preserve-unknown-fields": true},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"},
                        "count": {"type": "integer", "maximum": 3}}}},
                "list": {"type": "array", "maxItems": 1, "items": {"type": "object",
                    "properties": {"k": {"type": "string"}}}}}}}})
    }

    #[test]
    fn validation_reports_every_rule_with_its_path() {
        let schema = schema();
        assert_eq!(fields(&json!({}), &schema, None), [".spec"]);
        assert_eq!(fields(&json!({"spec": {"size": 9}}), &schema, None), ["spec.size", "spec.name"]);
        let valid = json!({"spec": {"name": "ok", "size": 5, "mode": "on", "port": "http"}});
        assert!(fields(&valid, &schema, None).is_empty());
        let wrong = json!({"spec": {"name": "A", "size": 9, "mode": "x", "port": 1.5, "list": [{"k": 1}, {}]}});
        let wrong = fields(&wrong, &schema, None);
        assert_eq!(wrong, ["spec.list[0].k", "spec.list", "spec.mode", "spec.name", "spec.port", "spec.size"]);
    }

    #[test]
    fn unchanged_invalid_fields_are_accepted() {
        let schema = schema();
        let old = json!({"spec": {"name": "ok", "size": 9, "parts": [{"name": "a", "count": 7}, {"name": "b"}]}});
        let mut new = old.clone();
        new["spec"]["mode"] = json!("on");
        new["spec"]["parts"] = json!([{"name": "b"}, {"name": "a", "count": 7}]);
        assert!(fields(&new, &schema, Some(&old)).is_empty());
        new["spec"]["size"] = json!(8);
        new["spec"]["parts"][1]["count"] = json!(6);
        assert_eq!(fields(&new, &schema, Some(&old)), ["spec.parts[1].count", "spec.size"]);
    }

    #[test]
    fn unchanged_unknown_fields_are_validated() {
        // The real server compares only fields that the schema has.
        let old = json!({"spec": {"name": "ok", "free": {"a": 1, "b": 2}}});
        assert_eq!(fields(&old, &schema(), Some(&old)), ["spec.free"]);
    }

    #[test]
    fn failed_alternatives_report_the_best_one() {
        let schema = json!({"properties": {"a": {"type": "object", "anyOf": [
            {"required": ["x"]}, {"required": ["y"], "properties": {"z": {"minimum": 5}}}]}}});
        let causes = validate(&json!({"a": {"z": 1}}), &schema, None);
        let told: Vec<_> = causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
        assert_eq!(
            told,
            [
                ("", "Invalid value: \"\": \"a\" must validate at least one schema (anyOf)"),
                ("a.z", "Invalid value: 1: a.z in body should be greater than or equal to 5"),
                ("a.y", "Required value"),
            ]
        );
    }
}
