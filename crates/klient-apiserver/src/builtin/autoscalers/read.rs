//! The JSON in annotations as values of version v2, as Go decodes it: the case of names does not matter, and null is no value.

use serde_json::{Map, Value, json};

use super::{
    structs::{Empty, Field, Kind},
    write::quantity,
};
use crate::decode;

/// Returns a list of structs, or nothing if the text is malformed.
pub(super) fn list(text: &str, fields: &[Field]) -> Option<Vec<Value>> {
    read_list(&serde_json::from_str(text).ok()?, fields)
}

/// Returns a struct, or nothing if the text is malformed.
pub(super) fn object(text: &str, fields: &[Field]) -> Option<Value> {
    read_struct(&serde_json::from_str(text).ok()?, fields)
}

fn read_list(value: &Value, fields: &[Field]) -> Option<Vec<Value>> {
    items(value)?.iter().map(|item| read_struct(item, fields)).collect()
}

fn read_struct(value: &Value, fields: &[Field]) -> Option<Value> {
    let found = match value {
        Value::Null => &Map::new(),
        Value::Object(found) => found,
        _ => return None,
    };
    let mut out = Map::new();
    for field in fields {
        let is_named = |(name, value): &(&String, &Value)| name.eq_ignore_ascii_case(field.name) && !value.is_null();
        let given = found.get(field.name).filter(|value| !value.is_null());
        match given.or_else(|| found.iter().find(is_named).map(|(_, value)| value)) {
            Some(value) => set(&mut out, field.at, read_value(value, field.kind)?),
            // Version v2 can omit this quantity, and version v1 cannot.
            None if field.empty == Empty::Zero && matches!(field.kind, Kind::Quantity) => {
                set(&mut out, field.at, json!("0"));
            }
            None => {}
        }
    }
    Some(Value::Object(out))
}

/// Returns a value that is not null.
fn read_value(value: &Value, kind: Kind) -> Option<Value> {
    match kind {
        Kind::Text => value.as_str().map(Value::from),
        Kind::Number => value.as_i64().and_then(|number| i32::try_from(number).ok()).map(Value::from),
        Kind::Quantity => quantity(value).map(|amount| json!(amount.to_string())),
        Kind::Time => {
            let mut time = Value::from(value.as_str()?);
            decode::time(&mut time).then_some(time)
        }
        Kind::Texts => {
            let texts: Option<Vec<Value>> = items(value)?.iter().map(text_or_empty).collect();
            texts.map(Value::from)
        }
        Kind::TextMap => {
            let texts = value.as_object()?.iter().map(|(name, text)| Some((name.clone(), text_or_empty(text)?)));
            texts.collect::<Option<Map<String, Value>>>().map(Value::from)
        }
        Kind::Struct(fields) => read_struct(value, fields),
        Kind::List(fields) => read_list(value, fields).map(Value::from),
    }
}

fn text_or_empty(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(json!("")),
        value => value.as_str().map(Value::from),
    }
}

/// Returns the items of a list. Null has none.
fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Null => Some(&[]),
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Sets a field, and creates the objects above it.
fn set(object: &mut Map<String, Value>, at: &[&str], value: Value) {
    match at {
        [] => {}
        [name] => drop(object.insert((*name).to_owned(), value)),
        [name, rest @ ..] => {
            if let Value::Object(inner) = object.entry(*name).or_insert_with(|| json!({})) {
                set(inner, rest, value);
            }
        }
    }
}
