//! Events about objects: what happened and why, for people who look at an object.
//!
//! Recording never waits: what does not fit into a bounded queue is dropped and counted. One future, which the program owns,
//! sends what was recorded; at the end it sends what is left, up to a deadline. What repeats becomes a series, and an
//! object about which too much is said is heard less often. In client-go: `tools/events` and `tools/record`.

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

/// Records events. Clones record to the same place.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::Client;
/// use klient::events::{Event, EventOptions, EventRecorder};
///
/// # async fn run(pod: Pod, shutdown: impl Future<Output = ()>) -> Result<(), klient::Error> {
/// let (recorder, sink) = EventRecorder::new(Client::infer()?, EventOptions::new("shop.example.com/websites"));
/// let sending = sink.run_until(shutdown); // Run it beside the controller.
/// recorder.record(&pod, Event::normal("Started", "Start", "all containers are up"));
/// sending.await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventRecorder {
    queue: mpsc::Sender<Recorded>,
    dropped: Counter,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Whether somebody should look at it.
    pub kind: EventKind,
    /// Why it happened, as a word for machines: `FailedScheduling`.
    pub reason: String,
    /// What was being done, as a word for machines: `Bind`.
    pub action: String,
    /// What happened, as a sentence for people.
    pub note: String,
    /// Another object that has to do with it.
    pub related: Option<ObjectReference>,
}

/// Whether somebody should look at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// No.
    Normal,
    /// Perhaps.
    Warning,
}

/// Which of the two forms of events is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventApi {
    /// `events.k8s.io/v1`.
    #[default]
    Events,
    /// `v1`, which servers show as the other form, too.
    Core,
}

/// How events are written.
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
    /// Which controller reports.
    pub controller: String,
    /// Which process of it; the host's name unless this is set.
    pub instance: String,
    /// Which form is written.
    pub api: EventApi,
    /// How many events may wait to be sent.
    pub capacity: usize,
    /// How long sending what is left may take at the end.
    pub flush_deadline: Duration,
    /// Where metrics are kept; the global registry unless this is set.
    pub registry: Option<Registry>,
}

/// An event on its way.
#[derive(Clone)]
struct Recorded {
    regarding: ObjectReference,
    event: Event,
    at: Timestamp,
}

impl EventRecorder {
    /// A recorder, and what sends its events.
    pub fn new(client: Client, options: EventOptions) -> (Self, EventSink) {
        let (queue, recorded) = mpsc::channel(options.capacity.max(1));
        let registry = options.registry.clone().unwrap_or_else(|| Registry::global().clone());
        let labels = &[("controller", options.controller.as_str())];
        let dropped = registry.counter(
            "klient_events_dropped_total",
            "Events that were not sent: the queue was full, or there were too many about one object.",
            labels,
        );
        let recorder = Self { queue, dropped: dropped.clone() };
        (recorder, EventSink::new(client, options, recorded, dropped))
    }

    /// Records what happened to an object. Never waits.
    #[doc(alias = "Eventf")]
    pub fn record<K: Resource>(&self, object: &K, event: Event) {
        self.record_ref(reference(object), event);
    }

    /// Records what happened to an object that is not at hand. Never waits.
    pub fn record_ref(&self, regarding: ObjectReference, event: Event) {
        let recorded = Recorded { regarding, event, at: Timestamp::now() };
        if self.queue.try_send(recorded).is_err() {
            self.dropped.increment();
        }
    }

    /// How many events were not sent.
    pub fn dropped(&self) -> u64 {
        self.dropped.value()
    }
}

impl Event {
    /// Something that should happen.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason: reason.into(), action: action.into(), note: note.into(), related: None }
    }

    /// Something that should not.
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Warning, ..Self::normal(reason, action, note) }
    }

    /// Names another object that has to do with it.
    #[must_use]
    pub fn related<K: Resource>(mut self, object: &K) -> Self {
        self.related = Some(reference(object));
        self
    }
}

impl EventKind {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl EventOptions {
    /// Events of that controller: a name like `shop.example.com/websites`.
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

    /// Sets which process reports.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Sets which form is written.
    #[must_use]
    pub fn api(mut self, api: EventApi) -> Self {
        self.api = api;
        self
    }

    /// Sets how many events may wait to be sent.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets how long sending what is left may take at the end.
    #[must_use]
    pub fn flush_deadline(mut self, deadline: Duration) -> Self {
        self.flush_deadline = deadline;
        self
    }

    /// Sets where metrics are kept.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }
}

/// How an event names an object.
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
