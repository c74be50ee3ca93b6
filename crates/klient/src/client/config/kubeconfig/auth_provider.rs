//! The legacy built-in auth providers, of which only `oidc` remains.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use super::{
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};

/// A built-in auth provider and its settings. `Debug` shows only the names of the settings.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct AuthProviderConfig {
    /// The name of the provider.
    pub name: String,
    /// The settings of the provider, stored tokens included.
    pub config: BTreeMap<String, String>,
    /// Fields unknown to this version, written back unchanged.
    pub other: Map<String, Value>,
}

impl AuthProviderConfig {
    /// Creates a provider of that name without settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(super) fn read(mut fields: Fields) -> Result<Self, Problem> {
        let mut config = BTreeMap::new();
        let name = fields.text("name")?.unwrap_or_default();
        if let Some(mut settings) = fields.object("config")? {
            for key in settings.names() {
                let value = settings.text(&key)?.unwrap_or_default();
                config.insert(key, value);
            }
        }
        Ok(Self { name, config, other: fields.rest() })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let config: Map<String, Value> =
            self.config.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        ObjectBuilder::new(&self.other).always("name", self.name.as_str()).always("config", config).done()
    }
}

impl fmt::Debug for AuthProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthProviderConfig")
            .field("name", &self.name)
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .field("other", &self.other.keys().collect::<Vec<_>>())
            .finish()
    }
}
