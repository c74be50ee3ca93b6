//! Configurations for server-side apply: partial objects, in which an absent field is not applied.
//!
//! `klient-apply` has the configurations of built-in kinds, and `#[derive(Apply)]` generates those of custom kinds. Both are
//! names for [`Fields`], with one method for each field. Invariant: a field that was not set is absent, and an item of a list
//! with keys has its keys.

mod configuration;
mod fields;
mod object;

pub use self::{
    configuration::{Apply, Configuration, KeyField},
    fields::Fields,
    object::{annotations, extract, finalizers, identity, labels, owner},
};
pub use crate::fields::ExtractError;

#[doc(hidden)]
pub use serde_json::Value;

/// Returns a value as JSON. Generated code calls it, so that crates of users need not depend on `serde_json`.
///
/// # Errors
///
/// Returns an error if the value cannot be serialized as JSON.
#[doc(hidden)]
pub fn to_value(value: &impl serde::Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(value)
}
