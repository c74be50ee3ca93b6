//! Where the objects of a request are: in a namespace, in all of them, or outside.

use super::{BuildRequestError, Verb, error::Problem};
use crate::{ApiResource, Scope};

/// Where the objects of a request are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// Exhaustive on purpose: there is nowhere else.
pub enum Target {
    /// In any namespace: for lists and watches. The same as `Cluster` for a kind that has no namespaces.
    AllNamespaces,
    /// In this namespace.
    Namespace(String),
    /// Outside namespaces.
    Cluster,
}

impl Target {
    /// In this namespace; in all of them if it is empty, as in client-go.
    ///
    /// ```
    /// use klient_core::Target;
    ///
    /// assert_eq!(Target::in_namespace("shop"), Target::Namespace("shop".to_owned()));
    /// assert_eq!(Target::in_namespace(""), Target::AllNamespaces);
    /// ```
    #[doc(alias = "NamespaceAll")]
    pub fn in_namespace(namespace: &str) -> Self {
        if namespace.is_empty() { Self::AllNamespaces } else { Self::Namespace(namespace.to_owned()) }
    }

    /// The namespace that belongs in the path of a request, if any does.
    pub(super) fn namespace_for<'a>(
        &'a self,
        resource: &ApiResource,
        verb: Verb,
        named: bool,
    ) -> Result<Option<&'a str>, BuildRequestError> {
        let fail = |why| Err(Problem::Scope { resource: resource.group_resource(), verb, why }.into());
        match (resource.scope, self) {
            (Scope::Cluster, Self::Cluster | Self::AllNamespaces) => Ok(None),
            (Scope::Cluster, Self::Namespace(_)) => fail("the kind is cluster-scoped, but a namespace is given"),
            (Scope::Namespaced, Self::Namespace(namespace)) => Ok(Some(namespace)),
            (Scope::Namespaced, Self::Cluster) => fail("the kind is namespaced, but no namespace is given"),
            (Scope::Namespaced, Self::AllNamespaces) if named => {
                fail("an object is named, but not the namespace it is in")
            }
            (Scope::Namespaced, Self::AllNamespaces) => match verb {
                Verb::List | Verb::Watch => Ok(None),
                _ => fail("only lists and watches work across all namespaces"),
            },
        }
    }
}
