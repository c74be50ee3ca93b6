//! The sources of a controller's events: informers with predicates, and streams of keys.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use futures_core::Stream;
use klient_core::{ObjectKey, Resource};
use tokio::sync::watch;

use super::{
    key_queue::KeyQueue,
    predicate::Predicate,
    reason::{Reason, ReasonKind},
    trigger::Mapping,
};
use crate::{
    Error,
    informer::{Event, HandlerOptions, InformerState, InformerStatus, Registration, SharedInformer},
    metrics::Counter,
    recording::Recorder,
    workqueue::AddOptions,
    writes::{StoredState, Write, WriteEffect},
};

/// An informer, and which of its events a controller handles.
///
/// A [`SharedInformer`] and an [`Api`](crate::Api) convert into a source. From an `Api`, the source creates an informer of
/// its own; controllers that share a cache use a [`SharedInformer`] or an
/// [`InformerFactory`](crate::informer::InformerFactory).
///
/// ```no_run
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client, controller::{Predicate, Source}};
///
/// # fn source() -> Result<(), klient::Error> {
/// let deployments: Api<Deployment> = Api::all(Client::infer()?);
/// let source = Source::from(deployments).only(Predicate::generation_changed()).resync(Duration::from_secs(600));
/// # Ok(())
/// # }
/// ```
pub struct Source<K: Resource> {
    pub(super) informer: SharedInformer<K>,
    predicate: Option<Predicate<K>>,
    resync: Option<Duration>,
    priority: i8,
}

/// The keys to reconcile because of one event.
///
/// The function of [`watches`](super::ControllerBuilder::watches) adds keys to it.
pub struct Keys<'a> {
    queue: &'a KeyQueue,
    /// The predicate that ignores the event: its keys are recorded, and not queued.
    ignored_by: Option<&'a str>,
    kind: ReasonKind,
    source: &'a Arc<str>,
    object: &'a ObjectKey,
    resource_version: Option<u64>,
    options: AddOptions,
}

impl Keys<'_> {
    /// Queues the object with this key.
    pub fn add(&mut self, key: ObjectKey) {
        if let Some(predicate) = self.ignored_by {
            if let Some(history) = self.queue.history() {
                history.filtered(&key, predicate, self.source, self.resource_version);
            }
            return;
        }
        let reason = Reason {
            kind: self.kind,
            source: Some(Arc::clone(self.source)),
            object: Some(self.object.clone()),
            resource_version: self.resource_version,
        };
        self.queue.add(key, reason, self.options);
    }
}

impl<K: Resource> Source<K> {
    /// Creates a source of all events of an informer.
    pub fn new(informer: SharedInformer<K>) -> Self {
        Self { informer, predicate: None, resync: None, priority: 0 }
    }

    /// Ignores events for which the predicate does not hold. With several predicates, all of them have to hold.
    #[must_use]
    #[doc(alias = "WithEventFilter")]
    #[doc(alias = "WithPredicates")]
    pub fn only(mut self, predicate: Predicate<K>) -> Self {
        self.predicate = Some(match self.predicate {
            None => predicate,
            Some(others) => others.and(predicate),
        });
        self
    }

    /// Sets a period after which all objects are reconciled again, whether they changed or not.
    #[must_use]
    #[doc(alias = "SyncPeriod")]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Sets the priority of this source's keys; 0 by default.
    ///
    /// Objects of the initial list and resyncs always have a lower priority than changes.
    #[must_use]
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// Erases the type.
    pub(super) fn connect(self, map: Mapping<K>) -> Box<dyn AnySource> {
        let resource = self.informer.status().resource.into();
        Box::new(MappedSource { source: self, map, resource })
    }
}

impl<K: Resource> From<SharedInformer<K>> for Source<K> {
    fn from(informer: SharedInformer<K>) -> Self {
        Self::new(informer)
    }
}

/// Creates an informer for the objects of this `Api`.
#[cfg(feature = "client")]
impl<K: Resource> From<crate::client::Api<K>> for Source<K> {
    fn from(api: crate::client::Api<K>) -> Self {
        Self::new(SharedInformer::new(api))
    }
}

/// A source of any kind, with its mapping from events to keys.
pub(super) trait AnySource: Send + Sync {
    /// Returns the name of the resource, such as `deployments.apps`.
    fn resource(&self) -> &str;

    fn start(&self);

    fn status(&self) -> InformerStatus;

    /// Returns a receiver of the state of the informer.
    fn states(&self) -> watch::Receiver<InformerState>;

    /// Records the events of the informer.
    fn record(&self, recorder: &Recorder);

    /// Adds keys to the queue from now on, until the output is dropped. Counts events that predicates ignored.
    fn listen(&self, queue: Arc<KeyQueue>, filtered: Counter) -> Box<dyn Listening>;

    /// Waits until the cache has its first list.
    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns whether the cache may have an object with this key.
    fn covers(&self, key: &ObjectKey) -> bool;

    /// Waits until the cache has a version of the server.
    #[cfg(feature = "client")]
    fn wait_for_version(&self, version: u64) -> BoxFuture<'_, Result<(), Error>>;

