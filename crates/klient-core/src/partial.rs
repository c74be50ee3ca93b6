//! Metadata-only objects.
//!
//! A server sends this format on request, at a fraction of the size. The kind of the object is in the type and not in
//! the value, because on the wire every kind is `PartialObjectMetadata`.

use std::{fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeStruct};

use crate::{ObjectKey, Resource, TypeMeta};

/// The metadata of a `K`, as a resource.
///
/// ```
/// use k8s_openapi::{Metadata, api::core::v1::Pod};
/// use klient_core::{ApiResource, PartialObjectMeta};
///
/// let pod: PartialObjectMeta<Pod> = serde_json::from_str(
///     r#"{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "web"}}"#,
/// )?;
/// assert_eq!(pod.metadata().name.as_deref(), Some("web"));
/// // Requests for it use the path of pods.
/// assert_eq!(ApiResource::of::<PartialObjectMeta<Pod>>(), ApiResource::of::<Pod>());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[doc(alias = "PartialObjectMetadata")]
pub struct PartialObjectMeta<K> {
    /// The metadata.
    pub metadata: ObjectMeta,
    // `fn() -> K` and not `K`, so that the type is `Send` and `Sync` for any `K`.
    kind: PhantomData<fn() -> K>,
}

const API_VERSION: &str = "meta.k8s.io/v1";
const KIND: &str = "PartialObjectMetadata";

impl<K> PartialObjectMeta<K> {
    /// Wraps metadata.
    pub fn new(metadata: ObjectMeta) -> Self {
        Self { metadata, kind: PhantomData }
    }

    /// Returns the metadata of an object.
    pub fn of(object: &K) -> Self
    where
        K: Resource,
    {
        Self::new(object.metadata().clone())
    }

    /// Returns the `apiVersion` and `kind` of a list of metadata, the same for any `K`.
    pub fn list_types() -> TypeMeta {
        TypeMeta::new(API_VERSION, "PartialObjectMetadataList")
    }
}

impl<K> From<ObjectMeta> for PartialObjectMeta<K> {
    fn from(metadata: ObjectMeta) -> Self {
        Self::new(metadata)
    }
}

/// The constants are `K`'s, because requests use the path of `K`.
impl<K: k8s_openapi::Resource> k8s_openapi::Resource for PartialObjectMeta<K> {
    const API_VERSION: &'static str = K::API_VERSION;
    const GROUP: &'static str = K::GROUP;
    const KIND: &'static str = K::KIND;
    const VERSION: &'static str = K::VERSION;
    const URL_PATH_SEGMENT: &'static str = K::URL_PATH_SEGMENT;
    type Scope = K::Scope;
}

impl<K: k8s_openapi::Resource> k8s_openapi::Metadata for PartialObjectMeta<K> {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

// Implemented by hand, because derives would require the same traits of `K`.
impl<K> Clone for PartialObjectMeta<K> {
    fn clone(&self) -> Self {
        Self::new(self.metadata.clone())
    }
}

impl<K> Default for PartialObjectMeta<K> {
    fn default() -> Self {
        Self::new(ObjectMeta::default())
    }
}

impl<K> PartialEq for PartialObjectMeta<K> {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata
    }
}

impl<K> fmt::Debug for PartialObjectMeta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialObjectMeta").field("metadata", &self.metadata).finish()
    }
}

impl<K> Serialize for PartialObjectMeta<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct(KIND, 3)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.end()
    }
}

/// Rejects objects of another kind. A server that does not support this format sends the whole object, and the missing
/// savings would not be noticed.
impl<'de, K> Deserialize<'de> for PartialObjectMeta<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            #[serde(default)]
            api_version: Option<String>,
            #[serde(default)]
            kind: Option<String>,
            #[serde(default)]
            metadata: Option<ObjectMeta>,
        }
        let Raw { api_version, kind, metadata } = Raw::deserialize(deserializer)?;
        let metadata = metadata.unwrap_or_default();
        let (api_version, kind) = (api_version.unwrap_or_default(), kind.unwrap_or_default());
        let expected = matches!(api_version.as_str(), "" | API_VERSION | "meta.k8s.io/v1beta1")
            && matches!(kind.as_str(), "" | KIND);
        if !expected {
            let name = metadata.name.as_deref().unwrap_or_default();
            let key = ObjectKey::namespaced(metadata.namespace.as_deref().unwrap_or_default(), name);
            return Err(D::Error::custom(format_args!("expected {KIND}, found {api_version} {kind} {key:?}")));
        }
        Ok(Self::new(metadata))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;
    use crate::{DynamicObject, GroupVersionKind};

    type Partial = PartialObjectMeta<Deployment>;

    #[test]
    fn partial_metadata_is_read_with_any_or_no_version() {
        for types in [
            json!({}),
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}),
            json!({"apiVersion": "meta.k8s.io/v1beta1", "kind": "PartialObjectMetadata"}),
        ] {
            let mut value = types;
            value["metadata"] = json!({"name": "web"});
            assert_eq!(serde_json::from_value::<Partial>(value).unwrap().metadata.name.as_deref(), Some("web"));
        }
    }

    #[test]
    fn whole_object_is_rejected_with_its_name() {
        let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}});
        let error = serde_json::from_value::<Partial>(value).unwrap_err().to_string();
        assert_eq!(error, "expected PartialObjectMetadata, found apps/v1 Deployment \"web\"");
    }

    #[test]
    fn partial_metadata_is_written_with_its_wire_kind() {
        let partial = Partial::new(ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() });
        assert_eq!(
            serde_json::to_value(&partial).unwrap(),
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "web"}}),
        );
        assert_eq!(GroupVersionKind::of_object(&partial), Some(GroupVersionKind::of::<Deployment>()));
        assert_eq!(serde_json::from_value::<Partial>(serde_json::to_value(&partial).unwrap()).unwrap(), partial);
    }

    #[test]
    fn partial_metadata_supports_dynamic_kinds() {
        fn needs_resource<K: Resource>() {}
        needs_resource::<PartialObjectMeta<DynamicObject>>();
        assert_eq!(GroupVersionKind::of_object(&PartialObjectMeta::<DynamicObject>::default()), None);
    }
}
