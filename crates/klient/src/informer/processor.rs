//! From the fifo into the store, then to the handlers: each batch in one step.
//!
//! All of it happens under one lock, which a new handler takes as well: what it finds in the store and what it is told
//! afterwards fit together without gap or overlap. Readers of the store never take it.

use std::{
    cmp::Ordering,
    panic,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use klient_core::{Resource, ResourceVersion, TypeMeta};
use klient_proto::RawObject;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};

use super::{
    builder::Form,
    delta_fifo::{Delta, DeltaBatch, DeltaFifo, Tombstone},
    handler::{Event, Listener},
    object::{CachedObject, encode},
    reflector::{Change, InformerState, ReflectorStore, StatusBoard},
    store::{Batch, ThreadSafeStore},
};
use crate::{Error, ErrorKind};

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Changes an object before it is kept.
pub(super) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// What an informer's task, its handles and its handlers share.
pub(super) struct Shared<K: Resource> {
    pub(super) store: ThreadSafeStore<CachedObject<K>>,
    fifo: DeltaFifo<CachedObject<K>>,
    handlers: Mutex<Handlers<K>>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) synced: watch::Sender<bool>,
    /// The store has changed: for those who wait for a version.
    changed: Notify,
    /// A handler came that wants to be shown everything again from time to time.
    resync_changed: Notify,
    tasks: mpsc::UnboundedSender<Task>,
    types: Option<Arc<TypeMeta>>,
    form: Form,
    transform: Option<Transform<K>>,
}

struct Handlers<K> {
    list: Vec<Registered<K>>,
    next_id: u64,
    /// How many bytes the objects in the store have in wire form.
    bytes: usize,
    closed: bool,
}

struct Registered<K> {
    id: u64,
    listener: Arc<Listener<K>>,
    resync: Option<(Duration, Instant)>,
    /// Is to be shown everything again.
    syncing: bool,
}

impl<K: Resource> Shared<K> {
    pub(super) fn new(
        board: Arc<StatusBoard>,
        types: Option<Arc<TypeMeta>>,
        form: Form,
        transform: Option<Transform<K>>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Task>) {
        let store = ThreadSafeStore::new();
        let (tasks, receiver) = mpsc::unbounded_channel();
        let shared = Self {
            fifo: DeltaFifo::with_known_objects(store.clone()),
            store,
            handlers: Mutex::new(Handlers { list: Vec::new(), next_id: 0, bytes: 0, closed: false }),
            board,
            synced: watch::Sender::new(false),
            changed: Notify::new(),
            resync_changed: Notify::new(),
            tasks,
            types,
            form,
            transform,
        };
        (Arc::new(shared), receiver)
    }

    /// Runs a task as part of the informer, as soon as that runs.
    pub(super) fn spawn(&self, task: Task) {
        // After the end there is nobody to run it, and nothing for it to do.
        let _ = self.tasks.send(task);
    }

    pub(super) fn register(&self, listener: Arc<Listener<K>>, resync: Option<Duration>) -> u64 {
        let mut handlers = self.lock();
        let added = |object: &CachedObject<K>| Event::Added { object: object.clone(), in_initial_list: true };
        listener.buffer.extend(self.store.list().iter().map(added));
        if *self.synced.borrow() {
            listener.buffer.synced();
        }
        if handlers.closed {
            listener.buffer.close();
        }
        let id = handlers.next_id;
        handlers.next_id += 1;
        let resync = resync.map(|period| (period, Instant::now() + period));
        handlers.list.push(Registered { id, listener, resync, syncing: false });
        drop(handlers);
        self.resync_changed.notify_one();
        id
    }

    pub(super) fn unregister(&self, id: u64) {
        let mut handlers = self.lock();
        for gone in handlers.list.extract_if(.., |handler| handler.id == id) {
            gone.listener.buffer.abandon();
        }
    }

    /// Ends the handlers once they have been told everything.
    pub(super) fn close(&self) {
        let mut handlers = self.lock();
        handlers.closed = true;
        for handler in &handlers.list {
            handler.listener.buffer.close();
        }
        drop(handlers);
        self.fifo.close();
        self.board.set_state(InformerState::Stopped);
    }

    /// How many events wait for handlers, in all.
    pub(super) fn backlog(&self) -> usize {
        self.lock().list.iter().map(|handler| handler.listener.buffer.len()).sum()
    }

