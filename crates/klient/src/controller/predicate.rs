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
    rule: Rule<K>,
}

/// The rule of a predicate.
enum Rule<K> {
    Function { name: Arc<str>, holds: Holds<K> },
    And(Arc<(Predicate<K>, Predicate<K>)>),
    Or(Arc<(Predicate<K>, Predicate<K>)>),
    Not(Arc<Predicate<K>>),
}

type Holds<K> = Arc<dyn Fn(&Event<K>) -> bool + Send + Sync>;

impl<K: Resource> Predicate<K> {
    /// Creates a predicate from a function. Its name is its place in the source code, unless it is [named](Self::named).
    #[track_caller]
    pub fn new(holds: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        let place = std::panic::Location::caller();
        Self::function(&format!("{}:{}", place.file(), place.line()), holds)
    }

    fn function(name: &str, holds: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { rule: Rule::Function { name: name.into(), holds: Arc::new(holds) } }
    }

    /// Sets the name, which explains why an event was ignored; see [`Controller::explain`](crate::Controller::explain).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use klient::controller::Predicate;
    ///
    /// let predicate = Predicate::<Pod>::new(|event| event.key().name().starts_with("web-")).named("is a web pod");
    /// assert_eq!(predicate.or(Predicate::labels_changed()).name(), "is a web pod or labels_changed");
    /// ```
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self::function(name, move |event| self.holds(event))
    }

    /// Returns the name: of a function, or of all functions that the predicate consists of.
    pub fn name(&self) -> String {
        match &self.rule {
            Rule::Function { name, .. } => name.to_string(),
            Rule::And(both) => format!("{} and {}", both.0.name(), both.1.name()),
            Rule::Or(both) => format!("{} or {}", both.0.name(), both.1.name()),
            Rule::Not(other) => format!("not {}", other.name()),
        }
    }

    /// Creates a predicate that ignores updates that did not change `metadata.generation`, such as those of the status.
    /// Resyncs are ignored as well; other events are not.
    #[doc(alias = "GenerationChangedPredicate")]
    pub fn generation_changed() -> Self {
        Self::on_update_named("generation_changed", |old, new| old.generation() != new.generation())
    }

    /// Creates a predicate that ignores resyncs: updates that changed nothing.
    #[doc(alias = "ResourceVersionChangedPredicate")]
    pub fn version_changed() -> Self {
        Self::on_update_named("version_changed", |old, new| !old.is_same_state(new))
    }

    /// Creates a predicate that ignores updates that changed no label.
    #[doc(alias = "LabelChangedPredicate")]
    pub fn labels_changed() -> Self {
        Self::on_update_named("labels_changed", |old, new| old.labels() != new.labels())
    }

    /// Creates a predicate that ignores updates that changed no annotation.
    #[doc(alias = "AnnotationChangedPredicate")]
    pub fn annotations_changed() -> Self {
        Self::on_update_named("annotations_changed", |old, new| old.annotations() != new.annotations())
    }

    /// Creates a predicate that ignores objects that a selector matches neither before nor after the change.
    #[doc(alias = "LabelSelectorPredicate")]
    pub fn selects(selector: LabelSelector) -> Self {
        let name = format!("selects {selector}");
        Self::function(&name, move |event| match event {
            Event::Updated { old, new } => old.matches(&selector) || new.matches(&selector),
            other => other.object().matches(&selector),
        })
    }

    /// Creates a predicate that ignores updates for which a function of the old and new object returns false.
    #[track_caller]
    pub fn on_update(holds: impl Fn(&CachedObject<K>, &CachedObject<K>) -> bool + Send + Sync + 'static) -> Self {
        let place = std::panic::Location::caller();
        Self::on_update_named(&format!("{}:{}", place.file(), place.line()), holds)
    }

    fn on_update_named(
        name: &str,
        holds: impl Fn(&CachedObject<K>, &CachedObject<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::function(name, move |event| match event {
            Event::Updated { old, new } => holds(old, new),
            _ => true,
        })
    }

    /// Creates a predicate that holds if both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rule: Rule::And(Arc::new((self, other))) }
    }

    /// Creates a predicate that holds if one of both holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { rule: Rule::Or(Arc::new((self, other))) }
    }

    /// Creates a predicate that holds if this one does not.
    #[doc(alias = "Not")]
    #[must_use]
    pub fn negated(self) -> Self {
        Self { rule: Rule::Not(Arc::new(self)) }
    }

    /// Returns whether the predicate holds for an event.
    pub fn holds(&self, event: &Event<K>) -> bool {
        match &self.rule {
            Rule::Function { holds, .. } => holds(event),
            Rule::And(both) => both.0.holds(event) && both.1.holds(event),
            Rule::Or(both) => both.0.holds(event) || both.1.holds(event),
            Rule::Not(other) => !other.holds(event),
        }
    }

    /// Returns the name of the first part that has to hold and does not.
    pub(super) fn rejected_by(&self, event: &Event<K>) -> String {
        match &self.rule {
            Rule::And(both) if !both.0.holds(event) => both.0.rejected_by(event),
            Rule::And(both) => both.1.rejected_by(event),
            _ => self.name(),
        }
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        let rule = match &self.rule {
            Rule::Function { name, holds } => Rule::Function { name: Arc::clone(name), holds: Arc::clone(holds) },
            Rule::And(both) => Rule::And(Arc::clone(both)),
            Rule::Or(both) => Rule::Or(Arc::clone(both)),
            Rule::Not(other) => Rule::Not(Arc::clone(other)),
        };
        Self { rule }
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
    fn predicate_names_the_part_that_does_not_hold() {
        let base = json!({ "name": "web", "resourceVersion": "1" });
        let event = updated(&base, &json!({ "name": "web", "resourceVersion": "2", "labels": { "app": "web" } }));
        let custom = Predicate::new(|event: &Event<Pod>| event.key().name() == "db");
        let line = line!() - 1;
        let all = Predicate::labels_changed().and(Predicate::generation_changed().or(custom.clone()));
        assert_eq!(all.rejected_by(&event), format!("generation_changed or {}:{line}", file!()));
        let named = Predicate::labels_changed().and(custom.named("is the database"));
        assert_eq!(named.rejected_by(&event), "is the database");
        assert_eq!(Predicate::<Pod>::labels_changed().negated().rejected_by(&event), "not labels_changed");
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
