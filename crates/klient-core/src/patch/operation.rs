//! The steps of a JSON patch.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::JsonPointer;

/// One step of a JSON patch. If one step cannot be done, none is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
// Exhaustive on purpose: RFC 6902 has these six.
pub enum JsonPatchOperation {
    /// Sets a key, or puts an item into a list before the one at that place.
    Add {
        /// Where.
        path: JsonPointer,
        /// What.
        value: Value,
    },
    /// Takes away what is there; it must be there.
    Remove {
        /// Where.
        path: JsonPointer,
    },
    /// Sets what is there; it must be there.
    Replace {
        /// Where.
        path: JsonPointer,
        /// What.
        value: Value,
    },
    /// Takes away from one place and adds at another.
    Move {
        /// From where.
        from: JsonPointer,
        /// To where.
        path: JsonPointer,
    },
    /// Adds what is at another place.
    Copy {
        /// From where.
        from: JsonPointer,
        /// To where.
        path: JsonPointer,
    },
    /// Fails the patch unless this is there: the way to write only what was read.
    Test {
        /// Where.
        path: JsonPointer,
        /// What.
        value: Value,
    },
}

impl JsonPatchOperation {
    /// Sets a key, or puts an item into a list before the one at that place.
    pub fn add(path: JsonPointer, value: impl Into<Value>) -> Self {
        Self::Add { path, value: value.into() }
    }

    /// Takes away what is there.
    pub fn remove(path: JsonPointer) -> Self {
        Self::Remove { path }
    }

    /// Sets what is there.
    pub fn replace(path: JsonPointer, value: impl Into<Value>) -> Self {
        Self::Replace { path, value: value.into() }
    }

    /// Takes away from one place and adds at another.
    pub fn move_value(from: JsonPointer, path: JsonPointer) -> Self {
        Self::Move { from, path }
    }

    /// Adds what is at another place.
    pub fn copy(from: JsonPointer, path: JsonPointer) -> Self {
        Self::Copy { from, path }
    }

    /// Fails the patch unless this is there.
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
