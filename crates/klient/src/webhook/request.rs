//! The request that a handler receives.

use k8s_openapi::api::authentication::v1::UserInfo;
use klient_core::{GroupVersionKind, GroupVersionResource};
use serde_json::Value;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object is changed, by an update, a patch or an apply.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection to an object is opened: exec, attach, port-forward or a proxy.
    Connect,
}

/// A request of a client to the API server, which a webhook decides about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<K> {
    /// The identifier of this review.
    pub uid: String,
    /// The operation.
    pub operation: Operation,
    /// The new object; absent for a delete. For a connection, it holds the options.
    pub object: Option<K>,
    /// The stored object; absent for a create.
    pub old_object: Option<K>,
    /// The object's name; empty if the server generates it later.
    pub name: String,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// The kind of the objects.
    pub kind: GroupVersionKind,
    /// The resource.
    pub resource: GroupVersionResource,
    /// The kind in the version of the client's request, if the server converted the objects.
    pub requested_kind: Option<GroupVersionKind>,
    /// The sender of the request.
    pub user: UserInfo,
    /// Whether nothing will be stored. A handler must then have no side effects.
    pub dry_run: bool,
    /// The options of the request: `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: Value,
}

impl Operation {
    /// Returns the name in rules and reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect].into_iter().find(|known| known.as_str() == name)
    }
}
