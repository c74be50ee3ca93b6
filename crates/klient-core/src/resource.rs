//! The trait bound of Kubernetes types, and the scopes that make wrong paths fail to compile.
//!
//! [`Resource`] is never implemented by hand: it holds for every type with `k8s-openapi`'s traits and serde's.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

/// The scope of cluster-scoped kinds, such as `Node`.
pub use k8s_openapi::ClusterResourceScope as ClusterScope;
/// The scope of namespaced kinds, such as `Pod`.
pub use k8s_openapi::NamespaceResourceScope as NamespaceScope;

/// A Kubernetes object type, over which `Api<K>`, informers and controllers are generic.
///
/// Every `k8s-openapi` kind with metadata implements it, and so does every custom type that implements
/// `k8s_openapi::Resource`, `k8s_openapi::Metadata<Ty = ObjectMeta>` and serde's traits.
///
/// ```
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use klient_core::{NamespaceScope, Resource};
///
/// fn needs_a_namespace<K: Resource<Scope = NamespaceScope>>() {}
/// needs_a_namespace::<Pod>();
/// ```
///
/// A cluster-scoped kind cannot be requested in a namespace:
///
/// ```compile_fail
/// # use k8s_openapi::api::core::v1::Node;
/// # use klient_core::{NamespaceScope, Resource};
/// # fn needs_a_namespace<K: Resource<Scope = NamespaceScope>>() {}
/// needs_a_namespace::<Node>();
/// ```
pub trait Resource:
    k8s_openapi::Resource
    + k8s_openapi::Metadata<Ty = ObjectMeta>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Resource for K where
    K: k8s_openapi::Resource
        + k8s_openapi::Metadata<Ty = ObjectMeta>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// The scope of kinds known only at run time: the [`ApiResource`](crate::ApiResource) value has it.
#[derive(Debug)]
pub struct DynamicScope {}

impl k8s_openapi::ResourceScope for DynamicScope {}

/// Whether objects of a kind are namespaced, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Cluster-scoped.
    Cluster,
    /// Namespaced.
    Namespaced,
}
