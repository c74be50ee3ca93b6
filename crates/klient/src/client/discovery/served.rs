//! One resource of a server, with everything that discovery reports about it.

use klient_core::{ApiResource, GroupVersionKind};

/// A resource that a server serves.
#[doc(alias = "APIResource")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedResource {
    /// The group, version, kind, plural and scope that requests need.
    ///
    /// The kind is empty if a server serves only subresources of it, as metrics servers do.
    pub resource: ApiResource,
    /// The kind of the objects. Its group and version may differ from those of the resource.
    pub response_kind: GroupVersionKind,
    /// The singular name in lower case.
    pub singular: String,
    /// Short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Categories that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Supported verbs in lower case, such as `get` and `deletecollection`.
    pub verbs: Vec<String>,
    /// Subresources, such as `status` and `scale`.
    pub subresources: Vec<ServedSubresource>,
}

/// A subresource of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedSubresource {
    /// The last segment of the path, such as `scale`.
    pub name: String,
    /// The kind of its requests: `autoscaling/v1, Kind=Scale`, or that of the resource for `status`.
    pub response_kind: GroupVersionKind,
    /// Supported verbs.
    pub verbs: Vec<String>,
}

impl ServedResource {
    /// Returns whether a verb such as `list` or `patch` is supported.
    #[doc(alias = "SupportsAllVerbs")]
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }

    /// Returns whether all these verbs are supported.
    #[doc(alias = "SupportsAllVerbs")]
    pub fn supports_all(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.supports(verb))
    }

    /// Returns the subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&ServedSubresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Returns whether it belongs to a category such as `all`.
    pub fn is_in_category(&self, category: &str) -> bool {
        self.categories.iter().any(|own| own == category)
    }

    /// Returns whether the resource itself is served, and not only its subresources.
    pub(in crate::client) fn has_objects(&self) -> bool {
        !self.resource.kind.is_empty()
    }
}

impl ServedSubresource {
    /// Returns whether a verb is supported.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}
