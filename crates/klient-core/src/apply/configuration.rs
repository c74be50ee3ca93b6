//! The traits of configurations, and of the types that have one.

use serde::Serialize;
use serde_json::Value;

use super::Fields;

/// A partial object or part of one: fields that are not set are absent.
pub trait Configuration: Clone + Serialize + Sized {
    /// Returns a configuration of these fields.
    fn from_fields(fields: Fields) -> Self;

    /// Returns the fields.
    fn into_fields(self) -> Fields;

    /// Returns the fields as JSON. A field whose value cannot be serialized is absent.
    fn to_value(&self) -> Value {
        Value::Object(self.clone().into_fields().into_map())
    }
}

/// A type that has a configuration, in which each of its fields is optional. `#[derive(Apply)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no configuration for server-side apply",
    label = "`Apply` is not implemented for `{Self}`",
    note = "if `{Self}` is a struct of yours, add `#[derive(Apply)]` to it",
    note = "if it is an enum, or a type of another crate, set the field whole: add `#[apply(value)]` to the field",
    note = "if `klient-apply` has a configuration of it, name that: `#[apply(with = \"klient_apply::...\")]`"
)]
pub trait Apply {
    /// The configuration.
    type Configuration: Configuration;
}

/// A field of a configuration that can be a merge key. `#[derive(Apply)]` implements it for the fields that are set by value.
///
/// `NAME` is a hash of the name of the field.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such merge key",
    label = "the items of this list have no field of this name that can be a key",
    note = "a merge key is the name of a field in JSON, whose value is a string, a number or a boolean"
)]
pub trait KeyField<const NAME: u64> {
    /// The type of the argument for the key.
    type Value<'a>: Serialize;
}
