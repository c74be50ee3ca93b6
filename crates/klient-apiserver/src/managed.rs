//! Managed fields: which field manager owns which fields of an object, and server-side apply.
//!
//! Every write goes through `update` or `apply` before the hooks of its kind run, so that what the server
//! fills in has no owner.
//! The algebra is in `klient_core::fields`. Here are its inputs: schemas of kinds, the entries in `metadata.managedFields`, the
//! fields that each endpoint ignores, and conversions between versions.

mod apply;
mod cap;
mod entries;
mod last_applied;
mod reset;
mod scale;
mod schema;
pub(crate) mod text;
mod update;
mod versions;
mod zero;

use serde_json::{Value, json};

use crate::conversion::Pending;

pub(crate) use self::{
    apply::{Applied, Configuration, apply, check_kind, merged},
    entries::{is_same_besides_entries, restore_times},
    scale::Replicas,
    schema::{SchemaOf, custom as custom_schema},
    update::update,
    zero::zero_object,
};

/// The origin of a write.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// The name of the field manager.
    pub(crate) manager: String,
    /// The subresource that was written, or an empty string.
    pub(crate) subresource: String,
    /// The time of the write, as entries show it.
    pub(crate) time: String,
    /// The conversions that the owners of fields in other versions need.
    pub(crate) conversions: Pending,
}

impl Writer {
    /// Returns the origin of what the server writes by itself.
    pub(crate) fn server(subresource: &str, now: jiff::Timestamp) -> Self {
        let time = crate::metadata::time(now);
        Self {
            manager: "kube-apiserver".to_owned(),
            subresource: subresource.to_owned(),
            time,
            conversions: Pending::default(),
        }
    }
}

/// Sets the entries of an object.
pub(crate) fn set_entries(object: &mut Value, entries: Option<Value>) {
    let metadata = crate::metadata::of(object);
    match entries {
        Some(entries) => drop(metadata.insert("managedFields".to_owned(), entries)),
        None => drop(metadata.remove("managedFields")),
    }
}

/// Returns whether the entries of an object can be read.
pub(crate) fn is_valid(object: &Value) -> bool {
    let entries = &object["metadata"]["managedFields"];
    entries.is_null() || entries::Managed::decode(entries).is_ok()
}

/// Removes the entries of an object, and returns them.
pub(crate) fn take_entries(object: &mut Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or(json!(null))
}