    /// Waits until the cache shows a write.
    fn wait_for_write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Error>>;
}

/// A source that adds keys to the queue.
pub(super) trait Listening: Send + Sync {
    /// Waits until the keys of all objects of the first list are in the queue.
    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>>;
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

struct MappedSource<K: Resource> {
    source: Source<K>,
    map: Mapping<K>,
    resource: Arc<str>,
}

impl<K: Resource> AnySource for MappedSource<K> {
    fn resource(&self) -> &str {
        &self.resource
    }

    fn start(&self) {
        self.source.informer.start();
    }

    fn status(&self) -> InformerStatus {
        self.source.informer.status()
    }

    fn states(&self) -> watch::Receiver<InformerState> {
        self.source.informer.states()
    }

    fn record(&self, recorder: &Recorder) {
        self.source.informer.record(recorder);
    }

    fn listen(&self, queue: Arc<KeyQueue>, filtered: Counter) -> Box<dyn Listening> {
        let (map, predicate) = (Arc::clone(&self.map), self.source.predicate.clone());
        let (resource, priority) = (Arc::clone(&self.resource), self.source.priority);
        let handler = move |event: &Event<K>| {
            let ignored_by = match predicate.as_ref().filter(|predicate| !predicate.holds(event)) {
                None => None,
                Some(predicate) => {
                    filtered.increment();
                    if queue.history().is_none() {
                        return;
                    }
                    Some(predicate.rejected_by(event))
                }
            };
            let kind = kind_of(event);
            let priority = match kind {
                ReasonKind::Initial | ReasonKind::Resync => priority.saturating_add(UNCHANGED),
                _ => priority,
            };
            let object = event.object();
            let mut keys = Keys {
                queue: &queue,
                ignored_by: ignored_by.as_deref(),
                kind,
                source: &resource,
                object: object.key(),
                resource_version: object.resource_version().as_str().parse().ok(),
                options: AddOptions::default().priority(priority),
            };
            // The root of the trace of everything that the event leads to.
            let span = tracing::debug_span!(
                parent: None,
                "event",
                otel.kind = "consumer",
                resource = &*resource,
                object = %object.key(),
                kind = kind.as_str(),
                version = keys.resource_version,
            );
            span.in_scope(|| map(event, &mut keys));
        };
        let options = HandlerOptions { resync: self.source.resync };
        Box::new(self.source.informer.add_handler_with(options, handler))
    }

    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.source.informer.wait_for_sync())
    }

    fn covers(&self, key: &ObjectKey) -> bool {
        self.source.informer.covers(key)
    }

    #[cfg(feature = "client")]
    fn wait_for_version(&self, version: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.source.informer.wait_until_seen(&version.to_string().as_str().into()).await })
    }

    fn wait_for_write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Error>> {
        let informer = &self.source.informer;
        Box::pin(async move {
            match &write.effect {
                // The informer's selector does not match the object any more, if it ever did.
                WriteEffect::Stored(StoredState { labels: Some(labels), .. }) if !informer.scope().selects(labels) => {
                    informer.wait_until_deleted(&write.key, None).await
                }
                WriteEffect::Stored(state) => informer.wait_until_shown(&write.key, &state.version).await,
                WriteEffect::Deleted { uid } => informer.wait_until_deleted(&write.key, uid.as_deref()).await,
            }
        })
    }
}

impl<K: Resource> Listening for Registration<K> {
    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Registration::wait_for_sync(self))
    }
}

/// A stream of keys, with a name for reasons and logs.
pub(super) struct KeyStream {
    name: Arc<str>,
    keys: Pin<Box<dyn Stream<Item = ObjectKey> + Send>>,
}

impl KeyStream {
    pub(super) fn new(name: &str, keys: impl Stream<Item = ObjectKey> + Send + 'static) -> Self {
        Self { name: name.into(), keys: Box::pin(keys) }
    }

    /// Adds the keys of the stream to the queue until the stream ends.
    pub(super) async fn run(&mut self, queue: &KeyQueue) {
        while let Some(key) = std::future::poll_fn(|context| self.keys.as_mut().poll_next(context)).await {
            let reason = Reason { source: Some(Arc::clone(&self.name)), ..Reason::new(ReasonKind::External) };
            queue.add(key, reason, AddOptions::default());
        }
        tracing::info!(source = &*self.name, "stream of keys ended");
    }
}

fn kind_of<K: Resource>(event: &Event<K>) -> ReasonKind {
    match event {
        Event::Added { in_initial_list: true, .. } => ReasonKind::Initial,
        Event::Added { .. } => ReasonKind::Added,
        Event::Updated { .. } if event.is_resync() => ReasonKind::Resync,
        Event::Updated { .. } => ReasonKind::Updated,
        Event::Deleted(_) => ReasonKind::Deleted,
    }
}

impl<K: Resource> fmt::Debug for Source<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("informer", &self.informer).field("resync", &self.resync).finish_non_exhaustive()
    }
}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("kind", &self.kind).field("object", &self.object).finish_non_exhaustive()
    }
}

/// How much lower the priority of unchanged objects is than that of changes.
pub(super) const UNCHANGED: i8 = -50;
