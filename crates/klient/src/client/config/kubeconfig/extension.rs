//! Data of other programs in a kubeconfig, by name.

use std::fmt;

use serde_json::Value;

use super::{entries::EntryValue, problem::Problem};

/// A value of another program. `Debug` does not show it, because it may be a secret.
#[derive(Clone, Default, PartialEq)]
pub struct Extension {
    /// The value.
    pub value: Value,
}

impl From<Value> for Extension {
    fn from(value: Value) -> Self {
        Self { value }
    }
}

impl EntryValue for Extension {
    const NAMES: (&'static str, &'static str) = ("extensions", "extension");

    fn read(_: String, value: Value) -> Result<Self, Problem> {
        Ok(Self { value })
    }

    fn write(&self) -> Value {
        self.value.clone()
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[extension]")
    }
}
