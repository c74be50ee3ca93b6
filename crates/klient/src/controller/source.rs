//! Where a controller hears of changes: an informer, and what of its events matters.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use klient_core::{ObjectKey, Resource};

use super::{
    intake::Intake,
    predicate::Predicate,
    reason::{Cause, Reason},
};
use crate::{
    Error,
    informer::{Event, HandlerOptions, InformerStatus, Registration, SharedInformer},
    writes::{Left, Write},
};

/// An informer, and what of its events matters to a controller.
///
/// ```no_run
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client};
/// use klient::controller::{Predicate, Source};
/// use klient::informer::SharedInformer;
///
/// # fn source() -> Result<(), klient::Error> {
/// let deployments = SharedInformer::new(Api::<Deployment>::all(Client::infer()?));
/// let source = Source::new(deployments).only(Predicate::generation_changed()).resync(Duration::from_secs(600));
/// # Ok(())
/// # }
/// ```
pub struct Source<K: Resource> {
    pub(super) informer: SharedInformer<K>,
    predicate: Option<Predicate<K>>,
    resync: Option<Duration>,
    priority: i8,
}

/// From an event to keys.
pub(super) type Mapping<K> = Arc<dyn Fn(&Event<K>, &mut Keys<'_>) + Send + Sync>;

/// The keys that a change leads to.
pub struct Keys<'a> {
    add: &'a mut dyn FnMut(ObjectKey),
}

impl Keys<'_> {
    /// Has the object with this key reconciled.
    pub fn add(&mut self, key: ObjectKey) {
        (self.add)(key);
    }
}

impl<K: Resource> Source<K> {
    /// All events of an informer.
    pub fn new(informer: SharedInformer<K>) -> Self {
        Self { informer, predicate: None, resync: None, priority: 0 }
    }

    /// Only events of which this holds, too.
    #[must_use]
    pub fn only(mut self, predicate: Predicate<K>) -> Self {
        self.predicate = Some(match self.predicate {
            None => predicate,
            Some(others) => others.and(predicate),
        });
        self
    }

    /// Shows all objects again from time to time, whether they changed or not.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Has its keys go before or after those of other sources; 0 unless this is called.
    ///
    /// What was there at the beginning, and what is shown again unchanged, has a lower priority than changes in any case.
    #[must_use]
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// Forgets the type.
    pub(super) fn connect(self, map: Mapping<K>) -> Box<dyn Connected> {
        let resource = self.informer.status().resource.into();
        Box::new(Connection { source: self, map, resource })
    }
}

impl<K: Resource> From<SharedInformer<K>> for Source<K> {
    fn from(informer: SharedInformer<K>) -> Self {
        Self::new(informer)
    }
}

/// A source of any kind, with where its events lead.
pub(super) trait Connected: Send + Sync {
    /// Which resource it shows, as `deployments.apps`.
    fn resource(&self) -> &str;

    fn start(&self);

    fn status(&self) -> InformerStatus;

    /// Puts events into the queue from now on, until the outcome is dropped.
    fn listen(&self, intake: Arc<Intake>) -> Box<dyn Listening>;

    /// Waits until the cache shows a write.
    fn shows<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Error>>;
}

/// A source that puts events into the queue.
pub(super) trait Listening: Send + Sync {
    /// Waits until all objects of the first list are in the queue.
    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>>;
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

struct Connection<K: Resource> {
    source: Source<K>,
    map: Mapping<K>,
    resource: Arc<str>,
}

impl<K: Resource> Connected for Connection<K> {
    fn resource(&self) -> &str {
        &self.resource
    }

    fn start(&self) {
        self.source.informer.start();
    }

    fn status(&self) -> InformerStatus {
        self.source.informer.status()
    }

    fn listen(&self, intake: Arc<Intake>) -> Box<dyn Listening> {
        let (map, predicate) = (Arc::clone(&self.map), self.source.predicate.clone());
        let (resource, priority) = (Arc::clone(&self.resource), self.source.priority);
        let handler = move |event: &Event<K>| {
            if predicate.as_ref().is_some_and(|predicate| !predicate.holds(event)) {
                intake.dropped();
                return;
            }
            let cause = cause_of(event);
            let priority = match cause {
                Cause::Initial | Cause::Resync => priority.saturating_add(UNCHANGED),
                _ => priority,
            };
            let object = event.object();
            let resource_version = object.resource_version().as_str().parse().ok();
            let mut add = |key: ObjectKey| {
                let object = Some((Arc::clone(&resource), object.key().clone()));
                intake.add(key, Reason { cause, object, resource_version }, priority);
            };
            map(event, &mut Keys { add: &mut add });
        };
        let options = HandlerOptions { resync: self.source.resync };
        Box::new(self.source.informer.add_handler_with(options, handler))
    }

    fn shows<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Error>> {
        let informer = &self.source.informer;
        Box::pin(async move {
            match &write.left {
                Left::Version(version) => informer.wait_until_seen(version).await,
                Left::Nothing { uid } => informer.wait_until_deleted(&write.key, uid.as_deref()).await,
            }
        })
    }
}

impl<K: Resource> Listening for Registration<K> {
    fn wait_for_sync(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Registration::wait_for_sync(self))
    }
}

fn cause_of<K: Resource>(event: &Event<K>) -> Cause {
    match event {
        Event::Added { in_initial_list: true, .. } => Cause::Initial,
        Event::Added { .. } => Cause::Added,
        Event::Updated { .. } if event.is_resync() => Cause::Resync,
        Event::Updated { .. } => Cause::Updated,
        Event::Deleted(_) => Cause::Deleted,
    }
}

impl<K: Resource> fmt::Debug for Source<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("informer", &self.informer).field("resync", &self.resync).finish_non_exhaustive()
    }
}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// How much lower what has not changed is than what has.
const UNCHANGED: i8 = -50;
