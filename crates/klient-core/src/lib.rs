//! The Kubernetes vocabulary that all klient crates share.
//!
//! Data and pure functions only: no sockets, no files, no async runtime.
//! Built-in kinds are `k8s-openapi`'s types, unchanged; this crate adds what is said *about* objects:
//! names of kinds, keys, options, selectors, statuses, and how a request for them looks on the wire.

mod field_path;
mod object_key;
mod resource;

mod int_or_string;
mod label_syntax;
mod quantity;
mod selector;
mod time;

pub use field_path::{FieldPath, ParseFieldPathError, PathSegment};
pub use object_key::{ObjectKey, ParseObjectKeyError};
pub use resource::{ClusterScope, DynamicScope, NamespaceScope, Resource, Scope};

pub use int_or_string::{IntOrStringExt, PercentError, Rounding};
pub use label_syntax::{LabelSyntaxError, validate_label_key, validate_label_value};
pub use quantity::{ParseQuantityError, Quantity, QuantityFormat};
pub use selector::{
    FieldOperator, FieldRequirement, FieldSelector, InvalidSelectorError, LabelOperator, LabelRequirement,
    LabelSelector, ParseFieldSelectorError, ParseLabelSelectorError, UnrepresentableSelectorError,
};
pub use time::{
    DurationRangeError, GoDuration, ParseGoDurationError, ParseTimeError, age, format_micro_time, format_time,
    human_duration, parse_micro_time, parse_time, short_human_duration,
};
