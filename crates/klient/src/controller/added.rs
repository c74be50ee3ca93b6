//! Sources that are added to and removed from a controller while it runs.
//!
//! The caches of running sources take part in the wait for own writes. A source that is removed, or whose cache does not follow the
//! server, never holds up a reconcile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use klient_core::Resource;
use tokio::sync::watch;

use super::{
    Controller, Keys, Source,
    key_queue::KeyQueue,
    source::{AnySource, Listening},
    trigger::{self, Owners},
};
use crate::{
    Error, ErrorKind,
    informer::{Event, InformerState, InformerStatus},
    metrics::Counter,
    writes::Write,
};

/// The sources that were added to a controller after it was built.
#[derive(Default)]
pub(super) struct AddedSources {
    /// The number of sources, so that controllers without any take no lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_name: BTreeMap<String, Added>,
    /// Where the keys go, while the controller runs.
    target: Option<Target>,
}

#[derive(Clone)]
struct Target {
    queue: Arc<KeyQueue>,
    filtered: Counter,
}

struct Added {
    // Dropped first: no key is added after the source was removed.
    listening: Option<Box<dyn Listening>>,
    source: Arc<dyn AnySource>,
    /// Dropped when the source is removed, which ends the waits for its cache.
    present: watch::Sender<()>,
}

/// The cache of a source that was added, until the source is removed.
pub(super) struct AddedCache {
    source: Arc<dyn AnySource>,
    present: watch::Receiver<()>,
}

impl AddedCache {
    /// Waits until the cache shows a write, or until the source is removed. Fails if the cache does not follow the server: unlike the other
    /// sources of a controller, one that was added may be denied or not served, also before its first list.
    pub(super) async fn wait_for_write(&self, write: &Write) -> Result<(), Error> {
        let (mut present, mut states) = (self.present.clone(), self.source.states());
        let follows = |state: &InformerState| matches!(state, InformerState::Synced | InformerState::Stale { .. });
        tokio::select! {
            biased;
            // Nothing is ever sent: this is the drop of the sender.
            _ = present.changed() => Ok(()),
            shown = self.source.wait_for_write(write) => shown,
            _ = states.wait_for(|state| !follows(state)) => {
                let message = format!("the cache of {} does not follow the server", self.source.resource());
                Err(Error::new(ErrorKind::Canceled, message))
            }
        }
    }
}

impl Added {
    fn begin(&mut self, target: &Target) {
        self.source.start();
        self.listening = Some(self.source.listen(Arc::clone(&target.queue), target.filtered.clone()));
    }
}

impl AddedSources {
    /// Starts all sources, also those that are added later.
    pub(super) fn begin(&self, queue: &Arc<KeyQueue>, filtered: &Counter) {
        let mut state = self.lock();
        let target = Target { queue: Arc::clone(queue), filtered: filtered.clone() };
        state.by_name.values_mut().for_each(|added| added.begin(&target));
        state.target = Some(target);
    }

    /// Stops all sources.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.target = None;
        let ended = std::mem::take(&mut state.by_name);
        self.count.store(0, Ordering::Relaxed);
        drop(state);
        drop(ended);
    }

    fn add(&self, name: String, source: Box<dyn AnySource>) -> Result<(), Error> {
        let mut state = self.lock();
        if state.by_name.contains_key(&name) {
            let message = format!("cannot add source {name:?}: the controller has one with this name, remove it first");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut added = Added { listening: None, source: source.into(), present: watch::Sender::new(()) };
        if let Some(target) = state.target.clone() {
            added.begin(&target);
        }
        state.by_name.insert(name, added);
        self.count.store(state.by_name.len(), Ordering::Relaxed);
        Ok(())
    }

    fn remove(&self, name: &str) -> bool {
        let mut state = self.lock();
        let removed = state.by_name.remove(name);
        self.count.store(state.by_name.len(), Ordering::Relaxed);
        // Dropped without the lock: the informer may end with it.
        drop(state);
        removed.is_some()
    }

    /// Returns the caches of the sources that run and will show a write.
    pub(super) fn caches_of(&self, write: &Write) -> Vec<AddedCache> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let resource = write.resource.to_string();
        let state = self.lock();
        let running = state.by_name.values().filter(|added| added.listening.is_some());
        let showing = running.filter(|added| added.source.resource() == resource && added.source.covers(&write.key));
        showing
            .map(|added| AddedCache { source: Arc::clone(&added.source), present: added.present.subscribe() })
            .collect()
    }

    pub(super) fn status(&self) -> BTreeMap<String, InformerStatus> {
        self.lock().by_name.iter().map(|(name, added)| (name.clone(), added.source.status())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Controller<K> {
    /// Adds a source while the controller runs or before: for kinds that are known only at run time. The function adds keys, as that of
    /// [`watches`](super::ControllerBuilder::watches).
    ///
    /// The name identifies the source, in [`remove_source`](Self::remove_source) and in the [status](Self::status). A kind that is not
    /// installed, or that the server denies access to, shows there, and harms no other source. A running controller starts the
    /// informer at once; it must be called on a Tokio runtime then.
    ///
    /// Reconciles [wait](super::ControllerBuilder::wait_for_own_writes) until the cache of the source shows their own writes, too, unless
    /// the cache does not follow the server, or the source is removed.
    ///
    /// ```no_run
    /// use klient::{Client, Controller, InformerFactory, ObjectKey, resource::ApiResource};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn add(controller: Controller<ConfigMap>, client: Client, kind: ApiResource) -> Result<(), klient::Error> {
    /// let objects = InformerFactory::new(client).dynamic(kind.clone());
    /// controller.add_source(kind.group_resource().to_string(), objects, |event, keys| {
    ///     keys.add(ObjectKey::namespaced(event.key().namespace().unwrap_or("default"), "policy"));
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an [`AlreadyExists`](ErrorKind::AlreadyExists) error if there is a source with this name.
    pub fn add_source<O: Resource>(
        &self,
        name: impl Into<String>,
        source: impl Into<Source<O>>,
        map: impl Fn(&Event<O>, &mut Keys<'_>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.inner.added.add(name.into(), source.into().connect(Arc::new(map)))
    }

    /// Adds a source of objects that this controller's objects own, as [`owns`](super::ControllerBuilder::owns) does; see
    /// [`add_source`](Self::add_source).
    ///
    /// # Errors
    ///
    /// Returns an [`AlreadyExists`](ErrorKind::AlreadyExists) error if there is a source with this name.
    pub fn add_owned<O: Resource>(&self, name: impl Into<String>, source: impl Into<Source<O>>) -> Result<(), Error> {
        let map = trigger::owners(self.inner.owner.clone(), Owners::Controller);
        self.inner.added.add(name.into(), source.into().connect(map))
    }

    /// Removes a source that was added. Its events add no keys any more, and its informer ends unless others use it. Returns whether there
    /// was a source with this name.
    pub fn remove_source(&self, name: &str) -> bool {
        self.inner.added.remove(name)
    }
}
