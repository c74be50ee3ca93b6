//! Setting the controller of an object.

use std::fmt;

use super::{OwnerRefError, controller_of, controller_owner_ref};
use crate::Resource;

/// Sets `owner` as the controller of `object`, replacing an older reference to it.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use klient_core::{is_controlled_by, set_controller_ref};
///
/// let mut owner = Deployment::default();
/// owner.metadata.name = Some("web".to_owned());
/// owner.metadata.uid = Some("1234".to_owned());
/// let mut config = ConfigMap::default();
/// set_controller_ref(&mut config, &owner)?;
/// assert!(is_controlled_by(&config.metadata, "1234"));
/// # Ok::<(), klient_core::SetOwnerError>(())
/// ```
///
/// # Errors
///
/// Returns an error if another object is the controller, if the owner is in another namespace, or if
/// [`owner_ref`](crate::owner_ref) fails.
#[doc(alias = "SetControllerReference")]
pub fn set_controller_ref<O: Resource, K: Resource>(object: &mut O, owner: &K) -> Result<(), SetOwnerError> {
    let reference = controller_owner_ref(owner).map_err(SetOwnerError::Owner)?;
    let present = |namespace: &Option<String>| namespace.clone().filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = present(&owner.metadata().namespace)
        && present(&object.metadata().namespace).is_some_and(|other| other != namespace)
    {
        return Err(SetOwnerError::OtherNamespace(namespace));
    }
    if let Some(other) = controller_of(object.metadata()).filter(|other| other.uid != reference.uid) {
        return Err(SetOwnerError::Controlled(format!("{} {}", other.kind, other.name)));
    }
    let owners = object.metadata_mut().owner_references.get_or_insert_default();
    match owners.iter_mut().find(|old| old.uid == reference.uid) {
        Some(old) => *old = reference,
        None => owners.push(reference),
    }
    Ok(())
}

/// The reason why an object cannot have that owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetOwnerError {
    /// The owner lacks a required field.
    Owner(OwnerRefError),
    /// Another object, named here, is the controller.
    Controlled(String),
    /// The owner is in another namespace, named here.
    OtherNamespace(String),
}

impl fmt::Display for SetOwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(error) => error.fmt(f),
            Self::Controlled(by) => write!(f, "object is already controlled by {by}"),
            Self::OtherNamespace(namespace) => write!(f, "owner is in another namespace: {namespace}"),
        }
    }
}

impl std::error::Error for SetOwnerError {}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    use super::*;

    fn map(namespace: Option<&str>, name: &str, uid: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.namespace = namespace.map(str::to_owned);
        (map.metadata.name, map.metadata.uid) = (Some(name.to_owned()), Some(uid.to_owned()));
        map
    }

    #[test]
    fn setting_the_same_owner_twice_adds_one_reference() {
        let mut object = map(Some("a"), "object", "1");
        let other = super::super::owner_ref(&map(Some("a"), "other", "3")).unwrap();
        object.metadata.owner_references = Some(vec![other]);
        set_controller_ref(&mut object, &map(Some("a"), "owner", "2")).unwrap();
        set_controller_ref(&mut object, &map(Some("a"), "owner", "2")).unwrap();
        let uids: Vec<_> = object.metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str()).collect();
        assert_eq!(uids, ["3", "2"]);
        assert_eq!(controller_of(&object.metadata).unwrap().uid, "2");
    }

    #[test]
    fn second_controller_is_rejected() {
        let mut object = map(Some("a"), "object", "1");
        set_controller_ref(&mut object, &map(Some("a"), "owner", "2")).unwrap();
        let error = set_controller_ref(&mut object, &map(Some("a"), "late", "3")).unwrap_err();
        assert_eq!(error.to_string(), "object is already controlled by ConfigMap owner");
    }

    #[test]
    fn owner_in_another_namespace_is_rejected() {
        let mut object = map(Some("a"), "object", "1");
        let error = set_controller_ref(&mut object, &map(Some("b"), "owner", "2")).unwrap_err();
        assert_eq!(error, SetOwnerError::OtherNamespace("b".to_owned()));
        let mut owner = Namespace::default();
        (owner.metadata.name, owner.metadata.uid) = (Some("a".to_owned()), Some("4".to_owned()));
        set_controller_ref(&mut object, &owner).unwrap();
    }
}
