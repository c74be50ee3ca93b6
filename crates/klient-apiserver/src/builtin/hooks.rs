//! Hooks: the behaviour in which a built-in kind differs from all others.
//!
//! A [`Resource`] carries the hooks of its kind, so that handlers call `resource.hooks` and never compare
//! names of kinds. The table of all kinds that have hooks is `kinds`.

use std::{pin::Pin, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Collector, warnings::Told};
use crate::{Result, access::User, call::Call, causes::Causes, registry::Resource, server::Core, store::Change};

/// A write that hooks take part in.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    pub(crate) core: &'a Core,
    pub(crate) dry_run: bool,
}

/// The behaviour of one kind. [`Hooks::NONE`] is that of most built-in kinds, and [`Hooks::CUSTOM`] that of custom ones.
#[expect(clippy::struct_excessive_bools, reason = "each is one independent rule")]
pub(crate) struct Hooks {
    /// Fills in defaults that depend on other fields. Plain defaults are in `defaults.json`.
    pub(crate) defaults: Option<fn(&mut Value)>,
    /// Completes a new object before it is validated, as admission does on a real server.
    pub(crate) before_create: Option<BeforeCreate>,
    /// Completes a new object after `before_create`. Adds warnings, which are sent even if the object is invalid.
    pub(crate) on_create: Option<OnCreate>,
    /// Completes a new object that has its UID.
    pub(crate) with_uid: fn(&mut Value),
    /// Completes a changed object before it is validated. The last argument is the stored object.
    pub(crate) before_update: fn(Writing<'_>, &mut Value, &Value) -> Result<()>,
    /// Removes fields of disabled features before an object is validated.
    pub(crate) drop_disabled: fn(&mut Value),
    /// Returns the status of a new object, given the time. Without it, the status stays as it was sent.
    pub(crate) new_status: Option<fn(&Value, &str) -> Value>,
    /// Writes who created a new object into it.
    pub(crate) set_user: fn(&mut Value, &User),
    /// Completes a new status. The other arguments are the stored object and the time.
    pub(crate) on_status: fn(&mut Value, &Value, &str),
    /// Completes a new approval. The other arguments are the stored object and the time.
    pub(crate) on_approval: fn(&mut Value, &Value, &str),
    /// JSON pointers of fields that are null in responses where they have no value.
    pub(crate) null_fields: &'static [&'static str],
    /// Sets nulls that a pointer cannot name.
    pub(crate) set_nulls: fn(&mut Value),
    /// Reports invalid fields besides metadata.
    pub(crate) validate: fn(&Value, Option<&Value>, &mut Causes),
    /// Reports invalid fields of a status. The last value is the stored object.
    pub(crate) validate_status: fn(&Value, &Value, &mut Causes),
    /// Reports invalid fields of a write to another subresource, which is named first.
    pub(crate) validate_part: fn(&str, &Value, &Value, &mut Causes),
    /// The group that validation errors name, if it is not the resource's own.
    pub(crate) validation_group: Option<&'static str>,
    /// Adds warnings about an object that is valid. The second value is the stored object in an update.
    pub(crate) warnings: Option<Warn>,
    /// Adds warnings about a status that is valid.
    pub(crate) status_warnings: Option<Warn>,
    /// A warning that every response about this kind carries.
    pub(crate) deprecation: Option<&'static str>,
    /// How a POST to the collection is handled.
    pub(crate) posted: Posted,
    /// Returns all objects of a kind that is not stored.
    pub(crate) computed: Option<fn() -> Vec<Value>>,
    /// Refuses to delete an object. The delete of a collection does not call it.
    pub(crate) before_delete: fn(&Resource, &Value) -> Result<()>,
    /// Returns the seconds that an object stays after a delete, given those that the request asks for.
    pub(crate) grace_period: fn(&Value, Option<i64>) -> i64,
    /// Whether a delete without grace period or finalizers first stores the object with a deletion timestamp.
    pub(crate) marks_before_delete: bool,
    /// Returns whether an object without finalizers can be removed.
    pub(crate) is_removable: fn(&Value) -> bool,
    /// Changes an object when its deletion begins.
    pub(crate) on_deletion: fn(&mut Value),
    /// Continues a deletion that the last run of the server began. The argument is the object's key.
    pub(crate) resume_deletion: fn(&Collector, &str),
    /// Acts on a committed change.
    pub(crate) after_change: Option<AfterChange>,
    /// Converts a stored object of another version to this resource's version.
    pub(crate) convert: Option<fn(&mut Value)>,
    /// The version in which objects are validated and stored, and the conversion to it. Without it, that is the version of the writer.
    pub(crate) stored_as: Option<StoredAs>,
    /// Removes what a decoded object of the stored version has of another version.
    pub(crate) settle: Option<fn(&mut Value)>,
    /// Fields that lists and watches can select by, besides name and namespace.
    pub(crate) selectable: &'static [&'static str],
    /// Returns one cell of a table, for columns that are not the same for all kinds.
    pub(crate) cell: fn(&Value, &str, Timestamp) -> Option<Value>,
    /// Returns a condition of an object's table row.
    pub(crate) row_condition: fn(&Value) -> Option<Value>,
    /// Changes the metadata that table rows carry.
    pub(crate) row_metadata: fn(&mut Value),
    /// The rule for names.
    pub(crate) names: NameRule,
    /// Whether an update validates the prefix of generated names by the rule for names, after the rest of the metadata. Some kinds do so
    /// in `validate` instead.
    pub(crate) checks_prefix_again: bool,
    /// Whether finalizers must be known or have a domain.
    pub(crate) checks_finalizers: bool,
    /// Whether the metadata of a new object is validated only if the rest of the object is valid.
    pub(crate) metadata_last: bool,
    /// Whether an update creates a missing object.
    pub(crate) create_on_update: bool,
    /// Whether an update without a resource version overwrites the stored object.
    pub(crate) unconditional_update: bool,
    /// Whether a delete without a propagation policy orphans dependents.
    pub(crate) orphans_dependents: bool,
    /// A warning about a delete without a propagation policy.
    pub(crate) delete_warning: Option<&'static str>,
    /// Whether the response to a delete is the object and not a status.
    pub(crate) delete_returns_object: bool,
    /// Whether `metadata.generation` counts changes of the desired state. If this is `None`, kinds with a `spec` have generations.
    pub(crate) has_generation: Option<bool>,
    /// The metadata whose changes count as new generations.
    pub(crate) generation_counts: &'static [&'static str],
    /// Whether the generation stays what it is.
    pub(crate) keeps_generation: bool,
    /// The fields that writes to the object do not change. If this is `None`, kinds with a subresource `status` have the status here.
    pub(crate) reset_fields: Option<&'static [&'static str]>,
    /// The fields that writes to the status do not change, and so do not own.
    pub(crate) status_reset_fields: &'static [&'static str],
    /// The name of the table in the store, if it is not the kind's own.
    pub(crate) table: Option<&'static str>,
    /// The path below `/registry` in error messages, if it is not the plural.
    pub(crate) storage_path: Option<&'static str>,
}

