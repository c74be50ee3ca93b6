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
    /// The keys of an informer over several namespaces or names.
    keys: Option<KeyFilter>,
}

/// A function that returns whether a cache may have an object.
struct KeyFilter(Box<dyn Fn(&ObjectKey) -> bool + Send + Sync>);

impl Scope {
    pub(super) fn new(source: &impl ListWatch, options: &ReflectorOptions) -> Self {
        // The server rejects a selector that cannot be parsed here, so that nothing is ever cached.
        Self {
            namespace: source.namespace(),
            labels: options.label_selector.as_deref().and_then(|text| text.parse().ok()),
            fields: options.field_selector.as_deref().and_then(|text| text.parse().ok()),
            keys: None,
        }
    }

    /// Creates a scope of keys, which may change.
    #[cfg(feature = "client")]
    pub(super) fn of_keys(covers: impl Fn(&ObjectKey) -> bool + Send + Sync + 'static) -> Self {
        Self { keys: Some(KeyFilter(Box::new(covers))), ..Self::default() }
    }

    /// Returns whether the cache may have an object with this key.
    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        let in_namespace = self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace));
        let has_key = self.keys.as_ref().is_none_or(|keys| (keys.0)(key));
        has_key && in_namespace && self.fields.as_ref().is_none_or(|fields| may_select(fields, key))
    }

    /// Returns whether the cache may have an object with these labels.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.as_ref().is_none_or(|selector| selector.matches_map(labels))
    }
}

impl std::fmt::Debug for KeyFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyFilter")
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
