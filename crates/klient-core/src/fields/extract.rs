//! The fields of an object that a manager applied.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{element::PathElement, set::FieldSet};

/// An error from reading what a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtractError {
    /// The object has no entries of managers. Clients drop them unless they are asked to keep them.
    NoManagedFields,
    /// The entry of the manager cannot be parsed.
    Malformed(String),
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoManagedFields => f.write_str(
                "the object has no managed fields: the client or informer that read it must keep them, which is an option",
            ),
            Self::Malformed(why) => write!(f, "cannot read the managed fields of the object: {why}"),
        }
    }
}

impl std::error::Error for ExtractError {}

/// Returns what a manager last applied to an object: its own fields and the object's identity.
///
/// Fields that other managers have taken over since are not there. Without an entry of the manager, only the identity is. `subresource` is
/// empty for what was applied to the object itself.
///
/// # Errors
///
/// Returns an error if the object has no managed fields, or if they are malformed.
#[doc(alias("ExtractInto"))]
pub fn extract(object: &Value, manager: &str, subresource: &str) -> Result<Value, ExtractError> {
    let owned = owned(object, manager, subresource)?;
    Ok(with_identity(owned.part_of(object).unwrap_or_else(|| json!({})), object))
}

/// Returns whether a manager would change nothing by applying a configuration: it owns exactly these fields, with these values.
///
/// The configuration need not name the namespace. An object that lacks a field which the manager owns, because a cache has
/// dropped the field, is no evidence: the result is then `false`.
///
/// # Errors
///
/// Returns an error if the object has no managed fields, or if they are malformed.
pub fn is_applied(
    object: &Value,
    manager: &str,
    subresource: &str,
    configuration: &Value,
) -> Result<bool, ExtractError> {
    let owned = owned(object, manager, subresource)?;
    if !owned.is_present_in(object) {
        return Ok(false);
    }
    let applied = with_identity(owned.part_of(object).unwrap_or_else(|| json!({})), object);
    let mut configuration = configuration.clone();
    if let (Some(metadata), Some(namespace)) =
        (configuration["metadata"].as_object_mut(), applied["metadata"].get("namespace"))
    {
        metadata.entry("namespace").or_insert_with(|| namespace.clone());
    }
    Ok(configuration == applied)
}

/// Returns the fields that a manager applied and still owns.
fn owned(object: &Value, manager: &str, subresource: &str) -> Result<FieldSet, ExtractError> {
    let entries = object["metadata"]["managedFields"].as_array().ok_or(ExtractError::NoManagedFields)?;
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entry = entries.iter().find(|entry| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource") == subresource
    });
    let set = entry.map(|entry| FieldSet::from_value(&entry["fieldsV1"])).transpose();
    Ok(set.map_err(|error| ExtractError::Malformed(error.to_string()))?.unwrap_or_default())
}

/// Adds the identity of an object to a part of it.
fn with_identity(mut out: Value, object: &Value) -> Value {
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name) {
            out[name] = value.clone();
        }
    }
    for name in ["name", "namespace"] {
        if let Some(value) = object["metadata"].get(name) {
            out["metadata"][name] = value.clone();
        }
    }
    out
}

impl FieldSet {
    /// Returns the part of a value that the leaves of this set name.
    ///
    /// The set itself says which lists are maps and sets, so that no schema is needed.
    #[must_use]
    pub fn part_of(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Object(fields) => {
                let mut out = Map::new();
                for (name, value) in fields {
                    let element = PathElement::field(name);
                    if let Some(part) = self.part(&element, value) {
                        out.insert(name.clone(), part);
                    }
                }
                (!out.is_empty()).then_some(Value::Object(out))
            }
            Value::Array(items) => {
                let parts = items.iter().enumerate().filter_map(|(index, item)| self.part_of_item(index, item));
                Some(parts.collect::<Vec<_>>()).filter(|parts| !parts.is_empty()).map(Value::Array)
            }
            _ => None,
        }
    }

    /// Returns whether a value has all fields of this set.
    fn is_present_in(&self, value: &Value) -> bool {
        self.members.iter().all(|element| at(value, element).is_some())
            && self
                .children
                .iter()
                .all(|(element, child)| at(value, element).is_some_and(|value| child.is_present_in(value)))
    }

    /// Returns the part of the value at an element: all of it if the element is a leaf.
    fn part(&self, element: &PathElement, value: &Value) -> Option<Value> {
        match self.child(element) {
            // A member whose fields are gone is empty.
            Some(below) => below.part_of(value).or_else(|| self.has_member(element).then(|| empty_of(value))),
            None => self.has_member(element).then(|| value.clone()),
        }
    }

    fn part_of_item(&self, index: usize, item: &Value) -> Option<Value> {
        let elements = self.members.iter().chain(self.children.iter().map(|(element, _)| element));
        let found = elements.into_iter().find(|element| is_at(index, item, element))?;
        let mut part = self.part(found, item)?;
        if let (PathElement::Key(key), Value::Object(fields)) = (found, &mut part) {
            for (name, _) in key {
                if let Some(value) = item.get(name) {
                    fields.insert(name.clone(), value.clone());
                }
            }
        }
        Some(part)
    }
}

