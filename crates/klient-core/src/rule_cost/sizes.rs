//! Sizes of values: the largest that a schema allows, and the smallest JSON form.

use serde_json::Value;

use super::LARGEST_REQUEST;

/// Returns the highest number of bytes, items or entries; 1 for scalars.
pub(super) fn largest_size(schema: &Value) -> u64 {
    match schema["type"].as_str() {
        Some("string") => largest_text(schema),
        Some("array") => {
            let estimate = || (LARGEST_REQUEST - 2) / (least_size(&schema["items"]) + 1);
            schema["maxItems"].as_u64().unwrap_or_else(estimate)
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let estimate = || (LARGEST_REQUEST - 2) / (least_size(&schema["additionalProperties"]) + 5);
            schema["maxProperties"].as_u64().unwrap_or_else(estimate)
        }
        Some("object") => schema["properties"].as_object().map_or(1, |fields| fields.len() as u64),
        Some(_) => 1,
        None => LARGEST_REQUEST,
    }
}

fn largest_text(schema: &Value) -> u64 {
    match schema["format"].as_str() {
        Some("date-time") => return 24,
        Some("date") => return 10,
        Some("duration") => return 30,
        Some("byte") => {}
        _ => {}
    }
    if let Some(length) = schema["maxLength"].as_u64() {
        // The length is in characters, each of up to four bytes.
        return length.saturating_mul(4);
    }
    let longest = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::len).max();
    longest.map_or(LARGEST_REQUEST - 2, |longest| longest as u64)
}

/// Returns the number of bytes of the shortest JSON form.
pub(super) fn least_size(schema: &Value) -> u64 {
    match schema["type"].as_str() {
        Some("boolean") => 4,
        Some("string" | "array") => 2,
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.map(|name| name.len() as u64 + 4 + least_size(&schema["properties"][name]));
            2 + fields.sum::<u64>()
        }
        _ => 1,
    }
}
