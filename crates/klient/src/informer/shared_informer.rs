//! `SharedInformer`: the handle that users hold.

use std::{
    fmt,
    future::Future,
    sync::{Arc, PoisonError},
    time::Duration,
};

use klient_core::{ObjectKey, Resource, ResourceVersion};

#[cfg(feature = "client")]
use super::narrow::Narrow;
use super::{handler::Listener, processor::Processor, run::Lifecycle, scope::Scope, *};
use crate::{Error, ErrorKind, recording::Recorder};

/// A local copy of the objects of one kind, kept current by one watch for all of its users.
///
/// This is a handle: clones share one informer. The informer does nothing until [`start`](Self::start). It stops when the last
/// handle, lister, registration and event stream has been dropped.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client};
/// use klient::{SharedInformer, informer::{HandlerFuncs, IndexFunc}};
///
/// # async fn watch_pods() -> Result<(), Box<dyn std::error::Error>> {
/// let informer = SharedInformer::new(Api::<Pod>::all(Client::infer()?));
/// let by_node = informer.add_index("node", IndexFunc::field("spec.nodeName".parse()?))?;
/// let _registration = informer.add_handler(
///     HandlerFuncs::new().on_update(|old, new| println!("{} {:?} -> {:?}", new.key(), old, new)),
/// );
/// informer.start();
/// informer.wait_for_sync().await?;
/// for pod in &by_node.get("node-7") {
///     println!("{} is on node-7: {:?}", pod.key(), pod.decode()?.status);
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SharedIndexInformer")]
#[doc(alias = "Cache")]
pub struct SharedInformer<K: Resource> {
    pub(super) handle: Arc<Handle<K>>,
}

/// The part that all handles share. Dropping it stops the informer.
pub(crate) struct Handle<K: Resource> {
    pub(super) processor: Arc<Processor<K>>,
    pub(super) lifecycle: std::sync::Mutex<Lifecycle>,
    /// Whether users that do not know of each other read the cache.
    #[cfg_attr(not(feature = "client"), allow(dead_code, reason = "only replicas that share keys narrow caches"))]
    pub(super) is_shared: bool,
}

impl<K: Resource> SharedInformer<K> {
    /// Creates an informer with default options.
    pub fn new(source: impl ListWatch<Kind = K>) -> Self {
        Self::builder(source).build()
    }

    /// Creates a builder for an informer with other options.
    pub fn builder<L: ListWatch<Kind = K>>(source: L) -> InformerBuilder<L> {
        InformerBuilder::new(source)
    }

    /// Starts to list and watch, on the current Tokio runtime. Later calls have no effect.
    ///
    /// # Panics
    ///
    /// Panics if called outside of a Tokio runtime.
    pub fn start(&self) {
        self.handle.start();
    }

    /// Stops the informer, and waits until the handlers have been called with the events that wait for them. Every call waits, also
    /// when several callers stop one informer.
    ///
    /// A stopped informer cannot be started again.
    pub async fn stop(&self) {
        let end = self.handle.lifecycle.lock().unwrap_or_else(PoisonError::into_inner).stop();
        if let Some(end) = end {
            end.wait().await;
        }
        self.handle.processor.close();
    }

    /// Starts the informer, waits for a signal, then [stops](Self::stop) the informer.
    #[doc(alias = "Run")]
    pub async fn run_until(&self, signal: impl Future<Output = ()>) {
        self.start();
        signal.await;
        self.stop().await;
    }

