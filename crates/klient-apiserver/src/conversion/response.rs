//! The response of a conversion webhook, and the checks that the real server makes of it.

use serde_json::Value;

use crate::{decode, managed, metadata};

/// Returns the converted objects of a review.
pub(super) fn read(body: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let mut review = decode::parse_response(body)?;
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let is_strict = version == "v1";
    let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
    if is_strict && (api_version != "apiextensions.k8s.io/v1" || kind != "ConversionReview") {
        let found = if api_version.contains('/') { api_version } else { format!("/{api_version}") };
        let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        return Err(format!("expected webhook response of {wanted}, got {found}, Kind={kind}"));
    }
    let response = &mut review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let found = text(response, "uid");
    if is_strict && found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let message = text(result, "message");
        return Err(if message.is_empty() {
            format!("response.result.status was '{}', not 'Success'", text(result, "status"))
        } else {
            message
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Returns a converted object with the metadata that conversion cannot change. `place` is the index in a list.
pub(super) fn restored(
    original: &Value,
    mut converted: Value,
    to: &str,
    place: Option<usize>,
) -> Result<Value, String> {
    let what = match place {
        Some(index) => format!("invalid converted object at index {index}"),
        None => "invalid object at index 0".to_owned(),
    };
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let found = text(&converted, "apiVersion");
    if found != to {
        return Err(format!("{what}: invalid groupVersion (expected {to}, received {found})"));
    }
    let (kind, found) = (text(original, "kind"), text(&converted, "kind"));
    if found != kind {
        return Err(format!("{what}: invalid kind (expected {kind}, received {found})"));
    }
    let what = if place.is_some() { what } else { "invalid object".to_owned() };
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, found) = (metadata::text(original, field), metadata::text(&converted, field));
        if expected != found {
            return Err(format!("{what}: must have the same {name}: {expected} != {found}"));
        }
    }
    let kept = |value: &Value| ["labels", "annotations"].map(|name| value["metadata"].get(name).cloned());
    let [labels, annotations] = kept(&converted);
    if !converted["metadata"].is_object() {
        let what =
            place.map_or("invalid metadata".to_owned(), |index| format!("invalid metadata in object at index {index}"));
        return Err(format!("{what}: missing metadata in converted object"));
    }
    converted["metadata"] = original["metadata"].clone();
    let fields = metadata::of(&mut converted);
    for (name, value) in [("labels", labels), ("annotations", annotations)] {
        match value.filter(|value| value.as_object().is_some_and(|value| !value.is_empty())) {
            Some(value) => drop(fields.insert(name.to_owned(), value)),
            None => drop(fields.remove(name)),
        }
    }
    managed::text::fold(&mut converted);
    Ok(converted)
}
