//! One cause of a failure, with the texts of a real server for invalid fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::quoted::Quoted;

/// One cause of a failure, such as one invalid field. Empty fields are absent.
///
/// ```
/// use klient_core::StatusCause;
///
/// let cause = StatusCause::invalid("spec.replicas", -1, "must be greater than or equal to 0");
/// assert_eq!(cause.reason, StatusCause::FIELD_VALUE_INVALID);
/// assert_eq!(cause.message, "Invalid value: -1: must be greater than or equal to 0");
/// ```
#[doc(alias = "CauseType")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The type of the cause, one of the constants here or a server's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The invalid field, such as `items[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl StatusCause {
    /// A referenced value does not exist.
    pub const FIELD_VALUE_NOT_FOUND: &str = "FieldValueNotFound";
    /// A required value is missing.
    pub const FIELD_VALUE_REQUIRED: &str = "FieldValueRequired";
    /// A value that must be unique is not.
    pub const FIELD_VALUE_DUPLICATE: &str = "FieldValueDuplicate";
    /// A value is malformed.
    pub const FIELD_VALUE_INVALID: &str = "FieldValueInvalid";
    /// A value is not one of those allowed.
    pub const FIELD_VALUE_NOT_SUPPORTED: &str = "FieldValueNotSupported";
    /// A value is not permitted in this state.
    pub const FIELD_VALUE_FORBIDDEN: &str = "FieldValueForbidden";
    /// A value is too long.
    pub const FIELD_VALUE_TOO_LONG: &str = "FieldValueTooLong";
    /// A list has too many items.
    pub const FIELD_VALUE_TOO_MANY: &str = "FieldValueTooMany";
    /// A value has another type than in the schema.
    pub const FIELD_VALUE_TYPE_INVALID: &str = "FieldValueTypeInvalid";
    /// A failure unrelated to the input.
    pub const INTERNAL_ERROR: &str = "InternalError";
    /// The response is not a Kubernetes API server's.
    pub const UNEXPECTED_SERVER_RESPONSE: &str = "UnexpectedServerResponse";
    /// A field is owned by another manager.
    pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";
    /// The requested version is newer than the server's.
    pub const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
    /// The namespace is being deleted.
    pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

    /// Creates a cause.
    pub fn new(reason: impl Into<String>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), field: field.into() }
    }

    /// Creates the cause of a missing required field.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(Self::FIELD_VALUE_REQUIRED, field, join("Required value", detail))
    }

    /// Creates the cause of a field that must not be set in this state.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(Self::FIELD_VALUE_FORBIDDEN, field, join("Forbidden", detail))
    }

    /// Creates the cause of a malformed value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Self {
        Self::new(Self::FIELD_VALUE_INVALID, field, join(&with_value("Invalid value", &value.into()), detail))
    }

    /// Creates the cause of a value of the wrong type.
    pub fn type_invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Self {
        Self::new(Self::FIELD_VALUE_TYPE_INVALID, field, join(&with_value("Invalid value", &value.into()), detail))
    }

    /// Creates the cause of a reference to a value that does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Self::FIELD_VALUE_NOT_FOUND, field, with_value("Not found", &value.into()))
    }

    /// Creates the cause of a duplicate value that must be unique.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Self::FIELD_VALUE_DUPLICATE, field, with_value("Duplicate value", &value.into()))
    }

    /// Creates the cause of a value that is not supported.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = match supported {
            [] => String::new(),
            values => {
                let values: Vec<_> = values.iter().map(|value| Quoted(value).to_string()).collect();
                format!("supported values: {}", values.join(", "))
            }
        };
        let message = join(&with_value("Unsupported value", &value.into()), &detail);
        Self::new(Self::FIELD_VALUE_NOT_SUPPORTED, field, message)
    }

    /// Creates the cause of a value that is longer than so many bytes.
    pub fn too_long(field: impl Into<String>, max_bytes: usize) -> Self {
        let unit = if max_bytes == 1 { "byte" } else { "bytes" };
        Self::new(Self::FIELD_VALUE_TOO_LONG, field, format!("Too long: may not be more than {max_bytes} {unit}"))
    }

    /// Creates the cause of a list with too many items.
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(Self::FIELD_VALUE_TOO_MANY, field, format!("Too many: {actual}: must have at most {max} {unit}"))
    }
}

fn with_value(what: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{what}: {}", Quoted(text)),
        other => format!("{what}: {other}"),
    }
}

fn join(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}
