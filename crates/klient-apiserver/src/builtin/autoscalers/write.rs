//! Values of version v2 as the JSON that Go writes into annotations.

use klient_core::Quantity;
use serde_json::Value;

use super::structs::{Empty, Field, Kind};

/// Returns a list of structs.
pub(super) fn list(items: &[Value], fields: &[Field]) -> String {
    let mut out = String::new();
    write_items(&mut out, items, |out, item| write_struct(out, item, fields));
    out
}

/// Returns a struct.
pub(super) fn object(value: &Value, fields: &[Field]) -> String {
    let mut out = String::new();
    write_struct(&mut out, value, fields);
    out
}

fn write_struct(out: &mut String, object: &Value, fields: &[Field]) {
    out.push('{');
    let mut is_first = true;
    for field in fields {
        let value = field.at.iter().fold(object, |value, name| &value[*name]);
        let has_value = match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty() || field.empty != Empty::Omitted,
            Value::Array(items) => !items.is_empty() || field.empty != Empty::Omitted,
            Value::Object(fields) => !fields.is_empty() || field.empty != Empty::Omitted,
            _ => true,
        };
        if !has_value && matches!(field.empty, Empty::Omitted | Empty::Absent) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        write_text(out, field.name);
        out.push(':');
        if !has_value && field.empty == Empty::Null {
            out.push_str("null");
        } else {
            write_value(out, value, field.kind);
        }
    }
    out.push('}');
}

/// Writes a value, of which null is the zero value of its type.
fn write_value(out: &mut String, value: &Value, kind: Kind) {
    match kind {
        Kind::Text => write_text(out, value.as_str().unwrap_or_default()),
        Kind::Number => out.push_str(&value.as_i64().unwrap_or_default().to_string()),
        Kind::Quantity => write_text(out, &quantity(value).map_or_else(|| "0".to_owned(), |amount| amount.to_string())),
        Kind::Time => match value.as_str() {
            Some(time) => write_text(out, time),
            None => out.push_str("null"),
        },
        Kind::Texts => write_items(out, items(value), |out, item| write_text(out, item.as_str().unwrap_or_default())),
        Kind::TextMap => {
            out.push('{');
            for (index, (name, text)) in value.as_object().into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                write_text(out, text.as_str().unwrap_or_default());
            }
            out.push('}');
        }
        Kind::Struct(fields) => write_struct(out, value, fields),
        Kind::List(fields) => write_items(out, items(value), |out, item| write_struct(out, item, fields)),
    }
}

fn write_items(out: &mut String, items: &[Value], write: impl Fn(&mut String, &Value)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Writes a text with the escapes of Go, which has more of them than JSON needs.
fn write_text(out: &mut String, text: &str) {
    for character in Value::from(text).to_string().chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => out.push(character),
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a quantity that is written as a text or as a number.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}
