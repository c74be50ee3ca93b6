//! Events as objects, in both API groups.

use k8s_openapi::{
    api::{
        core::v1::{Event as CoreEvent, EventSource},
        events::v1::Event as NewEvent,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{EventApi, EventOptions, Recorded, correlate::StoredEvent};
use crate::{
    Error, Patch,
    client::{Api, Client},
};

/// Returns the namespace and name of a new event.
pub(super) fn location(recorded: &Recorded) -> (String, String) {
    let object = recorded.regarding.name.as_deref().unwrap_or("unknown");
    // The rest of the longest allowed name is for the time.
    let object = truncated(object, 236);
    // Events about cluster-scoped objects are in the namespace `default`.
    let namespace = recorded.regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
    (namespace.unwrap_or_else(|| "default".to_owned()), format!("{object}.{:x}", recorded.at.as_nanosecond()))
}

/// Creates an event.
pub(super) async fn create(
    client: &Client,
    options: &EventOptions,
    recorded: &Recorded,
    (namespace, name): (&str, &str),
) -> Result<(), Error> {
    let metadata =
        ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
    match options.api {
        EventApi::Events => {
            let event = new_event(options, recorded, metadata);
            Api::<NewEvent>::namespaced(client.clone(), namespace).create(&event).await.map(drop)
        }
        EventApi::Core => {
            let event = core_event(options, recorded, metadata);
            Api::<CoreEvent>::namespaced(client.clone(), namespace).create(&event).await.map(drop)
        }
    }
}

/// Writes the count of an event.
pub(super) async fn repeat(
    client: &Client,
    api: EventApi,
    stored: &StoredEvent,
    note: Option<&str>,
) -> Result<(), Error> {
    let patch = Patch::merge(change(api, stored, note));
    match api {
        EventApi::Events => {
            let events: Api<NewEvent> = Api::namespaced(client.clone(), &stored.namespace);
            events.patch(&stored.name, patch).await.map(drop)
        }
        EventApi::Core => {
            let events: Api<CoreEvent> = Api::namespaced(client.clone(), &stored.namespace);
            events.patch(&stored.name, patch).await.map(drop)
        }
    }
}

fn change(api: EventApi, stored: &StoredEvent, note: Option<&str>) -> Value {
    match api {
        EventApi::Events => {
            json!({"series": {"count": stored.count, "lastObservedTime": MicroTime(stored.last)}})
        }
        EventApi::Core => {
            let mut change = json!({"count": stored.count, "lastTimestamp": Time(stored.last)});
            if let Some(note) = note {
                change["message"] = truncated(note, 1024).into();
            }
            change
        }
    }
}

fn new_event(options: &EventOptions, recorded: &Recorded, metadata: ObjectMeta) -> NewEvent {
    let event = &recorded.event;
    NewEvent {
        action: Some(truncated(&event.action, 128).to_owned()),
        event_time: Some(MicroTime(recorded.at)),
        metadata,
        note: Some(truncated(&event.note, 1024).to_owned()),
        reason: Some(truncated(&event.reason, 128).to_owned()),
        regarding: Some(recorded.regarding.clone()),
        related: event.related.clone(),
        reporting_controller: Some(options.controller.clone()),
        reporting_instance: Some(truncated(&options.instance, 128).to_owned()),
        type_: Some(event.kind.as_str().to_owned()),
        ..NewEvent::default()
    }
}

fn core_event(options: &EventOptions, recorded: &Recorded, metadata: ObjectMeta) -> CoreEvent {
    let event = &recorded.event;
    let at = |at: Timestamp| Some(Time(at));
    CoreEvent {
        count: Some(1),
        first_timestamp: at(recorded.at),
        involved_object: recorded.regarding.clone(),
        last_timestamp: at(recorded.at),
        message: Some(truncated(&event.note, 1024).to_owned()),
        metadata,
        reason: Some(truncated(&event.reason, 128).to_owned()),
        related: event.related.clone(),
        source: Some(EventSource { component: Some(options.controller.clone()), host: Some(options.instance.clone()) }),
        type_: Some(event.kind.as_str().to_owned()),
        ..CoreEvent::default()
    }
}

/// Returns at most `bytes` bytes of a text, in whole characters.
fn truncated(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
