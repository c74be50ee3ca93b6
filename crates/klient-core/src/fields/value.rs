//! The order and equality of values in paths, and their text in Go's formats.

use std::{cmp::Ordering, fmt::Write as _};

use serde_json::{Number, Value};

use crate::quoted::Quoted;

/// Compares two values: numbers, strings, booleans, lists, objects, null. Integers and floats are compared as numbers.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left
                .iter()
                .zip(right)
                .map(|((name, value), (other, with))| name.cmp(other).then_with(|| compare(value, with)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Returns whether two values are equal. `80` and `80.0` are.
pub(super) fn equals(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equals(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((name, value), (other, with))| name == other && equals(value, with))
        }
        _ => left == right,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    // JSON has no NaN, and -0 equals 0.
    float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal)
}

/// Appends a value as Go's JSON encoder writes it, with `<`, `>` and `&` escaped. Whole floats are written as integers.
pub(super) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_json_string(out, text),
        Value::Number(number) => write_json_number(out, number),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, name);
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// Appends a string as Go's JSON encoder writes it.
pub(super) fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_json_number(out: &mut String, number: &Number) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        let _ = write!(out, "{number}");
        return;
    };
    let magnitude = float.abs();
    let text =
        if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) { exponent_form(float) } else { format!("{float}") };
    out.push_str(&text);
}

/// Returns a float in the form `1e-07`: at least two digits in the exponent, and a sign.
fn exponent_form(float: f64) -> String {
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Returns a value as path texts show it: strings quoted, large floats with an exponent.
pub(super) fn path_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => go_float(float),
            None => number.to_string(),
        },
        Value::String(text) => Quoted(text).to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(path_text).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", path_text(value))).collect::<Vec<_>>().concat()
        }
    }
}

/// Returns a float as Go's `%v` prints it.
fn go_float(float: f64) -> String {
    let text = format!("{float:e}");
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or_default();
    if float != 0.0 && !(-4..GO_EXPONENT).contains(&exponent) { exponent_form(float) } else { format!("{float}") }
}

/// Returns a value as Go's `%v` prints it.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// Returns a value as Go's `%#v` prints it.
pub(super) fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => Quoted(text).to_string(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}:{}", Quoted(name), go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => go_text(other),
    }
}

/// Returns Go's name for the type of a value, as `%T` prints it.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The exponent from which Go prints the shortest form of a float with an exponent.
const GO_EXPONENT: i32 = 6;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let text = |value: f64| {
            let mut out = String::new();
            write_json(&mut out, &json!(value));
            out
        };
        assert_eq!(text(80.0), "80");
        assert_eq!(text(1e20), "100000000000000000000");
        assert_eq!(text(1e21), "1e+21");
        assert_eq!(text(1e-7), "1e-07");
        assert_eq!(text(0.5), "0.5");
    }

    #[test]
    fn path_text_shows_large_floats_with_an_exponent() {
        assert_eq!(path_text(&json!(8080.0)), "8080");
        assert_eq!(path_text(&json!(1e6)), "1e+06");
        assert_eq!(path_text(&json!(1_000_000)), "1000000");
        assert_eq!(path_text(&json!("a\"b")), r#""a\"b""#);
    }

    #[test]
    fn order_of_types_is_that_of_go() {
        let sorted = [json!(1), json!(2.5), json!("a"), json!(false), json!([]), json!({}), Value::Null];
        for pair in sorted.windows(2) {
            assert_eq!(compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(compare(&json!(80), &json!(80.0)), Ordering::Equal);
        assert_eq!(compare(&json!(-0.0), &json!(0.0)), Ordering::Equal);
        assert_eq!(compare(&json!(-0.0), &json!(0)), Ordering::Equal);
        assert!(equals(&json!({"a": [80]}), &json!({"a": [80.0]})));
    }
}
