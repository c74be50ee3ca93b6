//! One resource that a server offers, with all that it says about it.

use klient_core::{ApiResource, GroupVersionKind};

/// A resource that a server offers.
#[doc(alias = "APIResource")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedResource {
    /// Group, version, kind, plural and scope: what to make requests with.
    ///
    /// The kind is empty where a server offers only subresources of it, as servers of metrics do.
    pub resource: ApiResource,
    /// The kind of the objects, whose group and version may be others than those of the resource.
    pub response_kind: GroupVersionKind,
    /// The singular in lower case.
    pub singular: String,
    /// Short names for people: `deploy`.
    pub short_names: Vec<String>,
    /// Names of groups of resources that it belongs to: `all`.
    pub categories: Vec<String>,
    /// What can be done, in lower case: `get`, `deletecollection`.
    pub verbs: Vec<String>,
    /// What is under each object: `status`, `scale`.
    pub subresources: Vec<ServedSubresource>,
}

/// What is under each object of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedSubresource {
    /// The last part of the path: `scale`.
    pub name: String,
    /// The kind that requests are about: `autoscaling/v1, Kind=Scale`, or that of the resource for `status`.
    pub response_kind: GroupVersionKind,
    /// What can be done.
    pub verbs: Vec<String>,
}

impl ServedResource {
    /// Whether that can be done, as `list` or `patch`.
    #[doc(alias = "SupportsAllVerbs")]
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }

    /// Whether all of that can be done.
    #[doc(alias = "SupportsAllVerbs")]
    pub fn supports_all(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.supports(verb))
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&ServedSubresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether it belongs to that group of resources, as `all`.
    pub fn is_in_category(&self, category: &str) -> bool {
        self.categories.iter().any(|own| own == category)
    }

    /// Whether there are objects, and not only subresources of some.
    pub(in crate::client) fn has_objects(&self) -> bool {
        !self.resource.kind.is_empty()
    }
}

impl ServedSubresource {
    /// Whether that can be done.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}
