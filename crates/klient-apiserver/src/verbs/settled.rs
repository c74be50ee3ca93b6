//! Objects of requests in the version in which they are validated and stored, for kinds that have one such version.
//!
//! The real server converts each object to that version when it decodes the request. Its owners and admission see what a conversion back
//! gives, which can have more or less than the request has.

use serde_json::Value;

use super::Target;
use crate::{builtin::versions, managed, registry::Resource, server::Core};

/// The object of a request in the stored version.
pub(super) struct Settled {
    stored: Value,
    /// The object in the version of the request, before admission.
    shown: Value,
}

impl Settled {
    /// Converts an object to the stored version and back.
    pub(super) fn new(resource: &Resource, inner: &Target, object: &mut Value) -> Self {
        let stored = versions::convert(&inner.resource, object.clone());
        *object = versions::convert(resource, stored.clone());
        Self { stored, shown: object.clone() }
    }

    /// Returns the settled object of an update. An applied configuration that changes nothing leaves the stored object as it is.
    pub(super) fn of_update(
        resource: &Resource,
        inner: &Target,
        object: &mut Value,
        current: &Value,
        stored: &Value,
        is_applied: bool,
    ) -> Self {
        if is_applied && managed::is_same_besides_entries(object, current) {
            return Self { stored: stored.clone(), shown: object.clone() };
        }
        Self::new(resource, inner, object)
    }

    /// Returns the object in the stored version, after admission. It is converted again only if admission changed it.
    pub(super) fn after_admission(self, inner: &Target, object: Value) -> Value {
        let Self { mut stored, shown } = self;
        let is_same = managed::is_same_besides_entries(&object, &shown)
            || ["spec", "status"].iter().all(|part| object.get(*part) == shown.get(*part))
                && object["metadata"]["annotations"] == shown["metadata"]["annotations"];
        let mut object = versions::convert(&inner.resource, object);
        if !is_same {
            return object;
        }
        if let (Some(metadata), Value::Object(fields)) = (object.get_mut("metadata"), &mut stored) {
            fields.insert("metadata".to_owned(), metadata.take());
        }
        stored
    }
}

impl Target {
    /// Returns the target in the version in which its objects are validated and stored, if that is another one.
    pub(super) fn stored(&self, core: &Core) -> Option<Self> {
        let stored = self.resource.hooks.stored_as?;
        let resource = core.registry.find(&self.resource.group, stored.version, &self.resource.plural)?;
        Some(Self { resource, subresource: self.subresource.clone(), ..self.whole() })
    }
}
