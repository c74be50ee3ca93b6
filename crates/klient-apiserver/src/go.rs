//! JSON values in Go: how `%v` prints them, and the types that they have if they were decoded without a struct.
//!
//! A number without a fraction is an `int64` if it was written as one, and a `float64` otherwise.

use serde_json::{Number, Value};

/// Returns a value as Go prints it.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number, SHORT),
        Value::String(text) => text.clone(),
        Value::Array(items) => list_text(items),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Returns a list as Go prints it.
pub(crate) fn list_text(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "))
}

/// Returns a number as Go's JSON encoder writes it.
pub(crate) fn json_number(number: &Number) -> String {
    number_text(number, LONG)
}

/// Returns the name of a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        _ => kind(value),
    }
}

/// Returns the name of the kind of a value's type.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Returns a number, with an exponent if it is not in the range of those that are written without one.
fn number_text(number: &Number, plain: std::ops::Range<i32>) -> String {
    let Some(float) = number.as_f64().filter(|_| !number.is_i64()) else { return number.to_string() };
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if float == 0.0 || plain.contains(&power) {
        return float.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.abs())
}

/// The powers of ten of floats that `%v` prints without an exponent.
const SHORT: std::ops::Range<i32> = -4..6;
/// The powers of ten of floats that the JSON encoder writes without an exponent.
const LONG: std::ops::Range<i32> = -6..21;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_in_go() {
        let value = json!({"a": [1, 1.5, 80.0, 1e6, null], "b": {"c": true}, "d": "x y"});
        assert_eq!(text(&value), "map[a:[1 1.5 80 1e+06 <nil>] b:map[c:true] d:x y]");
    }

    #[test]
    fn json_has_exponents_for_huge_floats_only() {
        for (float, text) in [(1e6, "1000000"), (80.0, "80"), (80.5, "80.5"), (1e21, "1e+21")] {
            assert_eq!(json_number(&Number::from_f64(float).unwrap()), text);
        }
    }

    #[test]
    fn numbers_are_floats_if_they_are_written_so() {
        let names = [json!(1), json!(1.0), json!(u64::MAX), json!([]), json!({})].map(|value| type_name(&value));
        assert_eq!(names, ["int64", "float64", "float64", "[]interface {}", "map[string]interface {}"]);
    }
}