    /// Waits until the store is at a version or a later one.
    pub(super) async fn seen(&self, version: &ResourceVersion) {
        self.until(|store| store.resource_version().compare(version).is_some_and(Ordering::is_ge)).await;
    }

    /// Waits until something holds of the store.
    pub(super) async fn until(&self, holds: impl Fn(&ThreadSafeStore<CachedObject<K>>) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.store) {
                return;
            }
            changed.await;
        }
    }

    /// Shows handlers everything again when they want it, for ever.
    pub(super) async fn resync(&self) {
        loop {
            let due = self.lock().list.iter().filter_map(|handler| Some(handler.resync?.1)).min();
            let changed = self.resync_changed.notified();
            match due {
                None => changed.await,
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => self.resync_due(),
                },
            }
        }
    }

    fn resync_due(&self) {
        let now = Instant::now();
        let synced = *self.synced.borrow();
        for handler in &mut self.lock().list {
            if let Some((period, due)) = &mut handler.resync
                && *due <= now
            {
                handler.syncing = synced;
                *due = now + *period;
            }
        }
        self.fifo.resync();
        self.process();
    }

    /// Takes what is in the fifo into the store, and tells the handlers.
    fn process(&self) {
        let metrics = self.board.metrics();
        let started = metrics.map(|_| Instant::now());
        let mut handlers = self.lock();
        let Some(batch) = self.fifo.try_pop_batch() else { return };
        let first = batch.in_initial_list;
        tracing::trace!(
            target: "klient::informer::delta_fifo",
            resource = self.board.status().resource,
            keys = batch.deltas.len(),
            first,
            "a batch leaves the fifo"
        );
        let mut news =
            News { events: Vec::with_capacity(batch.deltas.len()), shown: Vec::new(), bytes: handlers.bytes };
        self.store.write(|store| news.apply(store, batch));
        handlers.bytes = news.bytes;
        handlers.tell(news, first);
        let bytes = handlers.bytes;
        if first {
            self.synced.send_replace(true);
        }
        drop(handlers);
        let objects = self.store.len();
        self.board.holds(objects, bytes);
        tracing::trace!(
            target: "klient::informer::store",
            resource = self.board.status().resource,
            objects,
            bytes,
            version = %self.store.resource_version(),
            "the cache has changed"
        );
        if let (Some(metrics), Some(started)) = (metrics, started) {
            let version = self.store.resource_version();
            metrics.processed(started.elapsed(), objects, bytes, self.backlog(), &version);
        }
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Handlers<K>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of an object that has arrived.
    fn kept(&self, arrived: CachedObject<K>) -> Result<CachedObject<K>, Error> {
        match (&self.transform, arrived.wire(), self.form) {
            (Some(transform), Some(raw), _) => self.transformed(transform, raw),
            (_, _, Form::Wire) => Ok(arrived),
            (_, _, Form::Decoded) => Ok(arrived.into_decoded()),
        }
    }

    fn transformed(&self, transform: &Transform<K>, raw: &RawObject) -> Result<CachedObject<K>, Error> {
        let mut object = raw.decode::<K>()?;
        let key = raw.key();
        let changed = panic::catch_unwind(panic::AssertUnwindSafe(|| transform(&mut object)));
        changed.map_err(|_| Error::new(ErrorKind::Invalid, format!("the transform of {} {key} panicked", K::KIND)))?;
        match self.form {
            Form::Decoded => Ok(CachedObject::from_object(object)),
            Form::Wire => Ok(CachedObject::with_types(encode(&object, raw.encoding())?, self.types.clone())),
        }
    }
}

impl<K: Resource> Handlers<K> {
    fn tell(&mut self, news: News<K>, first: bool) {
        let News { mut events, shown, .. } = news;
        let last = self.list.len().saturating_sub(1);
        for (place, handler) in self.list.iter_mut().enumerate() {
            if place == last {
                handler.listener.buffer.extend(std::mem::take(&mut events).into_iter());
            } else {
                handler.listener.buffer.extend(events.iter().cloned());
            }
            if std::mem::take(&mut handler.syncing) {
                let again = |object: &CachedObject<K>| Event::Updated { old: object.clone(), new: object.clone() };
                handler.listener.buffer.extend(shown.iter().map(again));
            }
            if first {
                handler.listener.buffer.synced();
            }
        }
    }
}