/// Returns the part of a value that an element names.
fn at<'a>(value: &'a Value, element: &PathElement) -> Option<&'a Value> {
    match element {
        PathElement::Field(name) => value.get(name),
        _ => value
            .as_array()?
            .iter()
            .enumerate()
            .find(|(index, item)| is_at(*index, item, element))
            .map(|(_, item)| item),
    }
}

/// Returns whether an element names this item of a list.
fn is_at(index: usize, item: &Value, element: &PathElement) -> bool {
    match element {
        PathElement::Key(key) => {
            key.iter().all(|(name, value)| item.get(name).is_some_and(|found| super::value::equals(found, value)))
        }
        PathElement::Value(value) => super::value::equals(item, value),
        PathElement::Index(at) => i64::try_from(index) == Ok(*at),
        PathElement::Field(_) => false,
    }
}

fn empty_of(value: &Value) -> Value {
    match value {
        Value::Object(_) => json!({}),
        Value::Array(_) => json!([]),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"a/b\"": {}}}, "f:spec": {"f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}});
        let ports = json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]);
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                "labels": {"app": "web", "other": "x"}, "finalizers": ["a/b", "c/d"],
                "managedFields": [
                    {"manager": "m", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "m", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]},
            "spec": {"replicas": 3, "paused": true, "template": {"spec": {"containers": [
                {"name": "a", "image": "x", "imagePullPolicy": "Always", "ports": ports}, {"name": "b", "image": "y"}]}}}})
    }

    #[test]
    fn extract_returns_applied_fields_with_identity_and_keys() {
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "finalizers": ["a/b"]},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [
                {"name": "a", "image": "x", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}});
        assert_eq!(extract(&object(), "m", "").unwrap(), expected);
    }

    #[test]
    fn extract_returns_identity_for_manager_without_entry() {
        let identity =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
        assert_eq!(extract(&object(), "other", "").unwrap(), identity);
        assert_eq!(extract(&object(), "m", "status").unwrap(), identity);
    }

    #[test]
    fn extract_fails_without_managed_fields() {
        let mut object = object();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(extract(&object, "m", ""), Err(ExtractError::NoManagedFields));
        object["metadata"]["managedFields"] =
            json!([{"manager": "m", "operation": "Apply", "fieldsV1": {"nonsense": 1}}]);
        assert!(matches!(extract(&object, "m", ""), Err(ExtractError::Malformed(_))));
    }

    #[test]
    fn configuration_is_applied_if_the_manager_owns_exactly_it() {
        let mut live = object();
        let applied = extract(&live, "m", "").unwrap();
        assert_eq!(is_applied(&live, "m", "", &applied), Ok(true));
        let mut without_namespace = applied.clone();
        without_namespace["metadata"].as_object_mut().unwrap().remove("namespace");
        assert_eq!(is_applied(&live, "m", "", &without_namespace), Ok(true));
        let mut other = applied.clone();
        other["spec"]["replicas"] = json!(4);
        assert_eq!(is_applied(&live, "m", "", &other), Ok(false));
        assert_eq!(is_applied(&live, "other", "", &applied), Ok(false));
        live["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(is_applied(&live, "m", "", &applied), Err(ExtractError::NoManagedFields));
    }

    /// A cache may drop fields. A configuration without them looks equal, but applying it would remove them.
    #[test]
    fn object_without_owned_fields_is_no_evidence() {
        for path in [
            "/spec",
            "/spec/template/spec/containers",
            "/metadata/finalizers",
            "/spec/template/spec/containers/0/ports/0",
        ] {
            let mut lean = object();
            *lean.pointer_mut(path).unwrap() = Value::Null;
            let rest = extract(&lean, "m", "").unwrap();
            assert_eq!(is_applied(&lean, "m", "", &rest), Ok(false), "{path}");
            let mut lean = object();
            let (parent, name) = path.rsplit_once('/').unwrap();
            match lean.pointer_mut(parent).unwrap() {
                Value::Object(fields) => drop(fields.remove(name)),
                other => drop(other.as_array_mut().unwrap().remove(0)),
            }
            let rest = extract(&lean, "m", "").unwrap();
            assert_eq!(is_applied(&lean, "m", "", &rest), Ok(false), "{path}");
        }
    }
}
