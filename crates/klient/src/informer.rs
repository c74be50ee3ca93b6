//! Informers: a local, indexed, always current copy of the objects of one kind, shared by everyone in the process.
//!
//! [`SharedInformer`] joins the parts: the [`Reflector`] lists and watches, the [`DeltaFifo`] holds what came, the
//! [store](ThreadSafeStore) takes it in batches, and [handlers](EventHandler) are told afterwards. The [`Lister`] reads.
//! Objects stay in the form they arrived in until somebody asks for the typed one. In client-go: `tools/cache`.

mod builder;
mod delta_fifo;
#[cfg(feature = "client")]
mod factory;
mod handler;
mod index;
mod list_watch;
mod lister;
mod metrics;
mod object;
mod processor;
mod reflector;
mod registration;
mod run;
mod store;
mod trie;

use std::{
    fmt,
    future::Future,
    sync::{Arc, PoisonError},
    time::Duration,
};

use klient_core::{ObjectKey, Resource, ResourceVersion};

#[cfg(feature = "client")]
pub use self::factory::InformerFactory;
pub use self::{
    builder::{Form, InformerBuilder},
    delta_fifo::{Delta, DeltaBatch, DeltaFifo, Deltas, Tombstone},
    handler::{Event, EventHandler, EventStream, FilteringHandler, HandlerFuncs, HandlerOptions},
    index::{Index, IndexFunc, IndexValues, Indexers},
    list_watch::{ListItems, ListWatch, WatchEvents},
    lister::{Lister, NamespaceLister},
    object::CachedObject,
    reflector::{
        Change, ErrorHandler, FirstRead, InformerState, InformerStatus, Reflector, ReflectorOptions, ReflectorStore,
        Relist,
    },
    registration::Registration,
    store::{Batch, Keyed, Objects, ObjectsIter, Snapshot, ThreadSafeStore},
};
use self::{handler::Listener, processor::Shared, run::Running};
use crate::{Error, ErrorKind};

/// The name of the index by namespace, which listers add when they first need it.
pub const NAMESPACE_INDEX: &str = "namespace";

/// A local copy of the objects of one kind, kept current by one watch for all who use it.
///
/// A handle: clones share everything. It does nothing until [`start`](Self::start), and stops when the last handle is gone,
/// listers, registrations and streams included.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client};
/// use klient::informer::{HandlerFuncs, IndexFunc, SharedInformer};
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
pub struct SharedInformer<K: Resource> {
    handle: Arc<Handle<K>>,
}

/// What all handles share; when it goes, the informer stops.
pub(crate) struct Handle<K: Resource> {
    shared: Arc<Shared<K>>,
    running: std::sync::Mutex<Running>,
}

impl<K: Resource> SharedInformer<K> {
    /// An informer with default options.
    pub fn new(source: impl ListWatch<Kind = K>) -> Self {
        Self::builder(source).build()
    }

    /// An informer, to be set up further.
    pub fn builder<L: ListWatch<Kind = K>>(source: L) -> InformerBuilder<L> {
        InformerBuilder::new(source)
    }