    /// Returns whether the first list is in the cache.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        *self.handle.processor.synced.borrow()
    }

    /// Waits until the first list is in the cache.
    ///
    /// There is no time limit, since a kind may be installed later and permissions may be granted later. [`status`](Self::status)
    /// shows the current problem.
    ///
    /// # Errors
    ///
    /// Returns an error if the informer is stopped.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let mut synced = self.handle.processor.synced.subscribe();
        let mut states = self.handle.processor.board.states();
        tokio::select! {
            biased;
            _ = synced.wait_for(|synced| *synced) => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// Waits until the cache has a resource version or a later one. After waiting for the version that a write returned, reads
    /// show that write or a later state.
    ///
    /// Use a timeout. A write of an object that the informer's selectors do not match becomes visible only with the next
    /// bookmark, after about a minute. A version that is not a number never becomes visible.
    ///
    /// # Errors
    ///
    /// Returns an error if the informer is stopped.
    pub async fn wait_until_seen(&self, version: &ResourceVersion) -> Result<(), Error> {
        self.unless_stopped(self.handle.processor.wait_until_seen(version)).await
    }

    /// Waits until the cache shows an object as a write returned it, or a newer state.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use klient::{Api, Patch, SharedInformer};
    /// # async fn write(maps: Api<ConfigMap>, informer: SharedInformer<ConfigMap>, patch: Patch) -> klient::Result<()> {
    /// let menu = maps.patch("menu", patch).await?;
    /// informer.wait_for_write(&menu).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the informer is stopped, or if the object has no resource version: it was never stored.
    pub async fn wait_for_write(&self, object: &K) -> Result<(), Error> {
        match object.metadata().resource_version.as_deref() {
            Some(version) if !version.is_empty() => {
                self.wait_until_shown(&ObjectKey::of(object), &version.into()).await
            }
            _ => Err(Error::new(ErrorKind::Invalid, format!("{} has no resource version", ObjectKey::of(object)))),
        }
    }

    /// Waits until the cache shows a deletion: until the object is not cached, has another UID, or has a deletion timestamp
    /// and waits for its finalizers.
    ///
    /// Use a timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if the informer is stopped.
    pub async fn wait_until_deleted(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), Error> {
        let deleted = |store: &ThreadSafeStore<CachedObject<K>>| {
            let Some(object) = store.get(key) else { return true };
            let is_another = uid.is_some_and(|uid| object.uid().as_deref() != Some(uid));
            is_another || object.deletion_timestamp().is_some()
        };
        self.unless_stopped(self.handle.processor.wait_until(deleted)).await
    }

    /// Waits until the cache shows a write to an object: this version or a newer one. Of versions that are not numbers, only the
    /// same one is recognised.
    pub(crate) async fn wait_until_shown(&self, key: &ObjectKey, version: &ResourceVersion) -> Result<(), Error> {
        let is_reached = |shown: &ResourceVersion| shown == version || shown.is_newer_than(version);
        let shown = |store: &ThreadSafeStore<CachedObject<K>>| {
            is_reached(&store.resource_version())
                || store.get(key).is_some_and(|object| is_reached(&object.resource_version()))
        };
        self.unless_stopped(self.handle.processor.wait_until(shown)).await
    }

    /// Records the events of this informer from now on; see [`recording`](crate::recording). The first recorder stays.
    pub fn record(&self, recorder: &Recorder) {
        self.handle.processor.record(recorder);
    }

    /// Returns the part of the resource that the cache covers.
    pub(crate) fn scope(&self) -> &Scope {
        &self.handle.processor.scope
    }

    /// Returns whether the cache may have an object with this key.
    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        self.scope().covers(key) && self.handle.has_slot_of(key)
    }

    async fn unless_stopped(&self, waiting: impl Future<Output = ()>) -> Result<(), Error> {
        let mut states = self.handle.processor.board.states();
        tokio::select! {
            biased;
            () = waiting => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// Adds a handler, at any time. The handler is called with each cached object as added, then with every change in order.
    ///
    /// The handler runs on its own task. Dropping the registration removes it; [`Registration::remove`] also waits for a call that
    /// is running.
    #[must_use = "dropping the registration removes the handler"]
    #[doc(alias = "AddEventHandler")]
    pub fn add_handler(&self, handler: impl EventHandler<K>) -> Registration<K> {
        self.add_handler_with(HandlerOptions::default(), handler)
    }

    /// Adds a handler with options; see [`add_handler`](Self::add_handler).
    #[must_use = "dropping the registration removes the handler"]
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn add_handler_with(&self, options: HandlerOptions, handler: impl EventHandler<K>) -> Registration<K> {
        let listener = Listener::new();
        self.handle.processor.spawn(Box::pin(Arc::clone(&listener).run(handler)));
        self.register(listener, options)
    }

    /// Returns a stream of events: each cached object as added, then every change in order.
    pub fn events(&self) -> EventStream<K> {
        self.events_with(HandlerOptions::default())
    }

    /// Returns a stream of events with options; see [`events`](Self::events).
    pub fn events_with(&self, options: HandlerOptions) -> EventStream<K> {
        let listener = Listener::new();
        let registration = self.register(Arc::clone(&listener), options);
        EventStream::new(listener, registration)
    }

    fn register(&self, listener: Arc<Listener<K>>, options: HandlerOptions) -> Registration<K> {
        let resync = options.resync.map(|period| period.max(Duration::from_secs(1)));
        let id = self.handle.processor.register(Arc::clone(&listener), resync);
        Registration::new(Arc::clone(&self.handle), listener, id)
    }

    /// Returns a lister, which reads the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.handle))
    }

    /// Returns the cache, for snapshots and for indices by name.
    ///
    /// A clone of the store outlives the informer, but is not updated any more.
    pub fn store(&self) -> &ThreadSafeStore<CachedObject<K>> {
        &self.handle.processor.store
    }

    /// Adds an index, before or after the informer was started.
    ///
    /// All cached objects are in the index when this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if there is an index with this name.
    pub fn add_index(
        &self,
        name: impl Into<Arc<str>>,
        function: IndexFunc<CachedObject<K>>,
    ) -> Result<Index<CachedObject<K>>, Error> {
        self.store().add_index(name, function)
    }

    /// Returns the current status.
    pub fn status(&self) -> InformerStatus {
        self.handle.processor.board.status()
    }

    /// Returns a receiver of state changes: synced, stale, denied and so on.
    pub fn states(&self) -> tokio::sync::watch::Receiver<InformerState> {
        self.handle.processor.board.states()
    }
}

impl<K: Resource> Handle<K> {
    /// Narrows the cache of an informer that is not started. Returns the reason if that is not possible.
    #[cfg(feature = "client")]
    pub(crate) fn narrow(&self, narrow: Arc<Narrow<CachedObject<K>>>) -> Result<(), &'static str> {
        let lifecycle = self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_shared {
            return Err("its informer belongs to a factory or to several namespaces, and other users may read it");
        }
        if !lifecycle.is_new() {
            return Err("its informer was started before the manager was built");
        }
        let is_set = self.processor.narrow.set(narrow);
        drop(lifecycle);
        is_set.map_err(|_| "another controller that caches its own shard has the same informer")
    }

    /// Returns whether the cache may have an object with this key, as far as the slots that it has decide.
    pub(crate) fn has_slot_of(&self, key: &ObjectKey) -> bool {
        let cached = || self.processor.store.get(key).is_some();
        self.processor.narrow.get().is_none_or(|narrow| narrow.covers(key, cached))
    }

    pub(super) fn start(&self) {
        self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner).start();
    }
}

impl<K: Resource> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<K: Resource> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status();
        f.debug_struct("SharedInformer").field("resource", &status.resource).field("state", &status.state).finish()
    }
}

#[cold]
pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::Canceled, "the informer is stopped")
}
