//! Accessors of the metadata of any object.

use std::collections::BTreeMap;

use k8s_openapi::{
    Metadata,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};

use crate::ObjectKey;

/// Access to the metadata of an object without `as_deref().unwrap_or_default()`.
///
/// Every type with `ObjectMeta` implements it: built-in kinds, custom kinds, dynamic objects and metadata-only objects.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient_core::ResourceExt;
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web".to_owned());
/// pod.labels_mut().insert("app".to_owned(), "shop".to_owned());
///
/// assert_eq!(pod.name(), "web");
/// assert_eq!(pod.label("app"), Some("shop"));
/// assert!(!pod.is_being_deleted());
/// ```
#[doc(alias = "metav1.Object")]
#[doc(alias = "Accessor")]
pub trait ResourceExt: Metadata<Ty = ObjectMeta> {
    /// Returns the name, or an empty string if the object has none yet.
    #[doc(alias = "GetName")]
    #[doc(alias = "name_any")]
    fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// Returns the namespace; `None` for cluster-scoped objects.
    #[doc(alias = "GetNamespace")]
    fn namespace(&self) -> Option<&str> {
        self.metadata().namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    /// Returns namespace and name as one key.
    #[doc(alias = "ObjectKeyFromObject")]
    fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name())
    }

    /// Returns the UID; `None` if the object was never stored.
    #[doc(alias = "GetUID")]
    fn uid(&self) -> Option<&str> {
        self.metadata().uid.as_deref().filter(|uid| !uid.is_empty())
    }

    /// Returns the resource version; `None` if the object was never stored.
    #[doc(alias = "GetResourceVersion")]
    fn resource_version(&self) -> Option<&str> {
        self.metadata().resource_version.as_deref().filter(|version| !version.is_empty())
    }

    /// Returns the generation, which counts changes of the specification; 0 if the kind has none.
    #[doc(alias = "GetGeneration")]
    fn generation(&self) -> i64 {
        self.metadata().generation.unwrap_or_default()
    }

    /// Returns the labels.
    #[doc(alias = "GetLabels")]
    fn labels(&self) -> &BTreeMap<String, String> {
        self.metadata().labels.as_ref().unwrap_or(&EMPTY)
    }

    /// Returns the value of one label.
    fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    /// Returns the labels for changing.
    #[doc(alias = "SetLabels")]
    fn labels_mut(&mut self) -> &mut BTreeMap<String, String> {
        self.metadata_mut().labels.get_or_insert_default()
    }

    /// Returns the annotations.
    #[doc(alias = "GetAnnotations")]
    fn annotations(&self) -> &BTreeMap<String, String> {
        self.metadata().annotations.as_ref().unwrap_or(&EMPTY)
    }

    /// Returns the value of one annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations().get(key).map(String::as_str)
    }

    /// Returns the annotations for changing.
    #[doc(alias = "SetAnnotations")]
    fn annotations_mut(&mut self) -> &mut BTreeMap<String, String> {
        self.metadata_mut().annotations.get_or_insert_default()
    }

    /// Returns the owner references.
    #[doc(alias = "GetOwnerReferences")]
    fn owner_references(&self) -> &[OwnerReference] {
        self.metadata().owner_references.as_deref().unwrap_or_default()
    }

    /// Returns the owner references for changing.
    #[doc(alias = "SetOwnerReferences")]
    fn owner_references_mut(&mut self) -> &mut Vec<OwnerReference> {
        self.metadata_mut().owner_references.get_or_insert_default()
    }

    /// Returns the finalizers.
    #[doc(alias = "GetFinalizers")]
    fn finalizers(&self) -> &[String] {
        self.metadata().finalizers.as_deref().unwrap_or_default()
    }

    /// Returns the finalizers for changing.
    #[doc(alias = "SetFinalizers")]
    fn finalizers_mut(&mut self) -> &mut Vec<String> {
        self.metadata_mut().finalizers.get_or_insert_default()
    }

    /// Returns whether a delete was requested: the object stays until its finalizers are removed.
    #[doc(alias = "GetDeletionTimestamp")]
    fn is_being_deleted(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    /// Returns when the object was created; `None` if it was never stored.
    #[doc(alias = "GetCreationTimestamp")]
    fn creation_timestamp(&self) -> Option<&Time> {
        self.metadata().creation_timestamp.as_ref()
    }
}

impl<K: Metadata<Ty = ObjectMeta>> ResourceExt for K {}

static EMPTY: BTreeMap<String, String> = BTreeMap::new();

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::DynamicObject;

    #[test]
    fn resource_ext_reads_metadata_of_typed_and_dynamic_objects() {
        let metadata = ObjectMeta {
            name: Some("web".into()),
            namespace: Some("shop".into()),
            uid: Some("u1".into()),
            resource_version: Some("7".into()),
            generation: Some(2),
            labels: Some([("app".to_owned(), "shop".to_owned())].into()),
            finalizers: Some(vec!["example.com/a".into()]),
            deletion_timestamp: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        let pod = Pod { metadata: metadata.clone(), ..Pod::default() };
        let mut dynamic = DynamicObject::default();
        dynamic.metadata = metadata;
        assert_eq!((pod.name(), pod.namespace(), pod.key()), ("web", Some("shop"), ObjectKey::of(&pod)));
        assert_eq!((dynamic.uid(), dynamic.resource_version(), dynamic.generation()), (Some("u1"), Some("7"), 2));
        assert_eq!((pod.label("app"), pod.label("tier"), pod.annotation("a")), (Some("shop"), None, None));
        assert_eq!(dynamic.finalizers(), ["example.com/a"]);
        assert!(pod.is_being_deleted() && pod.creation_timestamp().is_none());
    }

    #[test]
    fn resource_ext_of_a_new_object_is_empty_and_can_be_filled() {
        let mut pod = Pod::default();
        assert_eq!((pod.name(), pod.namespace(), pod.uid(), pod.generation()), ("", None, None, 0));
        assert!(pod.labels().is_empty() && pod.owner_references().is_empty());
        pod.annotations_mut().insert("a".into(), "b".into());
        pod.finalizers_mut().push("example.com/a".into());
        assert_eq!((pod.annotation("a"), pod.finalizers().len()), (Some("b"), 1));
    }
}
