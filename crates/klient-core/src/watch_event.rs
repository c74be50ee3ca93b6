//! The events of a watch: a change, a bookmark, or the error that ends it.
//!
//! The object is decoded directly into its type, because servers write `type` first. An event in the other order is
//! decoded through a buffer. An unknown event type is an error and never skipped, because it may be a change.

mod serialization;

use crate::{ResourceVersion, Status, TypeMeta};

/// One event of a watch.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient_core::WatchEvent;
///
/// let event: WatchEvent<Pod> =
///     serde_json::from_str(r#"{"type": "ADDED", "object": {"metadata": {"name": "web"}}}"#)?;
/// assert!(matches!(event, WatchEvent::Added(pod) if pod.metadata.name.as_deref() == Some("web")));
///
/// let error = serde_json::from_str::<WatchEvent<Pod>>(r#"{"type": "RENAMED", "object": {}}"#).unwrap_err();
/// assert!(error.to_string().contains("RENAMED"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
// Exhaustive on purpose: a watcher that does not handle an event has lost it.
pub enum WatchEvent<K> {
    /// The object was created, existed when the watch began, or started to match the selectors.
    Added(K),
    /// The object was changed.
    Modified(K),
    /// The object was deleted, or no longer matches the selectors. This is its last state.
    Deleted(K),
    /// Everything up to a version has been sent.
    Bookmark(Bookmark),
    /// The watch failed and sends nothing more.
    Error(Status),
}

/// A version up to which everything has been sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// The version from which a watch can resume.
    pub resource_version: ResourceVersion,
    /// Whether this ends the initial state that was requested with `sendInitialEvents`.
    pub initial_events_end: bool,
    /// The watched kind, if `K` does not know it.
    pub types: Option<TypeMeta>,
}

impl<K> WatchEvent<K> {
    /// Returns the object of the event, if any.
    pub fn object(&self) -> Option<&K> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark(_) | Self::Error(_) => None,
        }
    }

    /// Converts the object of the event.
    pub fn map<T>(self, convert: impl FnOnce(K) -> T) -> WatchEvent<T> {
        match self {
            Self::Added(object) => WatchEvent::Added(convert(object)),
            Self::Modified(object) => WatchEvent::Modified(convert(object)),
            Self::Deleted(object) => WatchEvent::Deleted(convert(object)),
            Self::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
            Self::Error(status) => WatchEvent::Error(status),
        }
    }

    /// Returns the type on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Added(_) => "ADDED",
            Self::Modified(_) => "MODIFIED",
            Self::Deleted(_) => "DELETED",
            Self::Bookmark(_) => "BOOKMARK",
            Self::Error(_) => "ERROR",
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::DynamicObject;

    fn pod(name: &str) -> serde_json::Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})
    }

    #[test]
    fn watch_event_round_trips() {
        for value in [
            json!({"type": "ADDED", "object": pod("a")}),
            json!({"type": "MODIFIED", "object": pod("a")}),
            json!({"type": "DELETED", "object": pod("a")}),
            json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {
                "resourceVersion": "7"}}}),
            json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {
                "resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}}),
            json!({"type": "ERROR", "object": Status::expired("too old resource version: 1 (2)")}),
        ] {
            let event: WatchEvent<Pod> = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), value);
            let event: WatchEvent<DynamicObject> = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), value);
            assert_eq!(value["type"], event.type_name());
        }
    }

    #[test]
    fn object_may_precede_the_type() {
        let text = r#"{"object": {"metadata": {"name": "a"}}, "other": 1, "type": "DELETED"}"#;
        let event: WatchEvent<Pod> = serde_json::from_str(text).unwrap();
        assert_eq!(event.type_name(), "DELETED");
        assert_eq!(event.object().unwrap().metadata.name.as_deref(), Some("a"));
        assert!(matches!(event.map(|_| ()), WatchEvent::Deleted(())));
    }

    #[test]
    fn bookmark_of_a_kind_with_required_fields_is_read() {
        let text = r#"{"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "12",
            "creationTimestamp": null}, "spec": {"containers": null}, "status": {}}}"#;
        let WatchEvent::Bookmark(bookmark) = serde_json::from_str::<WatchEvent<Pod>>(text).unwrap() else {
            panic!("not a bookmark")
        };
        assert_eq!((bookmark.resource_version.as_str(), bookmark.initial_events_end), ("12", false));
    }

    #[test]
    fn error_event_is_read() {
        let text = r#"{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "too old resource version: 1 (7)", "reason": "Expired", "code": 410}}"#;
        let WatchEvent::Error(status) = serde_json::from_str::<WatchEvent<Pod>>(text).unwrap() else {
            panic!("not an error")
        };
        assert!(status.is_expired());
    }

    #[test]
    fn event_error_names_the_problem() {
        for (text, message) in [
            (r#"{"type": "RENAMED", "object": {}}"#, "unknown watch event type \"RENAMED\""),
            (r#"{"object": {}, "type": "RENAMED"}"#, "unknown watch event type \"RENAMED\""),
            (r#"{"object": {}}"#, "missing field `type`"),
            (r#"{"type": "ADDED"}"#, "missing field `object`"),
            (r#"{"type": "ADDED", "object": {"kind": "Node"}}"#, "Node"),
        ] {
            let error = serde_json::from_str::<WatchEvent<Pod>>(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in r#"(\{("type"|"object"|,|:|"ADDED"|"BOOKMARK"|"ERROR"|\{|\}|null|1){0,12}\}?|.{0,20})"#) {
            let _ = serde_json::from_str::<WatchEvent<Pod>>(&text);
        }
    }
}
