//! A list of objects, with its version and the token of the next page.
//!
//! Reading accepts `items: null` and absent type fields, as servers send them. Writing always writes an array.

use std::{slice, vec};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct};

use crate::{ResourceVersion, TypeMeta};

/// The response to a list request.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient_core::List;
///
/// let pods: List<Pod> = serde_json::from_str(
///     r#"{"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "abc"}, "items": [{"metadata": {}}]}"#,
/// )?;
/// assert_eq!(pods.continue_token(), Some("abc"));
/// assert_eq!(pods.resource_version().as_str(), "7");
/// for pod in &pods {
///     assert!(pod.spec.is_none());
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct List<K> {
    /// The `apiVersion` and `kind` of the list. If absent, a list is written as `<kind of K>List`.
    pub types: Option<TypeMeta>,
    /// The version and the continue token.
    pub metadata: ListMeta,
    /// The objects.
    pub items: Vec<K>,
}

impl<K> List<K> {
    /// Creates a complete list of objects without a version.
    pub fn new(items: Vec<K>) -> Self {
        Self { types: None, metadata: ListMeta::default(), items }
    }

    /// Returns the token of the next page, or `None` if this is the last one.
    pub fn continue_token(&self) -> Option<&str> {
        self.metadata.continue_.as_deref().filter(|token| !token.is_empty())
    }

    /// Returns the number of items on further pages, if the server counted them. It does not with selectors.
    pub fn remaining_item_count(&self) -> Option<u64> {
        self.metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok())
    }

    /// Returns the version of the whole list, from which a watch can start. It is empty if the server sent none.
    pub fn resource_version(&self) -> ResourceVersion {
        self.metadata.resource_version.as_deref().unwrap_or_default().into()
    }

    /// Iterates over the objects.
    pub fn iter(&self) -> slice::Iter<'_, K> {
        self.items.iter()
    }

    /// Iterates over mutable references to the objects.
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, K> {
        self.items.iter_mut()
    }
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<K> IntoIterator for List<K> {
    type Item = K;
    type IntoIter = vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, K> IntoIterator for &'a List<K> {
    type Item = &'a K;
    type IntoIter = slice::Iter<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, K> IntoIterator for &'a mut List<K> {
    type Item = &'a mut K;
    type IntoIter = slice::IterMut<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

impl<K: Serialize + k8s_openapi::Resource> Serialize for List<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let default_types;
        let types = match &self.types {
            Some(types) => types,
            None => {
                default_types = TypeMeta::list_of::<K>();
                &default_types
            }
        };
        let mut list = serializer.serialize_struct("List", 4)?;
        list.serialize_field("apiVersion", &types.api_version)?;
        list.serialize_field("kind", &types.kind)?;
        list.serialize_field("metadata", &self.metadata)?;
        list.serialize_field("items", &self.items)?;
        list.end()
    }
}

impl<'de, K: Deserialize<'de>> Deserialize<'de> for List<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", bound = "K: Deserialize<'de>")]
        struct Raw<K> {
            #[serde(default)]
            api_version: Option<String>,
            #[serde(default)]
            kind: Option<String>,
            #[serde(default)]
            metadata: Option<ListMeta>,
            #[serde(default)]
            items: Option<Vec<K>>,
        }
        let raw = Raw::deserialize(deserializer)?;
        let types = TypeMeta::new(raw.api_version.unwrap_or_default(), raw.kind.unwrap_or_default());
        Ok(Self {
            types: (types != TypeMeta::default()).then_some(types),
            metadata: raw.metadata.unwrap_or_default(),
            items: raw.items.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;
    use crate::{DynamicObject, PartialObjectMeta};

    #[test]
    fn list_is_read_without_items_metadata_or_kind() {
        for value in [json!({}), json!({"items": null, "metadata": null}), json!({"items": [], "metadata": {}})] {
            assert_eq!(serde_json::from_value::<List<Deployment>>(value).unwrap(), List::default());
        }
    }

    #[test]
    fn list_is_written_with_the_kind_of_its_items_by_default() {
        let check = |list: serde_json::Value, api_version: &str, kind: &str| {
            assert_eq!(
                list,
                json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "items": []}),
                "items are an array even when empty"
            );
        };
        check(serde_json::to_value(List::<Deployment>::default()).unwrap(), "apps/v1", "DeploymentList");
        check(serde_json::to_value(List::<DynamicObject>::default()).unwrap(), "v1", "List");
        type Partial = PartialObjectMeta<Deployment>;
        let partial = List { types: Some(Partial::list_types()), ..List::<Partial>::default() };
        check(serde_json::to_value(partial).unwrap(), "meta.k8s.io/v1", "PartialObjectMetadataList");
    }

    #[test]
    fn empty_token_or_version_is_treated_as_absent() {
        let list: List<Deployment> = serde_json::from_value(json!({
            "metadata": {"continue": "", "remainingItemCount": -1}, "items": [],
        }))
        .unwrap();
        assert_eq!(list.continue_token(), None);
        assert_eq!(list.remaining_item_count(), None);
        assert!(list.resource_version().is_empty());
    }

    #[test]
    fn list_round_trips() {
        let value = json!({
            "apiVersion": "apps/v1", "kind": "DeploymentList",
            "metadata": {"resourceVersion": "9", "continue": "t", "remainingItemCount": 3},
            "items": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}],
        });
        let mut list: List<DynamicObject> = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(list.remaining_item_count(), Some(3));
        assert_eq!(serde_json::to_value(&list).unwrap(), value);
        for item in &mut list {
            item.metadata.name = Some("b".into());
        }
        assert!(list.into_iter().all(|item| item.metadata.name.as_deref() == Some("b")));
    }
}
