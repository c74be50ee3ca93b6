//! Conversion of scalars as by Go's converter of unstructured objects, and its errors.
//!
//! The converter sets the fields of a struct from values that are already decoded. Unlike the JSON decoder, it accepts floats without a
//! fraction for integers, does not check the range of integers, and names no fields in its errors. Only types that decode themselves,
//! such as `IntOrString`, have errors of the JSON decoder.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::type_word;
use crate::go;

/// Returns the error for a value that is not of the expected type.
pub(super) fn mismatch(value: &Value, expected: &str) -> String {
    let kind = go::kind(value);
    match expected {
        // Go converts integers to strings, as code points, which the converter refuses.
        "string" if kind == "int64" => "cannot convert int64 to string".to_owned(),
        "string" | "bool" | "int32" | "int64" | "uint8" | "float64" => format!("unrecognized type: {expected}"),
        list if list.starts_with("[]") => format!("cannot restore slice from {kind}"),
        map if map.starts_with("map[") => format!("cannot restore map from {kind}"),
        _ => format!("cannot restore struct from: {kind}"),
    }
}

/// Returns the error of a type that decodes itself, for a value that it cannot read.
pub(super) fn unreadable(value: &Value, wanted: &str) -> String {
    let what = match value {
        Value::Number(number) if wanted != "string" => format!("number {}", go::json_number(number)),
        other => type_word(other).to_owned(),
    };
    format!("json: cannot unmarshal {what} into Go value of type {wanted}")
}

/// Converts a number to an integer of a type.
pub(super) fn integer(value: &mut Value, expected: &str) -> Result<(), String> {
    let Value::Number(number) = &*value else { return Err(mismatch(value, expected)) };
    let whole = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole,
        // Go converts numbers that are out of range to the smallest one.
        (None, Some(float)) if float.trunc() == float && float < -(i64::MIN as f64) => float as i64,
        (None, Some(float)) if float.trunc() == float => i64::MIN,
        _ => return Err(format!("cannot convert float64 to {expected}")),
    };
    // Go takes the lowest bits.
    *value = match expected {
        "int32" => Value::from(whole as i32),
        "uint8" => Value::from(whole as u8),
        _ => Value::from(whole),
    };
    Ok(())
}

/// Converts a number to that of an `IntOrString`, which decodes itself from JSON, where floats without a fraction are integers.
pub(super) fn int_or_string(value: &mut Value) -> Result<(), String> {
    let Value::Number(number) = &*value else { return Err(unreadable(value, "int32")) };
    let parsed: i32 = go::json_number(number).parse().map_err(|_| unreadable(value, "int32"))?;
    *value = Value::from(parsed);
    Ok(())
}

/// Converts a list of numbers to bytes.
pub(super) fn bytes(value: &mut Value) -> Result<(), String> {
    let Value::Array(items) = value else { return Err(mismatch(value, "[]uint8")) };
    let mut bytes = Vec::with_capacity(items.len());
    for item in items {
        if !item.is_null() {
            integer(item, "uint8")?;
        }
        bytes.extend(item.as_u64().unwrap_or_default().to_le_bytes().first());
    }
    *value = Value::from(STANDARD.encode(bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_become_integers_of_the_wanted_size() {
        for (given, expected, found) in [
            (json!(80), "int32", Ok(json!(80))),
            (json!(80.0), "int32", Ok(json!(80))),
            (json!(3_000_000_000_u32), "int32", Ok(json!(-1_294_967_296))),
            (json!(3_000_000_000_u32), "int64", Ok(json!(3_000_000_000_u32))),
            (json!(-0.5), "int64", Err("cannot convert float64 to int64")),
            (json!("1"), "int64", Err("unrecognized type: int64")),
        ] {
            let mut value = given.clone();
            let result = integer(&mut value, expected).map(|()| value);
            assert_eq!(result, found.map_err(str::to_owned), "{given} as {expected}");
        }
    }

    #[test]
    fn int_or_string_is_read_as_json() {
        for (given, found) in [
            (json!(80.0), Ok(json!(80))),
            (json!(80.5), Err("json: cannot unmarshal number 80.5 into Go value of type int32")),
            (json!(3_000_000_000_u32), Err("json: cannot unmarshal number 3000000000 into Go value of type int32")),
            (json!([1]), Err("json: cannot unmarshal array into Go value of type int32")),
        ] {
            let mut value = given.clone();
            let result = int_or_string(&mut value).map(|()| value);
            assert_eq!(result, found.map_err(str::to_owned), "{given}");
        }
    }

    #[test]
    fn lists_of_numbers_become_bytes() {
        let mut value = json!([104, 105.0, null]);
        bytes(&mut value).unwrap();
        assert_eq!(value, "aGkA");
        assert_eq!(bytes(&mut json!({})).unwrap_err(), "cannot restore slice from map");
        assert_eq!(bytes(&mut json!(["x"])).unwrap_err(), "unrecognized type: uint8");
    }

    #[test]
    fn errors_name_kinds_and_no_fields() {
        for (value, expected, error) in [
            (json!("x"), "map[string]string", "cannot restore map from string"),
            (json!({}), "[]v1.Container", "cannot restore slice from map"),
            (json!([]), "v1.PodSpec", "cannot restore struct from: slice"),
            (json!(1), "string", "cannot convert int64 to string"),
            (json!(1.5), "string", "unrecognized type: string"),
            (json!(1), "bool", "unrecognized type: bool"),
        ] {
            assert_eq!(mismatch(&value, expected), error);
        }
    }
}
