//! The vocabulary of `klient-core`, one module for each subject.

/// Kinds and resources: what they are called, where their objects live, and in which scope.
pub mod resource {
    #[doc(inline)]
    pub use klient_core::{
        ApiResource, ClusterScope, DynamicScope, GroupKind, GroupResource, GroupVersion, GroupVersionKind,
        GroupVersionResource, NamespaceScope, ParseGroupVersionError, Scope, StaticScope, TypeMeta, compare_versions,
    };
}

/// Objects of any kind: dynamic objects, metadata only, lists, references and versions.
pub mod object {
    #[doc(inline)]
    pub use klient_core::{
        Bookmark, ConvertObjectError, DynamicObject, List, ObjectRef, ParseObjectKeyError, ParseObjectRefError,
        PartialObjectMeta, ResourceVersion, VersionMatch,
    };
}

/// Options of requests, one struct for each verb.
pub mod options {
    #[doc(inline)]
    pub use klient_core::{
        ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, FieldValidation, GetOptions,
        InvalidOptionError, ListOptions, LogOptions, PatchOptions, Preconditions, PropagationPolicy, UpdateOptions,
        WatchOptions,
    };
}

/// Label and field selectors, and the syntax of labels.
pub mod selector {
    #[doc(inline)]
    pub use klient_core::{
        FieldOperator, FieldRequirement, FieldSelector, InvalidSelectorError, LabelOperator, LabelRequirement,
        LabelSelector, LabelSyntaxError, ParseFieldSelectorError, ParseLabelSelectorError,
        UnrepresentableSelectorError, validate_label_key, validate_label_value,
    };
}

/// Paths to a field of an object, such as `spec.nodeName`.
pub mod field_path {
    #[doc(inline)]
    pub use klient_core::{FieldPath, ParseFieldPathError, PathSegment};
}

/// Parts of a [`Patch`](crate::Patch): JSON patch operations and pointers.
pub mod patch {
    #[doc(inline)]
    pub use klient_core::{EncodePatchError, JsonPatchOperation, JsonPointer, ParseJsonPointerError, PatchKind};
}

/// Owner references.
pub mod owner {
    #[doc(inline)]
    pub use klient_core::{
        OwnerRefError, SetOwnerError, controller_of, controller_owner_ref, is_controlled_by, is_owner_of_kind,
        owner_ref, set_controller_ref,
    };
}

/// Quantities of resources, such as `500m` and `2Gi`.
pub mod quantity {
    #[doc(inline)]
    pub use klient_core::{ParseQuantityError, Quantity, QuantityFormat};
}

/// Values that are a number or a percentage, such as `maxUnavailable`.
pub mod int_or_string {
    #[doc(inline)]
    pub use klient_core::{IntOrStringExt, PercentError, Rounding};
}

/// Times, durations and ages as Kubernetes writes them.
pub mod time {
    #[doc(inline)]
    pub use klient_core::{
        DurationRangeError, GoDuration, ParseGoDurationError, ParseTimeError, age, format_micro_time, format_time,
        human_duration, parse_micro_time, parse_time, short_human_duration,
    };
}

/// The `Status` that a server responds with.
pub mod status {
    #[doc(inline)]
    pub use klient_core::{FieldConflict, Status, StatusCause, StatusDetails, StatusOutcome, StatusReason};
}

/// Configurations for server-side apply: partial objects, in which an absent field is not applied.
///
/// [`#[derive(Apply)]`](derive@crate::Apply) generates those of your own kinds; the crate `klient-apply` has those of built-in kinds.
///
/// ```
/// use klient::{Apply, KubeSchema};
///
/// #[derive(Apply, KubeSchema, serde::Serialize)]
/// struct Rooms {
///     #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
///     rooms: Vec<Room>,
/// }
///
/// #[derive(Apply, serde::Serialize, schemars::JsonSchema)]
/// struct Room {
///     name: String,
///     color: Option<String>,
/// }
///
/// let rooms = RoomsApply::new().room("hall", |room| room.color("blue"));
/// assert_eq!(rooms.to_value().to_string(), r#"{"rooms":[{"color":"blue","name":"hall"}]}"#);
/// ```
///
/// These do not compile. An item needs its key:
///
/// ```compile_fail
/// # use klient::{Apply, KubeSchema};
/// # #[derive(Apply, KubeSchema, serde::Serialize)]
/// # struct Rooms { #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))] rooms: Vec<Room> }
/// # #[derive(Apply, serde::Serialize, schemars::JsonSchema)]
/// # struct Room { name: String, color: Option<String> }
/// RoomsApply::new().room(|room| room.color("blue"));
/// ```
///
/// The key must be a field of the items:
///
/// ```compile_fail
/// # use klient::{Apply, KubeSchema};
/// # #[derive(Apply, serde::Serialize, schemars::JsonSchema)]
/// # struct Room { name: String, color: Option<String> }
/// #[derive(Apply, KubeSchema, serde::Serialize)]
/// struct Rooms {
///     #[x_kube(merge_strategy = ListMerge::Map(vec!["nam".into()]))]
///     rooms: Vec<Room>,
/// }
/// ```
///
/// A part must derive `Apply`, or be marked with `#[apply(value)]`:
///
/// ```compile_fail
/// # use klient::Apply;
/// # #[derive(serde::Serialize)]
/// # struct Room { name: String }
/// #[derive(Apply, serde::Serialize)]
/// struct House {
///     hall: Room,
/// }
/// ```
///
/// Merge strategies need `KubeSchema`, which writes them to the schema:
///
/// ```compile_fail
/// # use klient::Apply;
/// #[derive(Apply, serde::Serialize, schemars::JsonSchema)]
/// struct Rooms {
///     #[x_kube(merge_strategy = ListMerge::Set)]
///     names: Vec<String>,
/// }
/// ```
pub mod apply {
    #[doc(inline)]
    pub use klient_core::apply::{
        Apply, Configuration, ExtractError, Fields, annotations, extract, finalizers, identity, labels, owner,
    };
    #[doc(hidden)]
    pub use klient_core::apply::{KeyField, Value, to_value};
}

/// The owners of fields: sets of field paths, and what a manager applied to an object.
pub mod fields {
    #[doc(inline)]
    pub use klient_core::fields::{
        ExtractError, FieldSet, ParseFieldSetError, Path, PathElement, extract, is_applied, migrate_to_apply,
    };
}

/// Requests as values: a verb, a resource and options in, an `http::Request` out.
pub mod request {
    #[doc(inline)]
    pub use klient_core::{BuildRequestError, Query, RequestBuilder, Target, Verb, media_type, subresource};
}
