//! A reference to one object of any kind.
//!
//! It names the object by kind and key. With a UID, it refers to that very object and not to a later one of the same
//! name. In client-go: `corev1.ObjectReference` and `tools/reference`.

use std::{fmt, str::FromStr};

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference};

use serde::{Deserialize, Serialize};

use crate::{
    ApiResource, GroupKind, GroupVersion, GroupVersionKind, ObjectKey, ParseGroupVersionError, Resource, StaticScope,
};

/// A reference to an object: kind, key, and UID if known.
///
/// ```
/// use klient_core::{GroupVersionKind, ObjectKey, ObjectRef};
///
/// let web = ObjectRef::new(GroupVersionKind::new("apps", "v1", "Deployment"), ObjectKey::namespaced("default", "web"));
/// assert_eq!(web.to_string(), "Deployment.v1.apps default/web");
/// ```
#[doc(alias = "ObjectReference")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "ObjectReference", try_from = "ObjectReference")]
#[non_exhaustive]
pub struct ObjectRef {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The UID, if known.
    pub uid: Option<String>,
}

impl ObjectRef {
    /// Creates a reference to the object of that kind and key.
    pub fn new(gvk: GroupVersionKind, key: ObjectKey) -> Self {
        Self { gvk, key, uid: None }
    }

    /// Creates a reference to the object of that resource and key.
    pub fn of_resource(resource: &ApiResource, key: ObjectKey) -> Self {
        Self::new(resource.gvk(), key)
    }

    /// Returns a reference to an object, or `None` if its kind is unknown.
    #[doc(alias = "GetReference")]
    pub fn of<K: Resource>(object: &K) -> Option<Self> {
        let uid = object.metadata().uid.clone().filter(|uid| !uid.is_empty());
        Some(Self { gvk: GroupVersionKind::of_object(object)?, key: ObjectKey::of(object), uid })
    }

    /// Returns a reference to the owner of an object.
    ///
    /// An owner is in the namespace of the object, or cluster-scoped. The reference does not tell which: pass the
    /// namespace only if the owner's kind is namespaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the `apiVersion` of the reference is invalid.
    pub fn of_owner(owner: &OwnerReference, namespace: Option<&str>) -> Result<Self, ParseGroupVersionError> {
        Ok(Self {
            gvk: owner.api_version.parse::<GroupVersion>()?.with_kind(owner.kind.clone()),
            key: ObjectKey::namespaced(namespace.unwrap_or_default(), &owner.name),
            uid: Some(owner.uid.clone()).filter(|uid| !uid.is_empty()),
        })
    }

    /// Sets the UID.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Returns the kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }
}

/// Prints `Deployment.v1.apps shop/web`, and `Pod.v1 shop/web` for the core group.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupVersionKind { group, version, kind } = &self.gvk;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{kind}.{version}{dot}{group} {}", self.key)
    }
}

/// Parses the format of [`Display`](fmt::Display), which does not contain the UID.
impl FromStr for ObjectRef {
    type Err = ParseObjectRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (kind, key) = text.split_once(' ')?;
            let (kind, version) = kind.split_once('.')?;
            let (version, group) = version.split_once('.').unwrap_or((version, ""));
            let whole = !kind.is_empty() && !version.is_empty() && !group.ends_with('.');
            let gvk = GroupVersionKind::new(group.to_owned(), version.to_owned(), kind.to_owned());
            whole.then(|| key.parse().ok()).flatten().map(|key| Self::new(gvk, key))
        };
        parse().ok_or_else(|| ParseObjectRefError { text: text.to_owned() })
    }
}

/// An error of parsing a reference such as `Deployment.v1.apps shop/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseObjectRefError {
    text: String,
}

impl fmt::Display for ParseObjectRefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object reference {:?}: expected `Kind.version.group namespace/name`", self.text)
    }
}

impl std::error::Error for ParseObjectRefError {}

impl From<ObjectRef> for ObjectReference {
    fn from(object: ObjectRef) -> Self {
        Self::from(&object)
    }
}

