//! Kubernetes Events about objects: what happened and why, for people who look at an object.
//!
//! Recording never waits: events that do not fit into a bounded queue are dropped and counted. One future, which the program
//! owns, sends the recorded events; at the end it sends the remaining ones, up to a deadline. Repeated events become a series,
//! and the number of `v1` events about one object is limited. In client-go: `tools/events` and `tools/record`.

mod correlate;
mod sink;
mod write;

use std::fmt;

use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use klient_core::{GroupVersionKind, Resource, TypeMeta};
use tokio::{sync::mpsc, time::Duration};

pub use self::sink::EventSink;
use crate::{
    client::Client,
    metrics::{Counter, Registry},
};

/// A recorder of events. Clones record to the same [`EventSink`].
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Client, events::{Event, EventOptions, EventRecorder}};
///
/// # async fn run(pod: Pod, shutdown: impl Future<Output = ()>) -> Result<(), klient::Error> {
/// let (recorder, sink) = EventRecorder::new(Client::infer()?, EventOptions::new("shop.example.com/websites"));
/// let sending = sink.run_until(shutdown); // Runs beside the controller.
/// recorder.record(&pod, Event::normal("Started", "Start", "all containers are up"));
/// sending.await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventRecorder {
    queue: mpsc::Sender<Recorded>,
    dropped: Counter,
    filtered: Counter,
}

/// An event to record: what happened to an object, and why.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Whether the event is normal or a warning.
    pub kind: EventKind,
    /// The reason as a CamelCase word for programs: `FailedScheduling`.
    pub reason: String,
    /// The action as a CamelCase word for programs: `Bind`.
    pub action: String,
    /// The description as a sentence for people.
    pub note: String,
    /// Another object that the event is about.
    pub related: Option<ObjectReference>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Something expected happened.
    Normal,
    /// Something happened that may need attention.
    Warning,
}

/// The API group of the events that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventApi {
    /// `events.k8s.io/v1`.
    #[default]
    Events,
    /// `v1`. Servers return these events in `events.k8s.io/v1` as well.
    Core,
}

/// The options of an [`EventRecorder`].
///
/// ```
/// use klient::events::{EventApi, EventOptions};
///
/// let options = EventOptions::new("shop.example.com/websites").instance("websites-7f4").api(EventApi::Core);
/// assert_eq!(options.capacity, 1000);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventOptions {
    /// The name of the reporting controller.
    pub controller: String,
    /// The name of the reporting process; the host's name by default.
    pub instance: String,
    /// The API group of the events that are written.
    pub api: EventApi,
    /// The number of events that may wait to be sent.
    pub capacity: usize,
    /// How long sending the remaining events may take at the end.
    pub flush_deadline: Duration,
    /// The registry for metrics; the global registry by default.
    pub registry: Option<Registry>,
}

/// An event in the queue.
#[derive(Clone)]
struct Recorded {
    regarding: ObjectReference,
    event: Event,
    at: Timestamp,
}

impl EventRecorder {
    /// Creates a recorder, and the sink that sends its events.
    #[doc(alias = "NewRecorder")]
    #[doc(alias = "NewBroadcaster")]
    pub fn new(client: Client, options: EventOptions) -> (Self, EventSink) {
        let (queue, recorded) = mpsc::channel(options.capacity.max(1));
        let registry = options.registry.clone().unwrap_or_else(|| Registry::global().clone());
        let labels = &[("controller", options.controller.as_str())];
        let dropped = registry.counter(
            "klient_events_dropped_total",
            "Events that were dropped: the queue was full, they could not be sent, or the spam filter dropped them.",
            labels,
        );
        let filtered = registry.counter(
            "klient_events_filtered_total",
            "Events that the spam filter dropped: there were too many about one object.",
            labels,
        );
        let recorder = Self { queue, dropped: dropped.clone(), filtered: filtered.clone() };
        (recorder, EventSink::new(client, options, recorded, (dropped, filtered)))
    }

    /// Records an event about an object. Never waits.
    #[doc(alias = "publish")]
    #[doc(alias = "Eventf")]
    pub fn record<K: Resource>(&self, object: &K, event: Event) {
        self.record_ref(reference(object), event);
    }

    /// Records an event about a reference to an object. Never waits.
    pub fn record_ref(&self, regarding: ObjectReference, event: Event) {
        let recorded = Recorded { regarding, event, at: Timestamp::now() };
        if self.queue.try_send(recorded).is_err() {
            self.dropped.increment();
        }
    }

    /// Returns the number of events that were dropped, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.dropped.value()
    }

    /// Returns the number of events that the spam filter dropped: those about one object beyond a burst of 25 and one
    /// in five minutes. Only [`EventApi::Core`] has the filter.
    ///
    /// A dropped repetition is included in the count of its event when that is written the next time.
    #[doc(alias = "EventSourceObjectSpamFilter")]
    pub fn filtered(&self) -> u64 {
        self.filtered.value()
    }
}

impl Event {
    /// Creates an event for something expected.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason: reason.into(), action: action.into(), note: note.into(), related: None }
    }

    /// Creates an event for something that may need attention.
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Warning, ..Self::normal(reason, action, note) }
    }

    /// Adds another object that the event is about.
    #[must_use]
    pub fn related<K: Resource>(mut self, object: &K) -> Self {
        self.related = Some(reference(object));
        self
    }
}

impl EventKind {
    /// Returns the type as it is written in events: `Normal` or `Warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl EventOptions {
    /// Creates options for the events of a controller with a name like `shop.example.com/websites`.
    pub fn new(controller: impl Into<String>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim();
        Self {
            controller: controller.into(),
            instance: if host.is_empty() { "unknown".to_owned() } else { host.to_owned() },
            api: EventApi::default(),
            capacity: 1000,
            flush_deadline: Duration::from_secs(5),
            registry: None,
        }
    }

    /// Sets the name of the reporting process.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Sets the API group of the events that are written.
    #[must_use]
    pub fn api(mut self, api: EventApi) -> Self {
        self.api = api;
        self
    }

    /// Sets the number of events that may wait to be sent.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets how long sending the remaining events may take at the end.
    #[must_use]
    pub fn flush_deadline(mut self, deadline: Duration) -> Self {
        self.flush_deadline = deadline;
        self
    }

    /// Sets the registry for metrics.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }
}

/// Returns a reference to an object, for events.
fn reference<K: Resource>(object: &K) -> ObjectReference {
    let types = GroupVersionKind::of_object(object).map(|gvk| TypeMeta::from(&gvk));
    let metadata = object.metadata();
    ObjectReference {
        api_version: types.as_ref().map(|types| types.api_version.clone()),
        kind: types.map(|types| types.kind),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}
