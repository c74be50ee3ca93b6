//! Objects of kinds that are known only at run time.
//!
//! Decoding and encoding preserves all fields, also those that no type here knows, in `metadata` as everywhere else.
//! Two spellings are not distinguished: known metadata fields that are `null` or empty are left out, and so is an empty
//! `metadata`. In client-go: `unstructured.Unstructured`.

mod serialization;

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{ApiResource, DynamicScope, FieldPath, ObjectKey, PathSegment, Resource, TypeMeta};

/// An object of any kind: typed metadata, everything else as JSON.
///
/// ```
/// use klient_core::{ApiResource, DynamicObject, GroupVersionKind, Scope};
/// use serde_json::json;
///
/// let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Namespaced);
/// let mut widget = DynamicObject::new("w", &widgets).within("default").data(json!({"spec": {"size": 3}}));
/// widget.data["spec"]["colour"] = "red".into();
///
/// assert_eq!(widget.get(&"spec.size".parse()?).as_deref(), Some(&json!(3)));
/// assert_eq!(serde_json::to_value(&widget)?, json!({
///     "apiVersion": "example.com/v1",
///     "kind": "Widget",
///     "metadata": {"name": "w", "namespace": "default"},
///     "spec": {"size": 3, "colour": "red"},
/// }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Unstructured")]
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicObject {
    /// The `apiVersion` and `kind`, if the object contains them. Items of a typed list do not.
    pub types: Option<TypeMeta>,
    /// The metadata.
    pub metadata: ObjectMeta,
    /// Everything but `apiVersion`, `kind` and `metadata`: a JSON object.
    ///
    /// Keys of these three names are not written, because the other fields have their values.
    pub data: Value,
    /// Fields of `metadata` that `ObjectMeta` does not have.
    unknown_metadata: Map<String, Value>,
}

impl DynamicObject {
    /// Creates an object of that resource, with a name and nothing else.
    pub fn new(name: &str, resource: &ApiResource) -> Self {
        Self {
            types: Some(resource.types()),
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Self::default()
        }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// Sets everything but `apiVersion`, `kind` and `metadata`. Encoding fails if it is not a JSON object.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// Sets `apiVersion` and `kind` if the object does not contain them, as items of a typed list.
    pub fn fill_types(&mut self, resource: &ApiResource) {
        self.types.get_or_insert_with(|| resource.types());
    }

    /// Returns the value at a path of the whole object, if any.
    ///
    /// The value is borrowed, except for paths into `metadata`, which is not stored as JSON.
    #[doc(alias = "NestedFieldNoCopy")]
    pub fn get(&self, path: &FieldPath) -> Option<Cow<'_, Value>> {
        let (first, rest) = path.segments().split_first()?;
        let PathSegment::Field(name) = first else { return None };
        let types = |text: fn(&TypeMeta) -> &String| {
            let text = text(self.types.as_ref()?);
            (rest.is_empty() && !text.is_empty()).then(|| Cow::Owned(Value::String(text.clone())))
        };
        match name.as_str() {
            "apiVersion" => types(|types| &types.api_version),
            "kind" => types(|types| &types.kind),
            "metadata" => {
                let metadata = serde_json::to_value(self.whole_metadata()).ok()?;
                walk(&metadata, rest).map(|value| Cow::Owned(value.clone()))
            }
            _ => walk(&self.data, path.segments()).map(Cow::Borrowed),
        }
    }

    /// Decodes into a type.
    ///
    /// # Errors
    ///
    /// Returns an error if the object is of another kind, or if it cannot be decoded as the type.
    pub fn try_parse<K: Resource>(self) -> Result<K, ConvertObjectError> {
        let key = ObjectKey::of(&self);
        let fail = |source| ConvertObjectError::new::<K>(key, source);
        match self.into_value() {
            Ok(value) => serde_json::from_value(value).map_err(fail),
            Err(source) => Err(fail(source)),
        }
    }

    /// Splits any object into metadata and data.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be encoded as JSON.
    pub fn from_typed<K: Resource>(object: &K) -> Result<Self, ConvertObjectError> {
        serde_json::to_value(object)
            .and_then(Self::deserialize)
            .map_err(|source| ConvertObjectError::new::<K>(ObjectKey::of(object), source))
    }

    /// Returns the whole object as JSON, without copying its data.
    fn into_value(self) -> Result<Value, serde_json::Error> {
        if !matches!(self.data, Value::Object(_)) {
            return serde_json::to_value(&self);
        }
        let metadata = serde_json::to_value(self.whole_metadata())?;
        let Value::Object(mut whole) = self.data else { return Ok(Value::Null) };
        let types = self.types.unwrap_or_default();
        for (name, text) in [("apiVersion", types.api_version), ("kind", types.kind)] {
            whole.remove(name);
            if !text.is_empty() {
                whole.insert(name.to_owned(), Value::String(text));
            }
        }
        whole.insert("metadata".to_owned(), metadata);
        Ok(Value::Object(whole))
    }
}

impl Default for DynamicObject {
    fn default() -> Self {
        Self {
            types: None,
            metadata: ObjectMeta::default(),
            data: Value::Object(Map::new()),
            unknown_metadata: Map::new(),
        }
    }
}

/// The constants are empty, because only a value of this type knows its kind.
impl k8s_openapi::Resource for DynamicObject {
    const API_VERSION: &'static str = "";
    const GROUP: &'static str = "";
    const KIND: &'static str = "";
    const VERSION: &'static str = "";
    const URL_PATH_SEGMENT: &'static str = "";
    type Scope = DynamicScope;
}

impl k8s_openapi::Metadata for DynamicObject {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn walk<'a>(value: &'a Value, segments: &[PathSegment]) -> Option<&'a Value> {
    segments.iter().try_fold(value, |value, segment| match segment {
        PathSegment::Field(name) => value.as_object()?.get(name),
        PathSegment::Index(index) => value.as_array()?.get(*index),
    })
}

/// An error of converting an object to or from another type, with the names of both.
#[derive(Debug)]
pub struct ConvertObjectError {
    key: ObjectKey,
    types: TypeMeta,
    source: serde_json::Error,
}

impl ConvertObjectError {
    fn new<K: k8s_openapi::Resource>(key: ObjectKey, source: serde_json::Error) -> Self {
        Self { key, types: TypeMeta::of::<K>(), source }
    }
}

impl fmt::Display for ConvertObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TypeMeta { api_version, kind } = &self.types;
        write!(f, "object {:?} is not a valid {api_version} {kind}", self.key)
    }
}

impl std::error::Error for ConvertObjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests;