/// Absent parts are empty.
impl TryFrom<ObjectReference> for ObjectRef {
    type Error = ParseGroupVersionError;

    fn try_from(reference: ObjectReference) -> Result<Self, Self::Error> {
        let version: GroupVersion = reference.api_version.as_deref().unwrap_or_default().parse()?;
        Ok(Self {
            gvk: version.with_kind(reference.kind.unwrap_or_default()),
            key: ObjectKey::namespaced(
                reference.namespace.as_deref().unwrap_or_default(),
                reference.name.as_deref().unwrap_or_default(),
            ),
            uid: reference.uid.filter(|uid| !uid.is_empty()),
        })
    }
}

impl<K: Resource<Scope: StaticScope>> From<&K> for ObjectRef {
    fn from(object: &K) -> Self {
        let uid = object.metadata().uid.clone().filter(|uid| !uid.is_empty());
        Self { gvk: GroupVersionKind::of::<K>(), key: ObjectKey::of(object), uid }
    }
}

impl From<&ObjectRef> for ObjectReference {
    fn from(object: &ObjectRef) -> Self {
        Self {
            api_version: Some(object.gvk.api_version()),
            kind: Some(object.gvk.kind.to_string()),
            name: Some(object.key.name().to_owned()),
            namespace: object.key.namespace().map(str::to_owned),
            uid: object.uid.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};

    use super::*;
    use crate::DynamicObject;

    #[test]
    fn reference_is_created_from_objects_and_owners() {
        let metadata = ObjectMeta { name: Some("n1".into()), uid: Some("u1".into()), ..ObjectMeta::default() };
        let node = Node { metadata, ..Node::default() };
        let reference = ObjectRef::of(&node).unwrap();
        assert_eq!(reference.to_string(), "Node.v1 n1");
        assert_eq!(ObjectRef::from(&node), reference);
        assert_eq!(reference.uid.as_deref(), Some("u1"));
        assert_eq!(ObjectRef::of(&DynamicObject::default()), None);

        let owner = crate::owner_ref(&node).unwrap();
        assert_eq!(ObjectRef::of_owner(&owner, None), Ok(reference));
        let owner = OwnerReference { api_version: "a/b/c".into(), ..owner };
        assert!(ObjectRef::of_owner(&owner, None).is_err());
    }

    #[test]
    fn reference_parses_what_it_prints() {
        let key = ObjectKey::namespaced("shop", "web");
        for gvk in [GroupVersionKind::new("apps", "v1", "Deployment"), GroupVersionKind::new("a.b.c", "v1beta1", "X")] {
            let reference = ObjectRef::new(gvk, key.clone());
            assert_eq!(reference.to_string().parse(), Ok(reference));
        }
        for text in ["", "Pod", "Pod shop/web", "Pod.v1", "Pod.v1 a/b/c", ".v1 a", "Pod. a"] {
            assert!(text.parse::<ObjectRef>().unwrap_err().to_string().contains(&format!("{text:?}")), "{text}");
        }
    }

    #[test]
    fn reference_serializes_as_an_object_reference() {
        let reference = ObjectRef::new(GroupVersionKind::new("apps", "v1", "Deployment"), ObjectKey::cluster("web"));
        let json = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        assert_eq!(serde_json::to_value(&reference).unwrap(), json);
        assert_eq!(serde_json::from_value::<ObjectRef>(json).unwrap(), reference);
    }

    #[test]
    fn reference_converts_to_an_object_reference_and_back() {
        let reference =
            ObjectRef::new(GroupVersionKind::new("apps", "v1", "Deployment"), ObjectKey::namespaced("default", "web"))
                .uid("u");
        let core = ObjectReference::from(&reference);
        assert_eq!(core.api_version.as_deref(), Some("apps/v1"));
        assert_eq!(core.namespace.as_deref(), Some("default"));
        assert_eq!(ObjectRef::try_from(core), Ok(reference));
        assert!(ObjectRef::try_from(ObjectReference::default()).is_err());
    }
}
