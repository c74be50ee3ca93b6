//! The part of a resource that an informer covers.

use std::collections::BTreeMap;

use klient_core::{FieldSelector, LabelSelector, ObjectKey};

use super::{ListWatch, ReflectorOptions};

/// The namespace and the selectors of an informer.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// `None` for all namespaces.
    namespace: Option<String>,
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Scope {
    pub(super) fn new(source: &impl ListWatch, options: &ReflectorOptions) -> Self {
        // The server rejects a selector that cannot be parsed here, so that nothing is ever cached.
        Self {
            namespace: source.namespace(),
            labels: options.label_selector.as_deref().and_then(|text| text.parse().ok()),
            fields: options.field_selector.as_deref().and_then(|text| text.parse().ok()),
        }
    }

    /// Returns whether the cache may have an object with this key.
    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        let in_namespace = self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace));
        in_namespace && self.fields.as_ref().is_none_or(|fields| may_select(fields, key))
    }

    /// Returns whether the cache may have an object with these labels.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.as_ref().is_none_or(|selector| selector.matches_map(labels))
    }
}

/// Returns whether a field selector may match an object with this key, whatever its other fields are.
fn may_select(fields: &FieldSelector, key: &ObjectKey) -> bool {
    fields.requirements().iter().all(|requirement| match requirement.field() {
        "metadata.name" => requirement.matches(key.name()),
        "metadata.namespace" => requirement.matches(key.namespace().unwrap_or_default()),
        _ => true,
    })
}
