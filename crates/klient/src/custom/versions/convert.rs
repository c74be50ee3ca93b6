//! The conversion of one object.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use klient_core::Resource;
use serde_json::{Map, Value};

use super::{Spoke, Version, Versions};
use crate::{BoxError, custom::CustomResourceExt};

impl<Hub: Resource + CustomResourceExt> Versions<Hub> {
    /// Converts an object to another version, such as `example.com/v1`.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the versions is unknown, or if a conversion fails or panics.
    pub fn convert_object(&self, object: Value, api_version: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let fail = |reason: BoxError| ConversionError {
            kind: Hub::KIND,
            name: name_of(&object),
            from: from.clone(),
            to: api_version.to_owned(),
            reason,
        };
        let (source, target) = (self.find(&from).map_err(fail)?, self.find(api_version).map_err(fail)?);
        if object["kind"] != Hub::KIND {
            return Err(fail(format!("expected kind {}, found {}", Hub::KIND, object["kind"]).into()));
        }
        if source.api_version == target.api_version {
            return Ok(object);
        }
        let metadata = object["metadata"].clone();
        let converted = catch_unwind(AssertUnwindSafe(|| {
            let hub = (source.to_hub)(object.clone())?;
            (target.from_hub)(hub)
        }));
        match converted {
            Ok(Ok(converted)) => Ok(with_metadata(converted, metadata)),
            Ok(Err(error)) => Err(fail(error)),
            Err(_) => Err(fail("the conversion panicked".into())),
        }
    }

    pub(super) fn find(&self, api_version: &str) -> Result<&Version, BoxError> {
        self.all().find(|version| version.api_version == api_version).ok_or_else(|| {
            let known: Vec<_> = self.all().map(|version| version.api_version).collect();
            format!("unknown version {api_version:?}: expected one of {}", known.join(", ")).into()
        })
    }
}

/// Keeps the metadata of the original, except labels and annotations: the server refuses other changes.
fn with_metadata(mut converted: Value, original: Value) -> Value {
    let Value::Object(mut metadata) = original else { return converted };
    if let Some(whole) = converted.as_object_mut() {
        for field in ["labels", "annotations"] {
            match whole.get("metadata").and_then(|metadata| metadata.get(field)) {
                Some(value) => metadata.insert(field.to_owned(), value.clone()),
                None => metadata.remove(field),
            };
        }
        whole.insert("metadata".to_owned(), Value::Object(metadata));
    }
    converted
}

pub(super) fn name_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

pub(super) fn normalize<K: Resource>(object: Value) -> Result<Value, BoxError> {
    encode(&decode::<K>(object)?)
}

pub(super) fn to_hub<S: Spoke>(object: Value) -> Result<Value, BoxError> {
    encode(&decode::<S>(object)?.into_hub()?)
}

pub(super) fn from_hub<S: Spoke>(object: Value) -> Result<Value, BoxError> {
    encode(&S::from_hub(decode::<S::Hub>(object)?)?)
}

fn decode<K: Resource>(mut object: Value) -> Result<K, BoxError> {
    // The server may leave metadata out of objects that it converts for its own use.
    if let Some(whole) = object.as_object_mut() {
        whole.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    }
    serde_json::from_value(object).map_err(|error| format!("not a valid {}: {error}", K::API_VERSION).into())
}

/// Encodes an object, with its `apiVersion` and `kind` even if the type does not write them.
fn encode<K: Resource>(object: &K) -> Result<Value, BoxError> {
    let mut value = serde_json::to_value(object)?;
    if let Some(whole) = value.as_object_mut() {
        whole.insert("apiVersion".to_owned(), K::API_VERSION.into());
        whole.insert("kind".to_owned(), K::KIND.into());
    }
    Ok(value)
}

/// An error of a conversion, with the object and both versions.
#[derive(Debug)]
pub struct ConversionError {
    kind: &'static str,
    name: String,
    from: String,
    to: String,
    reason: BoxError,
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, from, to, reason } = self;
        write!(f, "cannot convert {kind} {name:?} from {from} to {to}: {reason}")
    }
}

impl std::error::Error for ConversionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.reason)
    }
}
