//! What other programs keep in a kubeconfig, under a name of their own.

use std::fmt;

use serde_json::Value;

use super::{entries::Stanza, problem::Problem};

/// Any value. `Debug` does not show it, since it may be a secret for all this crate knows.
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

impl Stanza for Extension {
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
