//! Embedded resources: objects inside of custom objects that have a kind and metadata of their own.

use klient_core::{Status, StatusCause};
use serde_json::{Map, Value};

use crate::Result;

/// Returns whether a schema has embedded resources.
pub(super) fn is_in(schema: &Value) -> bool {
    let inner = schema["properties"].as_object().into_iter().flat_map(Map::values);
    schema["x-kubernetes-embedded-resource"] == true
        || inner.chain(schema.get("items")).chain(schema.get("additionalProperties")).any(is_in)
}

/// Normalises the metadata of embedded resources. Returns a warning for each unknown field, which is removed.
pub(super) fn shape(object: &mut Value, schema: &Value) -> Result<Vec<String>> {
    let mut unknown = Vec::new();
    let (kind, version) = (object["kind"].clone(), object["apiVersion"].clone());
    let wrong = |path: &str, value: &Value, why: &str| {
        let kind = kind.as_str().unwrap_or_default();
        let version = version.as_str().and_then(|version| version.rsplit('/').next()).unwrap_or_default();
        let cause = StatusCause::invalid(path, value.clone(), &why.replace("ObjectMeta.metadata.", "ObjectMeta."));
        let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {path}: {}", cause.message);
        Box::new(Status::bad_request(message))
    };
    walk(object, schema, "", &mut |embedded, path| {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = embedded.get(name).filter(|value| !value.is_string()) {
                return Err(wrong(&join(path, name), value, "must be a string"));
            }
        }
        let Some(metadata) = embedded.get("metadata") else { return Ok(()) };
        let shown = metadata.clone();
        let mut alone = Value::Object(Map::from_iter([("metadata".to_owned(), metadata.clone())]));
        let problems = super::shape_metadata(&mut alone).map_err(|why| wrong(&join(path, "metadata"), &shown, &why))?;
        unknown.extend(
            problems.into_iter().map(|problem| problem.replace('"', "").replace("unknown field ", &join(path, ""))),
        );
        embedded.insert("metadata".to_owned(), alone["metadata"].take());
        Ok(())
    })?;
    unknown.sort();
    Ok(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")).collect())
}

/// Returns the invalid fields of embedded resources.
pub(super) fn validate(object: &Value, schema: &Value) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let mut object = object.clone();
    // The walk changes nothing here, and no callback fails.
    let _ = walk(&mut object, schema, "", &mut |embedded, path| {
        for name in ["apiVersion", "kind"] {
            match embedded.get(name).map(|value| (value, value.as_str())) {
                None => causes.push(StatusCause::required(join(path, name), "")),
                Some((_, Some(""))) => causes.push(StatusCause::invalid(join(path, name), "", "must not be empty")),
                _ => {}
            }
        }
        Ok(())
    });
    causes
}

/// Calls a function for each embedded resource and its path.
fn walk(
    value: &mut Value,
    schema: &Value,
    path: &str,
    found: &mut impl FnMut(&mut Map<String, Value>, &str) -> Result<()>,
) -> Result<()> {
    match value {
        Value::Object(fields) => {
            if schema["x-kubernetes-embedded-resource"] == true {
                found(fields, path)?;
            }
            for (name, inner) in fields.iter_mut() {
                if let Some(inner_schema) = schema["properties"].get(name) {
                    walk(inner, inner_schema, &join(path, name), found)?;
                } else if let Some(inner_schema @ Value::Object(_)) = schema.get("additionalProperties") {
                    walk(inner, inner_schema, &format!("{path}[{name}]"), found)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => {
            let Some(inner_schema) = schema.get("items") else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, inner_schema, &format!("{path}[{index}]"), found)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
