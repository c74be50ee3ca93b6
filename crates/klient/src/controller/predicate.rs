//! Predicates: which events a controller handles.
//!
//! A predicate is evaluated before an event becomes a key. Most predicates need only metadata, which is read from the bytes
//! without decoding the object.

use std::{fmt, sync::Arc};

use klient_core::{LabelSelector, Resource};

use crate::informer::{CachedObject, Event};

/// A filter for events. Any function of an [`Event`] can be one.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::controller::Predicate;
///
/// let predicate = Predicate::<Deployment>::generation_changed()
///     .or(Predicate::labels_changed())
///     .and(Predicate::new(|event| event.key().namespace() != Some("kube-system")));
/// ```
pub struct Predicate<K> {
    holds: Holds<K>,
}

type Holds<K> = Arc<dyn Fn(&Event<K>) -> bool + Send + Sync>;

impl<K: Resource> Predicate<K> {
    /// Creates a predicate from a function.
    pub fn new(holds: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds) }
    }

    /// Creates a predicate that ignores updates that did not change `metadata.generation`, such as those of the status.
    /// Resyncs are ignored as well; other events are not.
    #[doc(alias = "GenerationChangedPredicate")]
    pub fn generation_changed() -> Self {
        Self::on_update(|old, new| old.generation() != new.generation())
    }

    /// Creates a predicate that ignores resyncs: updates that changed nothing.
    #[doc(alias = "ResourceVersionChangedPredicate")]
    pub fn version_changed() -> Self {
        Self::on_update(|old, new| !old.is_same_state(new))
    }

    /// Creates a predicate that ignores updates that changed no label.
    #[doc(alias = "LabelChangedPredicate")]
    pub fn labels_changed() -> Self {
        Self::on_update(|old, new| old.labels() != new.labels())
    }

    /// Creates a predicate that ignores updates that changed no annotation.
    #[doc(alias = "AnnotationChangedPredicate")]
    pub fn annotations_changed() -> Self {
        Self::on_update(|old, new| old.annotations() != new.annotations())
    }

    /// Creates a predicate that ignores objects that a selector matches neither before nor after the change.
    #[doc(alias = "LabelSelectorPredicate")]
    pub fn selects(selector: LabelSelector) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => old.matches(&selector) || new.matches(&selector),
            other => other.object().matches(&selector),
        })
    }

    /// Creates a predicate that ignores updates for which a function of the old and new object returns false.
    pub fn on_update(holds: impl Fn(&CachedObject<K>, &CachedObject<K>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => holds(old, new),
            _ => true,
        })
    }

    /// Creates a predicate that holds if both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.holds(event) && other.holds(event))
    }

    /// Creates a predicate that holds if one of both holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.holds(event) || other.holds(event))
    }

    /// Creates a predicate that holds if this one does not.
    #[doc(alias = "Not")]
    #[must_use]
    pub fn negated(self) -> Self {
        Self::new(move |event| !self.holds(event))
    }

    /// Returns whether the predicate holds for an event.
    pub fn holds(&self, event: &Event<K>) -> bool {
        (self.holds)(event)
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self { holds: Arc::clone(&self.holds) }
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn pod(metadata: &Value) -> CachedObject<Pod> {
        CachedObject::from_object(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
    }

    fn updated(old: &Value, new: &Value) -> Event<Pod> {
        Event::Updated { old: pod(old), new: pod(new) }
    }

    #[test]
    fn predicates_hold_for_their_own_change_only() {
        let base = json!({ "name": "web", "resourceVersion": "1", "uid": "u", "generation": 1 });
        let with = |field: &str, value: Value| {
            let mut changed = base.clone();
            changed[field] = value;
            changed["resourceVersion"] = json!("2");
            updated(&base, &changed)
        };
        let label = with("labels", json!({ "app": "web" }));
        let annotation = with("annotations", json!({ "note": "x" }));
        let generation = with("generation", json!(2));
        let resync = updated(&base, &base);
        let sees =
            |predicate: Predicate<Pod>| [&label, &annotation, &generation, &resync].map(|event| predicate.holds(event));
        assert_eq!(sees(Predicate::labels_changed()), [true, false, false, false]);
        assert_eq!(sees(Predicate::annotations_changed()), [false, true, false, false]);
        assert_eq!(sees(Predicate::generation_changed()), [false, false, true, false]);
        assert_eq!(sees(Predicate::version_changed()), [true, true, true, false]);
        assert_eq!(sees(Predicate::labels_changed().or(Predicate::generation_changed())), [true, false, true, false]);
        assert_eq!(
            sees(Predicate::version_changed().and(Predicate::labels_changed().negated())),
            [false, true, true, false]
        );
        let added = Event::Added { object: pod(&base), in_initial_list: false };
        assert!(Predicate::generation_changed().holds(&added));
    }

    #[test]
    fn selector_predicate_holds_for_objects_that_stop_matching() {
        let selector: LabelSelector = "app=web".parse().unwrap();
        let predicate = Predicate::selects(selector);
        let (inside, outside) = (json!({ "name": "a", "labels": { "app": "web" } }), json!({ "name": "a" }));
        assert!(predicate.holds(&updated(&inside, &outside)));
        assert!(predicate.holds(&updated(&outside, &inside)));
        assert!(!predicate.holds(&updated(&outside, &outside)));
    }
}
