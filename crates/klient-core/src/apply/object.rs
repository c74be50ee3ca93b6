//! The parts of configurations that every kind has: identity, metadata, and what a manager applied before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde_json::Value;

use super::{Configuration, ExtractError, Fields};

/// Returns the fields that identify an object.
#[must_use]
pub fn identity(api_version: &str, kind: &str, name: String, namespace: Option<String>) -> Fields {
    let mut fields = Fields::default();
    fields.set("apiVersion", api_version);
    fields.set("kind", kind);
    fields.extend_map(
        "metadata",
        [("name", Some(name)), ("namespace", namespace)].into_iter().filter(|(_, value)| value.is_some()),
    );
    fields
}

/// Adds labels to an object.
pub fn labels(fields: &mut Fields, labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) {
    metadata(fields, |metadata| metadata.extend_map("labels", texts(labels)));
}

/// Adds annotations to an object.
pub fn annotations(fields: &mut Fields, annotations: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) {
    metadata(fields, |metadata| metadata.extend_map("annotations", texts(annotations)));
}

/// Adds finalizers to an object.
pub fn finalizers(fields: &mut Fields, finalizers: impl IntoIterator<Item = impl Into<String>>) {
    metadata(fields, |metadata| metadata.extend_set("finalizers", finalizers.into_iter().map(Into::into)));
}

/// Adds an owner to an object. One with the same UID is replaced.
pub fn owner(fields: &mut Fields, owner: &OwnerReference) {
    metadata(fields, |metadata| metadata.put_items("ownerReferences", &["uid"], [owner]));
}

/// Returns what a manager last applied to an object: the fields that it still owns, and the object's identity.
///
/// `subresource` is empty for what was applied to the object itself.
///
/// # Errors
///
/// Returns an error if the object has no managed fields, or if they are malformed.
pub fn extract<T: Configuration>(live: &impl Serialize, manager: &str, subresource: &str) -> Result<T, ExtractError> {
    let live = serde_json::to_value(live).map_err(|error| ExtractError::Malformed(error.to_string()))?;
    match crate::fields::extract(&live, manager, subresource)? {
        Value::Object(fields) => Ok(T::from_fields(Fields::from_map(fields))),
        _ => Ok(T::from_fields(Fields::default())),
    }
}

fn metadata(fields: &mut Fields, change: impl FnOnce(&mut Fields)) {
    fields.object("metadata", |mut metadata: Metadata| {
        change(&mut metadata.0);
        metadata
    });
}

fn texts(
    entries: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
) -> impl Iterator<Item = (String, String)> {
    entries.into_iter().map(|(key, value)| (key.into(), value.into()))
}

/// The metadata of an object.
#[derive(Clone, Serialize)]
struct Metadata(Fields);

impl Configuration for Metadata {
    fn from_fields(fields: Fields) -> Self {
        Self(fields)
    }

    fn into_fields(self) -> Fields {
        self.0
    }
}
