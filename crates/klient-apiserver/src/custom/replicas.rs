//! Validation of the fields that the scale of a custom object is read from.

use klient_core::StatusCause;
use serde_json::Value;

use super::ScalePaths;
use crate::causes::Causes;
use crate::go;

/// Validates the number of replicas at a path.
pub(super) fn check(object: &Value, path: &str) -> Option<StatusCause> {
    let value = match at(object, path) {
        Ok(value) => value?,
        Err(detail) => return Some(StatusCause::invalid(path, 0, &detail)),
    };
    let Some(replicas) = value.as_i64() else {
        return Some(StatusCause::invalid(path, 0, &mismatch(path, value, "int64")));
    };
    if replicas < 0 {
        return Some(StatusCause::invalid(path, replicas, "should be a non-negative integer"));
    }
    let most = i64::from(i32::MAX);
    (replicas > most).then(|| StatusCause::invalid(path, replicas, &format!("should be less than or equal to {most}")))
}

/// Validates the fields that the status of the scale is read from.
pub(super) fn check_status(object: &Value, paths: &ScalePaths) -> Causes {
    let selector = paths.selector.as_ref().and_then(|path| {
        let detail = match at(object, path) {
            Ok(value) => mismatch(path, value.filter(|value| !value.is_string())?, "string"),
            Err(detail) => detail,
        };
        Some(StatusCause::invalid(path, "", &detail))
    });
    check(object, &paths.status).into_iter().chain(selector).collect()
}

/// Returns the value at a path, or Go's message about a value on the way that is not an object.
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    for (index, name) in names.iter().enumerate() {
        value = match value {
            Value::Object(fields) => match fields.get(*name) {
                Some(value) => value,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(mismatch(&names[..=index].join("."), other, "map[string]interface{}")),
        };
    }
    Ok(Some(value))
}

fn mismatch(path: &str, value: &Value, expected: &str) -> String {
    let path = path.trim_start_matches('.');
    let (shown, found) = (go::text(value), go::type_name(value));
    format!(".{path} accessor error: {shown} is of the type {found}, expected {expected}")
}
