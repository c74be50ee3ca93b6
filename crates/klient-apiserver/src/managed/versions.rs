//! Conversion of objects between the versions of their managers.

use std::{collections::BTreeMap, sync::Arc};

use klient_core::fields::{ConvertError, Converter, Duplicates, FieldSet, Managers, Typed};

use super::{reset, schema};
use crate::{
    builtin,
    conversion::{self, Pending},
    registry::{Groups, Resource, Schema},
};

/// The versions of a kind.
pub(super) struct Versions<'a> {
    pub(super) groups: &'a Groups,
    pub(super) resource: &'a Resource,
    pub(super) conversions: &'a Pending,
}

impl Versions<'_> {
    /// Returns the resource of a version, which need not be served.
    fn find(&self, version: &str) -> Option<Arc<Resource>> {
        let served = self.groups.versions.iter().flat_map(|version| &version.resources);
        let unserved = match &self.resource.schema {
            Schema::Custom(schema) => &*schema.unserved,
            _ => &[],
        };
        served
            .chain(unserved)
            .filter(|other| other.table == self.resource.table && other.kind == self.resource.kind)
            .find(|other| other.api_version() == version)
            .cloned()
    }

    /// Returns the fields that a write does not change, for each version that the managers name.
    pub(super) fn ignored(&self, subresource: &str, managers: &Managers) -> BTreeMap<String, FieldSet> {
        let own = self.resource.api_version();
        let fields = reset::fields(self.resource, subresource);
        let mut out: BTreeMap<String, FieldSet> = BTreeMap::new();
        if !fields.is_empty() {
            // A custom kind's own endpoint ignores the status only in its own version.
            let is_own_only = self.resource.is_custom() && subresource.is_empty();
            let others = managers.values().map(|managed| &managed.version).filter(|_| !is_own_only);
            for version in others.chain([&own]) {
                out.entry(version.clone()).or_insert_with(|| fields.clone());
            }
        }
        out
    }
}

impl Converter for Versions<'_> {
    fn convert(&self, object: &Typed, version: &str) -> Result<Typed, ConvertError> {
        if object.value()["apiVersion"] == version {
            return Ok(object.clone());
        }
        let found = self.find(version).ok_or(ConvertError::MissingVersion)?;
        let schema = schema::of(&found).ok_or(ConvertError::MissingVersion)?;
        let value = match conversion::webhook_of(&found) {
            None => builtin::versions::convert(&found, object.value().clone()),
            Some(_) => {
                let missing = || ConvertError::Failed("the object was not converted yet".to_owned());
                self.conversions.find(object.value(), &found).ok_or_else(missing)?
            }
        };
        if found.is_custom() {
            // The other version may not have all fields of the object.
            return Typed::new(&schema.schema, schema.root, value, Duplicates::Allowed)
                .map_err(|error| ConvertError::Failed(error.to_string()));
        }
        // Two items with the same key can be in an annotation of version v1, which the other version must not have.
        Typed::new(&schema.schema, schema.root, value, Duplicates::Refused)
            .map_err(|error| ConvertError::Failed(error.to_string()))
    }
}