/// The rule for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower case letters, digits, `-` and `.`: up to 253 characters.
    Subdomain,
    /// Lower case letters, digits and `-`: up to 63 characters.
    Label,
    /// Any segment of a path. The prefix of generated names may be the beginning of one.
    PathSegment,
    /// Any segment of a path. The prefix of generated names must be one, too.
    WholeSegment,
}

/// The handling of a POST to a collection.
#[derive(Clone, Copy)]
pub(crate) enum Posted {
    /// The object is stored.
    Stored,
    /// The object is a review. The function sets its status, and nothing is stored.
    Review(fn(&Core, &Call, &mut Value) -> Result<()>),
    /// The object binds a pod to a node.
    Binding,
}

/// The version of a kind in which its objects are validated and stored.
#[derive(Clone, Copy)]
pub(crate) struct StoredAs {
    pub(crate) version: &'static str,
    pub(crate) convert: fn(&mut Value),
}

/// A function that adds warnings about a valid object, given the stored one in an update.
pub(crate) type Warn = fn(&Value, Option<&Value>, &mut Told);

/// A function that completes a new object.
pub(crate) type BeforeCreate = fn(Writing<'_>, &mut Value) -> Result<()>;

/// A function that completes a new object, and adds warnings about it.
pub(crate) type OnCreate = fn(&mut Value, &mut Vec<String>);

/// A function that acts on a committed change.
pub(crate) type AfterChange =
    for<'a> fn(&'a Arc<Core>, &'a Arc<Change>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl Hooks {
    /// The behaviour of kinds that have no hooks.
    pub(crate) const NONE: Self = Self {
        defaults: None,
        before_create: None,
        on_create: None,
        with_uid: |_| {},
        before_update: |_, _, _| Ok(()),
        drop_disabled: |_| {},
        new_status: Some(|_, _| json!({})),
        set_user: |_, _| {},
        on_status: |_, _, _| {},
        on_approval: |_, _, _| {},
        null_fields: &[],
        set_nulls: |_| {},
        validate: |_, _, _| {},
        validate_status: |_, _, _| {},
        validate_part: |_, _, _, _| {},
        validation_group: None,
        warnings: None,
        status_warnings: None,
        deprecation: None,
        posted: Posted::Stored,
        computed: None,
        before_delete: |_, _| Ok(()),
        grace_period: |_, _| 0,
        marks_before_delete: false,
        is_removable: |_| true,
        on_deletion: |_| {},
        resume_deletion: |_, _| {},
        after_change: None,
        convert: None,
        stored_as: None,
        settle: None,
        selectable: &[],
        cell: |_, _, _| None,
        row_condition: |_| None,
        row_metadata: |_| {},
        names: NameRule::Subdomain,
        checks_prefix_again: false,
        checks_finalizers: true,
        metadata_last: false,
        create_on_update: false,
        unconditional_update: true,
        orphans_dependents: false,
        delete_warning: None,
        delete_returns_object: false,
        has_generation: None,
        generation_counts: &[],
        keeps_generation: false,
        reset_fields: None,
        status_reset_fields: &["spec"],
        table: None,
        storage_path: None,
    };

    /// The behaviour of custom kinds.
    pub(crate) const CUSTOM: Self = Self {
        unconditional_update: false,
        checks_finalizers: false,
        status_reset_fields: &["metadata", "spec"],
        ..Self::NONE
    };
}
