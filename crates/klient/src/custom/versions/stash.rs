//! Values that a version has no field for, in an annotation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

use crate::BoxError;

/// Stores a value in an annotation, so that it survives in a version that has no field for it.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use klient::custom::{stash, take_stash};
///
/// let mut metadata = ObjectMeta::default();
/// stash(&mut metadata, "example.com/v1-color", &"red")?;
/// let color: Option<String> = take_stash(&mut metadata, "example.com/v1-color")?;
/// assert_eq!(color.as_deref(), Some("red"));
/// assert_eq!(metadata, ObjectMeta::default());
/// # Ok::<_, klient::BoxError>(())
/// ```
///
/// # Errors
///
/// Returns an error if the value cannot be encoded as JSON.
pub fn stash(metadata: &mut ObjectMeta, annotation: &str, value: &impl Serialize) -> Result<(), BoxError> {
    let text = serde_json::to_string(value)?;
    metadata.annotations.get_or_insert_default().insert(annotation.to_owned(), text);
    Ok(())
}

/// Removes a value from its annotation; `None` if there is no such annotation.
///
/// # Errors
///
/// Returns an error if the annotation is not JSON of this type.
pub fn take_stash<T: DeserializeOwned>(metadata: &mut ObjectMeta, annotation: &str) -> Result<Option<T>, BoxError> {
    let Some(annotations) = &mut metadata.annotations else { return Ok(None) };
    let Some(text) = annotations.remove(annotation) else { return Ok(None) };
    if annotations.is_empty() {
        metadata.annotations = None;
    }
    let value =
        serde_json::from_str(&text).map_err(|error| format!("annotation {annotation} is not valid: {error}"))?;
    Ok(Some(value))
}
