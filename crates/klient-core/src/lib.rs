//! The Kubernetes types that all klient crates share.
//!
//! It contains data and pure functions only: no sockets, no files, no async runtime.
//! Built-in kinds are `k8s-openapi`'s types, unchanged. This crate adds names of kinds, keys, options, selectors,
//! statuses, and the requests for objects.

mod api_resource;
pub mod apply;
mod dynamic;
mod field_path;
pub mod fields;
mod gvk;
mod int_or_string;
mod json_pointer;
mod label_syntax;
mod list;
pub mod media_type;
#[doc(hidden)]
pub mod names;
mod object_key;
mod object_ref;
mod options;
mod owner;
mod partial;
mod patch;
mod quantity;
mod query;
mod quoted;
mod request;
mod resource;
mod resource_ext;
mod resource_version;
pub mod rule_cost;
mod selector;
mod status;
mod time;
mod type_meta;
mod version_order;
mod watch_event;

pub use api_resource::{ApiResource, StaticScope};
pub use dynamic::{ConvertObjectError, DynamicObject};
pub use field_path::{FieldPath, ParseFieldPathError, PathSegment};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, ParseGroupVersionError};
pub use int_or_string::{IntOrStringExt, PercentError, Rounding};
pub use json_pointer::{JsonPointer, ParseJsonPointerError};
pub use label_syntax::{LabelSyntaxError, validate_label_key, validate_label_value};
pub use list::List;
pub use object_key::{ObjectKey, ParseObjectKeyError};
pub use object_ref::{ObjectRef, ParseObjectRefError};
pub use options::{
    ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, FieldValidation, GetOptions,
    InvalidOptionError, ListOptions, LogOptions, PatchOptions, Preconditions, PropagationPolicy, UpdateOptions,
    WatchOptions,
};
pub use owner::{
    OwnerRefError, SetOwnerError, controller_of, controller_owner_ref, is_controlled_by, is_owner_of_kind, owner_ref,
    set_controller_ref,
};
pub use partial::PartialObjectMeta;
pub use patch::{EncodePatchError, JsonPatchOperation, Patch, PatchKind};
pub use quantity::{ParseQuantityError, Quantity, QuantityFormat};
pub use query::Query;
pub use quoted::Quoted;
pub use request::{BuildRequestError, RequestBuilder, Target, Verb, subresource};
pub use resource::{ClusterScope, DynamicScope, NamespaceScope, Resource, Scope};
pub use resource_ext::ResourceExt;
pub use resource_version::{ResourceVersion, VersionMatch};
pub use selector::{
    FieldOperator, FieldRequirement, FieldSelector, InvalidSelectorError, LabelOperator, LabelRequirement,
    LabelSelector, ParseFieldSelectorError, ParseLabelSelectorError, UnrepresentableSelectorError,
};
pub use status::{FieldConflict, Status, StatusCause, StatusDetails, StatusOutcome, StatusReason};
pub use time::{
    DurationRangeError, GoDuration, ParseGoDurationError, ParseTimeError, age, format_micro_time, format_time,
    human_duration, parse_micro_time, parse_time, short_human_duration,
};
pub use type_meta::TypeMeta;
pub use version_order::compare_versions;
pub use watch_event::{Bookmark, WatchEvent};
