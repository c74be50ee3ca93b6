//! Owner references: creating them, and finding the controller of an object.
//!
//! An owner is identified by its UID. Group and kind select the responsible controller. The version in a reference is
//! the one that its writer used, and is ignored. In client-go: `metav1.NewControllerRef` and `GetControllerOf`.

mod set;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::{GroupKind, GroupVersion, GroupVersionKind, Resource, TypeMeta};

pub use self::set::{SetOwnerError, set_controller_ref};

/// Returns a reference to an owner that is not the controller: the object is deleted with its last owner.
///
/// # Errors
///
/// Returns an error if the owner has no name, no UID or no known kind, because servers reject such references. An
/// object has a UID once it is stored.
pub fn owner_ref<K: Resource>(owner: &K) -> Result<OwnerReference, OwnerRefError> {
    let missing = |what| OwnerRefError { what };
    let types = TypeMeta::from(&GroupVersionKind::of_object(owner).ok_or(missing("a kind"))?);
    let present = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let metadata = owner.metadata();
    Ok(OwnerReference {
        api_version: types.api_version,
        kind: types.kind,
        name: present(&metadata.name).ok_or(missing("a name"))?,
        uid: present(&metadata.uid).ok_or(missing("a UID: it is not stored yet"))?,
        ..OwnerReference::default()
    })
}

/// Returns a reference to the controller of an object, of which there is at most one. It blocks the owner's foreground
/// deletion until the object is deleted.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use klient_core::{controller_of, controller_owner_ref, is_controlled_by};
///
/// let mut owner = Deployment::default();
/// owner.metadata.name = Some("web".to_owned());
/// owner.metadata.uid = Some("1234".to_owned());
/// let mut config = ConfigMap::default();
/// config.metadata.owner_references = Some(vec![controller_owner_ref(&owner)?]);
///
/// assert_eq!(controller_of(&config.metadata).unwrap().name, "web");
/// assert!(is_controlled_by(&config.metadata, "1234"));
/// # Ok::<(), klient_core::OwnerRefError>(())
/// ```
///
/// # Errors
///
/// Returns the errors of [`owner_ref`].
#[doc(alias = "NewControllerRef")]
pub fn controller_owner_ref<K: Resource>(owner: &K) -> Result<OwnerReference, OwnerRefError> {
    Ok(OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_ref(owner)? })
}

/// Returns the controller of an object, if any.
#[doc(alias = "GetControllerOf")]
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Returns whether the object with that UID controls this one.
pub fn is_controlled_by(metadata: &ObjectMeta, uid: &str) -> bool {
    // No object has an empty UID, so two empty ones do not match.
    !uid.is_empty() && controller_of(metadata).is_some_and(|owner| owner.uid == uid)
}

/// Returns whether an owner is of that kind, in any version.
pub fn is_owner_of_kind(owner: &OwnerReference, kind: &GroupKind) -> bool {
    owner.kind == kind.kind
        && owner.api_version.parse::<GroupVersion>().is_ok_and(|version| version.group == kind.group)
}

/// An error of referring to an object that cannot be an owner, with the missing part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRefError {
    what: &'static str,
}

impl fmt::Display for OwnerRefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner must have {}", self.what)
    }
}

impl std::error::Error for OwnerRefError {}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::DynamicObject;

    fn deployment(name: &str, uid: &str) -> Deployment {
        let metadata = ObjectMeta { name: Some(name.into()), uid: Some(uid.into()), ..ObjectMeta::default() };
        Deployment { metadata, ..Deployment::default() }
    }

    #[test]
    fn owner_ref_has_the_fields_that_servers_require() {
        let owner = controller_owner_ref(&deployment("web", "u")).unwrap();
        assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("apps/v1", "Deployment"));
        assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
        assert_eq!(owner_ref(&deployment("web", "u")).unwrap().controller, None);
        let mut dynamic = DynamicObject::from_typed(&deployment("web", "u")).unwrap();
        assert_eq!(controller_owner_ref(&dynamic), Ok(owner));
        dynamic.types = None;
        assert_eq!(owner_ref(&dynamic).unwrap_err().to_string(), "owner must have a kind");
    }

    #[test]
    fn object_that_is_not_stored_cannot_be_an_owner() {
        let error = owner_ref(&deployment("web", "")).unwrap_err();
        assert_eq!(error.to_string(), "owner must have a UID: it is not stored yet");
        assert_eq!(owner_ref(&deployment("", "u")).unwrap_err().to_string(), "owner must have a name");
    }

    #[test]
    fn controller_of_returns_the_controlling_owner() {
        let plain = owner_ref(&deployment("a", "1")).unwrap();
        let controller = controller_owner_ref(&deployment("b", "2")).unwrap();
        let owned = |owners| ObjectMeta { owner_references: owners, ..ObjectMeta::default() };
        assert_eq!(controller_of(&owned(None)), None);
        assert_eq!(controller_of(&owned(Some(vec![plain.clone()]))), None);
        let metadata = owned(Some(vec![plain, controller.clone()]));
        assert_eq!(controller_of(&metadata), Some(&controller));
        assert!(is_controlled_by(&metadata, "2") && !is_controlled_by(&metadata, "1"));
        let without_uid = owned(Some(vec![OwnerReference { uid: String::new(), ..controller }]));
        assert!(!is_controlled_by(&without_uid, ""));
    }

    #[test]
    fn owner_is_matched_by_kind_in_any_version() {
        let kind = GroupKind::new("apps", "Deployment");
        for (api_version, name, expected) in [
            ("apps/v1", "Deployment", true),
            ("apps/v1beta2", "Deployment", true),
            ("extensions/v1beta1", "Deployment", false),
            ("v1", "Deployment", false),
            ("apps/v1", "ReplicaSet", false),
            ("apps/v1/x", "Deployment", false),
        ] {
            let owner =
                OwnerReference { api_version: api_version.into(), kind: name.into(), ..OwnerReference::default() };
            assert_eq!(is_owner_of_kind(&owner, &kind), expected, "{api_version} {name}");
        }
    }
}
