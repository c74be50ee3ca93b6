//! The one bound that klient puts on a Kubernetes type, and the scopes that make wrong paths fail to compile.
//!
//! Nobody implements [`Resource`]: it holds for every type with `k8s-openapi`'s traits and serde's.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

/// Scope of kinds that live outside namespaces, such as `Node`.
pub use k8s_openapi::ClusterResourceScope as ClusterScope;
/// Scope of kinds that live in namespaces, such as `Pod`.
pub use k8s_openapi::NamespaceResourceScope as NamespaceScope;

/// A Kubernetes object type: what `Api<K>`, informers and controllers are generic over.
///
/// Every `k8s-openapi` kind with metadata has it, and so does every type of yours that implements
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
/// A cluster-scoped kind cannot be asked for in a namespace:
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

/// Scope of kinds known only at run time: the [`ApiResource`](crate::ApiResource) value says which it is.
#[derive(Debug)]
pub struct DynamicScope {}

impl k8s_openapi::ResourceScope for DynamicScope {}

/// Whether objects of a kind live in a namespace; the run-time form of the scope types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Outside namespaces.
    Cluster,
    /// In a namespace.
    Namespaced,
}
