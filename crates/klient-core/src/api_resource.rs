//! A served resource as a value: the parts of a request path and of an object's type fields.
//!
//! It contains exactly the parts that identify a resource; verbs, short names and categories belong to discovery.
//! It is built from a type's constants, by hand, or by discovery. In client-go: `meta.RESTMapping`.

use std::borrow::Cow;

use crate::{
    ClusterScope, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, NamespaceScope, Scope, TypeMeta,
    gvk::api_version,
};

/// A resource that a server serves: group, version, kind, plural and scope.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient_core::{ApiResource, GroupVersionKind, Scope};
///
/// let deployments = ApiResource::of::<Deployment>();
/// assert_eq!((&*deployments.plural, deployments.scope), ("deployments", Scope::Namespaced));
///
/// let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Cluster);
/// assert_eq!(widgets.group_resource().to_string(), "widgets.example.com");
/// ```
#[doc(alias = "RESTMapping")]
#[doc(alias = "APIResource")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ApiResource {
    /// The group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version.
    pub version: Cow<'static, str>,
    /// The kind of the objects, in camel case.
    pub kind: Cow<'static, str>,
    /// The plural in lower case, as in paths.
    pub plural: Cow<'static, str>,
    /// Whether objects are namespaced.
    pub scope: Scope,
}

impl ApiResource {
    /// Creates the resource with that plural which serves that kind.
    pub fn new(gvk: GroupVersionKind, plural: impl Into<Cow<'static, str>>, scope: Scope) -> Self {
        Self { group: gvk.group, version: gvk.version, kind: gvk.kind, plural: plural.into(), scope }
    }

    /// Returns the resource that serves a type, from the type's constants.
    pub fn of<K: k8s_openapi::Resource<Scope: StaticScope>>() -> Self {
        Self::new(GroupVersionKind::of::<K>(), K::URL_PATH_SEGMENT, K::Scope::SCOPE)
    }

    /// Returns the kind of the objects.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }

    /// Returns the name of the resource, with its version.
    pub fn gvr(&self) -> GroupVersionResource {
        self.group_version().with_resource(self.plural.clone())
    }

    /// Returns the group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Returns the name of the resource as in error messages: `deployments.apps`.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.plural.clone() }
    }

    /// Returns the `apiVersion` that objects carry.
    pub fn api_version(&self) -> Cow<'_, str> {
        api_version(&self.group, &self.version)
    }

    /// Returns the `apiVersion` and `kind` that objects carry.
    pub fn types(&self) -> TypeMeta {
        TypeMeta::new(self.api_version(), self.kind.as_ref())
    }

    /// Returns whether objects are namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// A scope that is known at compile time, so not that of [`DynamicObject`](crate::DynamicObject) or of a subresource.
pub trait StaticScope: sealed::Sealed {
    /// The scope as a value.
    const SCOPE: Scope;
}

impl StaticScope for ClusterScope {
    const SCOPE: Scope = Scope::Cluster;
}

impl StaticScope for NamespaceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::ClusterScope {}
    impl Sealed for crate::NamespaceScope {}
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        core::v1::{Node, Pod},
        networking::v1::Ingress,
    };

    use super::*;

    #[test]
    fn api_resource_has_group_version_plural_and_scope() {
        let check = |resource: ApiResource, gvr: &str, api_version: &str, scope: Scope| {
            assert_eq!(resource.gvr().to_string(), gvr);
            assert_eq!(resource.api_version(), api_version);
            assert_eq!(resource.scope, scope);
            assert_eq!(resource.types().gvk(), Ok(resource.gvk()));
        };
        check(ApiResource::of::<Pod>(), "/v1, Resource=pods", "v1", Scope::Namespaced);
        check(ApiResource::of::<Node>(), "/v1, Resource=nodes", "v1", Scope::Cluster);
        check(
            ApiResource::of::<Ingress>(),
            "networking.k8s.io/v1, Resource=ingresses",
            "networking.k8s.io/v1",
            Scope::Namespaced,
        );
    }
}