    /// Begins to list and watch, on the current Tokio runtime. Of no effect the second time.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        self.handle.start();
    }

    /// Stops for good, once every handler has been told what it has still to be told.
    pub async fn stop(&self) {
        let task = self.handle.running.lock().unwrap_or_else(PoisonError::into_inner).stop();
        if let Some(task) = task {
            // Either it has ended, or it was aborted: both are what was asked for.
            let _ = task.await;
        }
        self.handle.shared.close();
    }

    /// Runs until the signal comes, then stops as [`stop`](Self::stop) does.
    pub async fn run_until(&self, signal: impl Future<Output = ()>) {
        self.start();
        signal.await;
        self.stop().await;
    }

    /// Whether the first list is in the cache.
    pub fn has_synced(&self) -> bool {
        *self.handle.shared.synced.borrow()
    }

    /// Waits until the first list is in the cache.
    ///
    /// As long as it takes: a kind may be installed later, and rights may be given later. [`status`](Self::status) tells what it
    /// waits for.
    ///
    /// # Errors
    ///
    /// If the informer is stopped.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let mut synced = self.handle.shared.synced.subscribe();
        let mut states = self.handle.shared.board.states();
        tokio::select! {
            biased;
            _ = synced.wait_for(|synced| *synced) => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// Waits until the cache has seen a version, such as the one that a write of yours returned: afterwards reads show that
    /// write, or a later state.
    ///
    /// Put a time limit on it: a write that the informer's selectors do not match shows only with the next bookmark, after
    /// about a minute; and a version that is not a number never shows.
    ///
    /// # Errors
    ///
    /// If the informer is stopped.
    pub async fn wait_until_seen(&self, version: &ResourceVersion) -> Result<(), Error> {
        self.unless_stopped(self.handle.shared.seen(version)).await
    }

    /// Waits until the cache has seen a deletion, such as one of yours: until an object is gone, is another one than the one
    /// with that UID, or waits for its finalizers.
    ///
    /// Put a time limit on it.
    ///
    /// # Errors
    ///
    /// If the informer is stopped.
    pub async fn wait_until_deleted(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), Error> {
        let gone = |store: &ThreadSafeStore<CachedObject<K>>| {
            let Some(object) = store.get(key) else { return true };
            let another = uid.is_some_and(|uid| object.uid().as_deref() != Some(uid));
            another || object.deletion_timestamp().is_some()
        };
        self.unless_stopped(self.handle.shared.until(gone)).await
    }

    async fn unless_stopped(&self, waiting: impl Future<Output = ()>) -> Result<(), Error> {
        let mut states = self.handle.shared.board.states();
        tokio::select! {
            biased;
            () = waiting => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// Adds a handler, at any time. It is told first of what is in the cache, then of every change, in order.
    ///
    /// It is called on a task of its own. Dropping the registration removes it.
    #[must_use = "dropping the registration removes the handler"]
    #[doc(alias = "AddEventHandler")]
    pub fn add_handler(&self, handler: impl EventHandler<K>) -> Registration<K> {
        self.add_handler_with(HandlerOptions::default(), handler)
    }

    /// Adds a handler with options; otherwise as [`add_handler`](Self::add_handler).
    #[must_use = "dropping the registration removes the handler"]
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn add_handler_with(&self, options: HandlerOptions, handler: impl EventHandler<K>) -> Registration<K> {
        let listener = Listener::new();
        self.handle.shared.spawn(Box::pin(Arc::clone(&listener).run(handler)));
        self.register(listener, options)
    }

    /// The events as a stream: first what is in the cache, then every change.
    pub fn events(&self) -> EventStream<K> {
        self.events_with(HandlerOptions::default())
    }

    /// The events as a stream, with options.
    pub fn events_with(&self, options: HandlerOptions) -> EventStream<K> {
        let listener = Listener::new();
        let registration = self.register(Arc::clone(&listener), options);
        EventStream::new(listener, registration)
    }

    fn register(&self, listener: Arc<Listener<K>>, options: HandlerOptions) -> Registration<K> {
        let resync = options.resync.map(|period| period.max(Duration::from_secs(1)));
        let id = self.handle.shared.register(Arc::clone(&listener), resync);
        Registration::new(Arc::clone(&self.handle), listener, id)
    }

    /// Reads the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.handle))
    }

    /// The cache itself: for snapshots and for indices by name.
    ///
    /// It outlives the informer, and is not kept current then.
    pub fn store(&self) -> &ThreadSafeStore<CachedObject<K>> {
        &self.handle.shared.store
    }

    /// Adds an index, before or after the start.
    ///
    /// # Errors
    ///
    /// If there is an index of that name.
    pub fn add_index(
        &self,
        name: impl Into<Arc<str>>,
        function: IndexFunc<CachedObject<K>>,
    ) -> Result<Index<CachedObject<K>>, Error> {
        self.store().add_index(name, function)
    }

    /// How it stands.
    pub fn status(&self) -> InformerStatus {
        self.handle.shared.board.status()
    }

    /// Follows what it is at: synced, stale, denied, and so on.
    pub fn states(&self) -> tokio::sync::watch::Receiver<InformerState> {
        self.handle.shared.board.states()
    }
}

impl<K: Resource> Handle<K> {
    fn start(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).start();
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
fn stopped() -> Error {
    Error::new(ErrorKind::Canceled, "the informer is stopped")
}