/// What there is to tell after a batch.
struct News<K> {
    events: Vec<Event<K>>,
    /// Objects that did not change and are shown again.
    shown: Vec<CachedObject<K>>,
    bytes: usize,
}

impl<K: Resource> News<K> {
    fn apply(&mut self, store: &mut Batch<'_, CachedObject<K>>, batch: DeltaBatch<CachedObject<K>>) {
        for delta in batch.deltas.into_iter().flatten() {
            match delta {
                Delta::Replaced(object) => self.put(store, object, batch.in_initial_list),
                Delta::Added(object) | Delta::Updated(object) => {
                    // What comes late or twice changes nothing: the store has a later state.
                    let late = store.get(object.key()).is_some_and(|known| !known.is_older_than(&object));
                    if !late {
                        self.put(store, object, false);
                    }
                }
                Delta::Deleted(tombstone) => self.take_out(store, tombstone),
                Delta::Sync(object) => self.shown.push(object),
            }
        }
        if let Some(version) = batch.version {
            store.set_resource_version(version);
        }
    }

    fn put(&mut self, store: &mut Batch<'_, CachedObject<K>>, object: CachedObject<K>, in_initial_list: bool) {
        self.bytes += object.wire_len();
        let old = store.insert(object.clone());
        self.bytes -= old.as_ref().map_or(0, CachedObject::wire_len);
        match old {
            None => self.events.push(Event::Added { object, in_initial_list }),
            // A list that shows it as it was.
            Some(old) if old.is_same_state(&object) => {}
            Some(old) => self.events.push(Event::Updated { old, new: object }),
        }
    }

    fn take_out(&mut self, store: &mut Batch<'_, CachedObject<K>>, tombstone: Tombstone<CachedObject<K>>) {
        let object = tombstone.object();
        let late = matches!(tombstone, Tombstone::Final(_))
            && store.get(object.key()).is_some_and(|known| object.is_older_than(known));
        if late {
            return;
        }
        if let Some(old) = store.remove(object.key()) {
            self.bytes -= old.wire_len();
            self.events.push(Event::Deleted(tombstone));
        }
    }
}

/// What the reflector fills.
pub(super) struct Feed<K: Resource>(pub(super) Arc<Shared<K>>);

impl<K: Resource> ReflectorStore for Feed<K> {
    type Object = CachedObject<K>;

    fn ingest(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        let shared = &*self.0;
        let arrived = CachedObject::with_types(object, shared.types.clone());
        // On a new list, what has not changed keeps its place in memory.
        match shared.store.get(arrived.key()) {
            Some(known) if arrived.is_known_as(&known) => Ok(known),
            _ => shared.kept(arrived),
        }
    }

    fn ingest_change(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        self.0.kept(CachedObject::with_types(object, self.0.types.clone()))
    }

    fn replace(&mut self, objects: Vec<CachedObject<K>>, version: &ResourceVersion) {
        self.0.fifo.replace(objects, version.clone());
    }

    fn change(&mut self, change: Change<CachedObject<K>>) {
        match change {
            Change::Added(object) => self.0.fifo.add(object),
            Change::Modified(object) => self.0.fifo.update(object),
            Change::Deleted(object) => self.0.fifo.delete(object),
        }
    }

    fn flush(&mut self, version: &ResourceVersion) {
        self.0.fifo.bookmark(version.clone());
        self.0.process();
    }
}

/// A reflector can fill a store directly, without handlers.
impl<K: Resource> ReflectorStore for ThreadSafeStore<CachedObject<K>> {
    type Object = CachedObject<K>;

    fn ingest(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        let arrived = CachedObject::from_wire(object);
        let known = self.get(arrived.key()).filter(|known| arrived.is_known_as(known));
        Ok(known.unwrap_or(arrived))
    }

    fn replace(&mut self, objects: Vec<CachedObject<K>>, version: &ResourceVersion) {
        ThreadSafeStore::replace(self, objects, version.clone());
    }

    fn change(&mut self, change: Change<CachedObject<K>>) {
        match change {
            Change::Added(object) | Change::Modified(object) => drop(self.insert(object)),
            Change::Deleted(object) => drop(self.remove(object.key())),
        }
    }

    fn flush(&mut self, version: &ResourceVersion) {
        self.write(|batch| batch.set_resource_version(version.clone()));
    }
}
