//! The type fields of an object: the `apiVersion` and `kind` beside its metadata.
//!
//! Items of a typed list do not contain them, so that types with type fields have an `Option<TypeMeta>`.

use serde::{Deserialize, Serialize};

use crate::{GroupVersion, GroupVersionKind, ParseGroupVersionError, gvk::api_version};

/// The `apiVersion` and `kind` of an object; either may be empty, which is the same as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeMeta {
    /// `group/version`, or `v1` for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The kind, in camel case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

impl TypeMeta {
    /// Creates type fields from their text in an object.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// Returns the type fields of objects of this type.
    pub fn of<K: k8s_openapi::Resource>() -> Self {
        Self::new(K::API_VERSION, K::KIND)
    }

    /// Returns the type fields of a list of this type: `PodList`, or `v1 List` if the type does not know its kind.
    pub fn list_of<K: k8s_openapi::Resource>() -> Self {
        if K::KIND.is_empty() {
            return Self::new("v1", "List");
        }
        Self::new(K::API_VERSION, format!("{}List", K::KIND))
    }

    /// Returns the kind, split into group, version and kind.
    ///
    /// # Errors
    ///
    /// Returns an error if `api_version` is not `version` or `group/version`.
    pub fn gvk(&self) -> Result<GroupVersionKind, ParseGroupVersionError> {
        Ok(self.api_version.parse::<GroupVersion>()?.with_kind(self.kind.clone()))
    }
}

impl From<&GroupVersionKind> for TypeMeta {
    fn from(gvk: &GroupVersionKind) -> Self {
        Self::new(api_version(&gvk.group, &gvk.version), gvk.kind.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::DynamicObject;

    #[test]
    fn type_meta_names_types_and_their_lists() {
        assert_eq!(TypeMeta::of::<Deployment>(), TypeMeta::new("apps/v1", "Deployment"));
        assert_eq!(TypeMeta::list_of::<Deployment>(), TypeMeta::new("apps/v1", "DeploymentList"));
        assert_eq!(TypeMeta::list_of::<DynamicObject>(), TypeMeta::new("v1", "List"));
        assert_eq!(TypeMeta::from(&GroupVersionKind::of::<Deployment>()), TypeMeta::of::<Deployment>());
    }
}
