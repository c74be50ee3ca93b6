//! The operations of a JSON patch.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::JsonPointer;

/// One operation of a JSON patch. If one operation fails, none is executed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
// Exhaustive on purpose: RFC 6902 has these six.
pub enum JsonPatchOperation {
    /// Sets a key, or inserts an item into a list before the one at that index.
    Add {
        /// The location.
        path: JsonPointer,
        /// The value.
        value: Value,
    },
    /// Removes a value, which must exist.
    Remove {
        /// The location.
        path: JsonPointer,
    },
    /// Replaces a value, which must exist.
    Replace {
        /// The location.
        path: JsonPointer,
        /// The new value.
        value: Value,
    },
    /// Moves a value to another location.
    Move {
        /// The old location.
        from: JsonPointer,
        /// The new location.
        path: JsonPointer,
    },
    /// Copies a value to another location.
    Copy {
        /// The location of the value.
        from: JsonPointer,
        /// The location of the copy.
        path: JsonPointer,
    },
    /// Fails the patch unless the value is equal, so that a change is based on the value that was read.
    Test {
        /// The location.
        path: JsonPointer,
        /// The expected value.
        value: Value,
    },
}

impl JsonPatchOperation {
    /// Creates an operation that sets a key, or inserts an item into a list before the one at that index.
    pub fn add(path: JsonPointer, value: impl Into<Value>) -> Self {
        Self::Add { path, value: value.into() }
    }

    /// Creates an operation that removes a value.
    pub fn remove(path: JsonPointer) -> Self {
        Self::Remove { path }
    }

    /// Creates an operation that replaces a value.
    pub fn replace(path: JsonPointer, value: impl Into<Value>) -> Self {
        Self::Replace { path, value: value.into() }
    }

    /// Creates an operation that moves a value to another location.
    pub fn move_value(from: JsonPointer, path: JsonPointer) -> Self {
        Self::Move { from, path }
    }

    /// Creates an operation that copies a value to another location.
    pub fn copy(from: JsonPointer, path: JsonPointer) -> Self {
        Self::Copy { from, path }
    }

    /// Creates an operation that fails the patch unless the value is equal.
    pub fn test(path: JsonPointer, value: impl Into<Value>) -> Self {
        Self::Test { path, value: value.into() }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Add { path, value } => json!({"op": "add", "path": path.as_str(), "value": value}),
            Self::Remove { path } => json!({"op": "remove", "path": path.as_str()}),
            Self::Replace { path, value } => json!({"op": "replace", "path": path.as_str(), "value": value}),
            Self::Move { from, path } => json!({"op": "move", "from": from.as_str(), "path": path.as_str()}),
            Self::Copy { from, path } => json!({"op": "copy", "from": from.as_str(), "path": path.as_str()}),
            Self::Test { path, value } => json!({"op": "test", "path": path.as_str(), "value": value}),
        }
    }
}

impl serde::Serialize for JsonPatchOperation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}
