//! The versions of a custom kind as its objects are stored.
//!
//! The real server stores all objects in one version, without the fields that this version does not have. An object that is read gets
//! the defaults of the version in which it was stored, whatever the version of the request is.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{defaults, embedded, prune};
use crate::registry::api_version;

/// The version in which objects are stored, and the schemas of all versions in which they may have been stored before.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    /// The storage version, with its group.
    version: String,
    schemas: BTreeMap<String, VersionSchema>,
    /// Whether the definition never changed, so that all objects were pruned by it when they were written.
    is_unchanged: bool,
}

/// The schema of one version.
#[derive(Debug)]
struct VersionSchema {
    schema: Arc<Value>,
    has_defaults: bool,
}

impl Storage {
    /// Returns the versions of a definition.
    pub(super) fn of(definition: &Value) -> Self {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let is_unchanged = definition["metadata"]["generation"] == 1;
        let mut storage = Self { is_unchanged, ..Self::default() };
        for version in spec["versions"].as_array().into_iter().flatten() {
            let name = api_version(group, version["name"].as_str().unwrap_or_default());
            if version["storage"] == true {
                storage.version.clone_from(&name);
            }
            if let Some(schema) = version["schema"].get("openAPIV3Schema") {
                let mut schema = schema.clone();
                if embedded::is_in(&schema) {
                    defaults::prune_metadata(&mut schema, defaults::Defaults::All);
                }
                let has_defaults = prune::has_defaults(&schema);
                storage.schemas.insert(name, VersionSchema { schema: Arc::new(schema), has_defaults });
            }
        }
        storage
    }

    /// Returns the storage version, with its group.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the schema of a version.
    pub(super) fn schema(&self, version: &str) -> Option<Arc<Value>> {
        self.schemas.get(version).map(|found| Arc::clone(&found.schema))
    }

    /// Brings a stored object to the current schema of its version, which may be newer than the object.
    pub(crate) fn read(&self, object: &mut Value) {
        let Some(found) = object["apiVersion"].as_str().and_then(|version| self.schemas.get(version)) else { return };
        if !self.is_unchanged || object["apiVersion"] != self.version {
            prune::prune_root(object, &found.schema, &mut Vec::new());
        }
        if found.has_defaults {
            prune::default_root(object, &found.schema, prune::Nulls::Dropped);
        }
    }

    /// Changes an object in any version to the storage version, as it is stored if no webhook converts it.
    pub(crate) fn write(&self, object: &mut Value) {
        object["apiVersion"] = Value::from(self.version.as_str());
        self.prune(object);
    }

    /// Removes the fields that the storage version does not have.
    pub(crate) fn prune(&self, object: &mut Value) {
        if let Some(found) = self.schemas.get(&self.version) {
            prune::prune_root(object, &found.schema, &mut Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn storage() -> Storage {
        let version = |name: &str, stored: bool, default: &str| {
            json!({"name": name, "storage": stored, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                name: {"type": "string"}, "both": {"type": "string", "default": default}}}}})
        };
        Storage::of(&json!({"spec": {"group": "g", "versions": [version("v1", false, "1"), version("v2", true, "2")]}}))
    }

    #[test]
    fn object_is_stored_without_fields_of_other_versions() {
        let mut object = json!({"apiVersion": "g/v1", "v1": "a", "v2": "b"});
        storage().write(&mut object);
        assert_eq!(object, json!({"apiVersion": "g/v2", "v2": "b"}));
    }

    #[test]
    fn object_gets_the_defaults_of_its_stored_version() {
        for (version, default) in [("v1", "1"), ("v2", "2")] {
            let mut object = json!({"apiVersion": format!("g/{version}"), "removed": "x"});
            storage().read(&mut object);
            assert_eq!(object, json!({"apiVersion": format!("g/{version}"), "both": default}));
        }
    }

    #[test]
    fn object_of_an_unchanged_definition_is_not_pruned_again() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let versions = ["v1", "v2"]
            .map(|name| json!({"name": name, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}));
        let read = |generation: u32, version: &str| {
            let definition =
                json!({"metadata": {"generation": generation}, "spec": {"group": "g", "versions": versions}});
            let mut object = json!({"apiVersion": version, "a": "x", "b": "y"});
            Storage::of(&definition).read(&mut object);
            object.get("b").is_none()
        };
        assert!(!read(1, "g/v1"));
        assert!(read(1, "g/v2"), "no object of another version was pruned");
        assert!(read(2, "g/v1"), "the definition may have had the field");
    }

    #[test]
    fn object_of_a_removed_version_is_read_as_it_is() {
        let mut object = json!({"apiVersion": "g/v0", "v0": "a"});
        storage().read(&mut object);
        assert_eq!(object, json!({"apiVersion": "g/v0", "v0": "a"}));
    }
}
