//! The Kubernetes vocabulary that all klient crates share.
//!
//! Data and pure functions only: no sockets, no files, no async runtime.
//! Built-in kinds are `k8s-openapi`'s types, unchanged; this crate adds what is said *about* objects:
//! names of kinds, keys, options, selectors, statuses, and how a request for them looks on the wire.

mod field_path;
mod object_key;
mod resource;

mod label_syntax;
mod quantity;
mod selector;

pub use field_path::{FieldPath, ParseFieldPathError, PathSegment};
pub use object_key::{ObjectKey, ParseObjectKeyError};
pub use resource::{ClusterScope, DynamicScope, NamespaceScope, Resource, Scope};

pub use label_syntax::{LabelSyntaxError, validate_label_key, validate_label_value};
pub use quantity::{ParseQuantityError, Quantity, QuantityFormat};
pub use selector::{
    FieldOperator, FieldRequirement, FieldSelector, InvalidSelectorError, LabelOperator, LabelRequirement,
    LabelSelector, ParseFieldSelectorError, ParseLabelSelectorError, UnrepresentableSelectorError,
};
