//! The Kubernetes vocabulary that all klient crates share.
//!
//! Data and pure functions only: no sockets, no files, no async runtime.
//! Built-in kinds are `k8s-openapi`'s types, unchanged; this crate adds what is said *about* objects:
//! names of kinds, keys, options, selectors, statuses, and how a request for them looks on the wire.

mod field_path;
mod object_key;
mod resource;

mod api_resource;
mod dynamic;
mod gvk;
mod list;
mod options;
mod partial;
mod query;
mod resource_version;
mod status;
mod type_meta;
mod version_order;
mod watch_event;

pub use field_path::{FieldPath, ParseFieldPathError, PathSegment};
pub use object_key::{ObjectKey, ParseObjectKeyError};
pub use resource::{ClusterScope, DynamicScope, NamespaceScope, Resource, Scope};

pub use api_resource::{ApiResource, StaticScope};
pub use dynamic::{ConvertObjectError, DynamicObject};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, ParseGroupVersionError};
pub use list::List;
pub use options::{
    ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, FieldValidation, GetOptions,
    InvalidOptionError, ListOptions, PatchOptions, Preconditions, PropagationPolicy, UpdateOptions, WatchOptions,
};
pub use partial::PartialObjectMeta;
pub use query::Query;
pub use resource_version::{ResourceVersion, VersionMatch};
pub use status::{Outcome, Status, StatusCause, StatusDetails, StatusReason};
pub use type_meta::TypeMeta;
pub use version_order::compare_versions;
pub use watch_event::{Bookmark, WatchEvent};
