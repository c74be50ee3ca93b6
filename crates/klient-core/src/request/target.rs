//! The namespace of a request: one, all of them, or none.

use super::{BuildRequestError, Verb, error::Problem};
use crate::{ApiResource, Scope};

/// The namespace of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// Exhaustive on purpose: there are no other cases.
pub enum Target {
    /// All namespaces, for lists and watches. The same as `Cluster` for a cluster-scoped kind.
    AllNamespaces,
    /// This namespace.
    Namespace(String),
    /// No namespace, for cluster-scoped kinds.
    Cluster,
}

impl Target {
    /// Returns the target for a namespace, or for all namespaces if it is empty, as in client-go.
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

    /// Returns the namespace in the path of a request, if any.
    pub(super) fn namespace_for<'a>(
        &'a self,
        resource: &ApiResource,
        verb: Verb,
        named: bool,
    ) -> Result<Option<&'a str>, BuildRequestError> {
        let fail = |why| Err(Problem::Scope { resource: resource.group_resource(), verb, why }.into());
        match (resource.scope, self) {
            (Scope::Cluster, Self::Cluster | Self::AllNamespaces) => Ok(None),
            (Scope::Cluster, Self::Namespace(_)) => fail("the kind is cluster-scoped, but a namespace is set"),
            (Scope::Namespaced, Self::Namespace(namespace)) => Ok(Some(namespace)),
            (Scope::Namespaced, Self::Cluster) => fail("the kind is namespaced, but no namespace is set"),
            (Scope::Namespaced, Self::AllNamespaces) if named => fail("a name is set, but no namespace"),
            (Scope::Namespaced, Self::AllNamespaces) => match verb {
                Verb::List | Verb::Watch => Ok(None),
                _ => fail("only lists and watches work across all namespaces"),
            },
        }
    }
}
