//! Embedded resources: objects inside of custom objects that have a kind and metadata of their own.

use klient_core::StatusCause;
use serde_json::{Map, Value};

use crate::{Result, causes::Causes, metadata};

/// The paths of unknown fields, or the field that is not metadata.
type Coerced = std::result::Result<Vec<String>, StatusCause>;

/// Returns whether a schema has embedded resources.
pub(super) fn is_in(schema: &Value) -> bool {
    let inner = schema["properties"].as_object().into_iter().flat_map(Map::values);
    schema["x-kubernetes-embedded-resource"] == true
        || inner.chain(schema.get("items")).chain(schema.get("additionalProperties")).any(is_in)
}

/// Normalises the metadata of embedded resources. Returns a warning for each unknown field, which is removed.
pub(super) fn shape(object: &mut Value, schema: &Value) -> Result<Vec<String>> {
    let mut unknown = coerce(object, schema)
        .map_err(|cause| super::unreadable(object, &format!("{}: {}", cause.field, cause.message)))?;
    unknown.sort();
    Ok(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")).collect())
}

/// Normalises the metadata of embedded resources. Returns the paths of unknown fields, which are removed.
pub(super) fn coerce(value: &mut Value, schema: &Value) -> Coerced {
    let mut unknown = Vec::new();
    walk(value, schema, "", &mut |embedded, path| {
        unknown.extend(coerce_one(embedded, path)?);
        Ok(())
    })?;
    Ok(unknown)
}

/// Normalises the metadata of one resource at a path.
pub(super) fn coerce_one(embedded: &mut Map<String, Value>, path: &str) -> Coerced {
    for name in ["apiVersion", "kind"] {
        if let Some(value) = embedded.get(name).filter(|value| !value.is_string()) {
            return Err(StatusCause::invalid(join(path, name), value.clone(), "must be a string"));
        }
    }
    let Some(metadata) = embedded.get("metadata") else { return Ok(Vec::new()) };
    let shown = metadata.clone();
    let mut alone = Value::Object(Map::from_iter([("metadata".to_owned(), metadata.clone())]));
    let problems =
        super::shape_metadata(&mut alone).map_err(|why| StatusCause::invalid(join(path, "metadata"), shown, &why))?;
    embedded.insert("metadata".to_owned(), alone["metadata"].take());
    let plain = |problem: String| problem.replace('"', "").replace("unknown field ", &join(path, ""));
    Ok(problems.into_iter().map(plain).collect())
}

/// Returns the invalid fields of embedded resources.
pub(super) fn validate(object: &Value, schema: &Value) -> Causes {
    let mut causes = Causes::new();
    let mut object = object.clone();
    // The walk changes nothing here, and no callback fails.
    let _ = walk(&mut object, schema, "", &mut |embedded, path| {
        for mut cause in check(embedded) {
            cause.field = join(path, &cause.field);
            causes.add(|| cause);
        }
        Ok(())
    });
    causes
}

/// Returns the invalid fields of one embedded resource.
pub(super) fn check(embedded: &Map<String, Value>) -> Causes {
    let mut causes = Causes::new();
    for name in ["apiVersion", "kind"] {
        let Some(value) = embedded.get(name) else {
            causes.add(|| StatusCause::required(name, ""));
            continue;
        };
        let problem = match value.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(version) if name == "apiVersion" => {
                (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
            }
            Some(kind) => {
                let problems = metadata::formats::letter_label_problems(&kind.to_lowercase());
                (!problems.is_empty())
                    .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
            }
        };
        causes.extend(problem.map(|problem| StatusCause::invalid(name, value.clone(), &problem)));
    }
    causes.extend(embedded.get("metadata").into_iter().flat_map(metadata::check_embedded));
    causes
}

/// Calls a function for each embedded resource and its path.
fn walk(
    value: &mut Value,
    schema: &Value,
    path: &str,
    found: &mut impl FnMut(&mut Map<String, Value>, &str) -> std::result::Result<(), StatusCause>,
) -> std::result::Result<(), StatusCause> {
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
