//! Values of CEL from JSON, with the types that a schema gives them, and back.

use std::{collections::HashMap, sync::Arc};

use klient_core::rule_cost::RESERVED_WORDS;
use kube_cel::cel::{
    Value as Cel,
    objects::{Key, Map},
};
use serde_json::Value;

use crate::{
    Budget, Expression, Variables,
    check::with_metadata,
    evaluate::unique::{UniqueList, plain},
};

/// Returns a value with the types of its schema: numbers, times, durations and bytes. A schema of `null` gives no types.
#[must_use]
pub fn to_cel(value: &Value, schema: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) if schema["type"] != "number" => Cel::Int(whole),
            (None, Some(large)) if schema["type"] != "number" => Cel::UInt(large),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text_to_cel(text, schema),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_cel(item, &schema["items"])).collect();
            match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => UniqueList::value(items, Vec::new()),
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                    UniqueList::value(items, keys.filter_map(Value::as_str).map(escape).collect())
                }
                _ => Cel::List(Arc::new(items)),
            }
        }
        Value::Object(fields) => {
            if schema["x-kubernetes-embedded-resource"] == true && schema["x-klient-with-metadata"] != true {
                return to_cel(value, &with_metadata(schema));
            }
            // The keys of a map are data. Only the names of fields are escaped, and only declared fields with a value are visible.
            let is_object = schema["properties"].is_object();
            let is_visible = |name: &String, value: &Value| {
                !is_object || (!value.is_null() && schema["properties"].get(name).is_some())
            };
            let entries = fields.iter().filter(|(name, value)| is_visible(name, value)).map(|(name, value)| {
                let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                let key = if is_object { escape(name) } else { name.clone() };
                (Key::String(Arc::new(key)), to_cel(value, below))
            });
            Cel::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
    }
}

fn text_to_cel(text: &str, schema: &Value) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    // The functions of CEL read these texts as the server does.
    let function = match schema["format"].as_str() {
        Some("date-time") => "timestamp(text)",
        Some("date") => "timestamp(text + 'T00:00:00Z')",
        Some("duration") => "duration(text)",
        Some("byte") => "base64.decode(text)",
        _ => return plain(),
    };
    let mut variables = Variables::new();
    variables.set("text", plain());
    let parsed = Expression::parse(function).ok();
    parsed.and_then(|function| function.evaluate(&variables, &mut Budget::new(u64::MAX)).ok()).unwrap_or_else(plain)
}

/// Returns a value as JSON, or `None` if it has no form in JSON.
#[must_use]
pub fn from_cel(value: &Cel) -> Option<Value> {
    Some(match &plain(value.clone()) {
        Cel::Null => Value::Null,
        Cel::Bool(value) => Value::from(*value),
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => serde_json::Number::from_f64(*number).map(Value::Number)?,
        Cel::String(text) => Value::from(text.as_str()),
        Cel::List(items) => Value::Array(items.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(map) => {
            let entry = |(key, value): (&Key, &Cel)| match key {
                Key::String(name) => Some((unescape(name), from_cel(value)?)),
                _ => None,
            };
            Value::Object(map.map.iter().map(entry).collect::<Option<_>>()?)
        }
        Cel::Timestamp(time) => Value::from(time.to_rfc3339().replace("+00:00", "Z")),
        _ => return None,
    })
}

/// Returns the name by which an expression reads a field.
#[must_use]
pub fn escape(name: &str) -> String {
    if RESERVED_WORDS.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

/// Returns the field that a name in an expression stands for.
fn unescape(name: &str) -> String {
    if !name.contains("__") {
        return name.to_owned();
    }
    let plain = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    if let Some(word) = plain.filter(|word| RESERVED_WORDS.contains(word)) {
        return word.to_owned();
    }
    name.replace("__dot__", ".").replace("__dash__", "-").replace("__slash__", "/").replace("__underscores__", "__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_on_the_server() {
        for (name, escaped) in [
            ("size", "size"),
            ("with_default", "with_default"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("namespace", "__namespace__"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped), name);
        }
    }
}
