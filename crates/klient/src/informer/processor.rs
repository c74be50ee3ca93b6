//! The informer behind its handles: applies batches to the store, and hands the events to the listeners of the handlers.
//!
//! A batch is applied and handed out under one lock. A new handler takes the same lock, so that the objects that it finds in the
//! store and the events that it receives afterwards fit together without gap or overlap. Readers of the store never take the
//! lock. In client-go: `sharedIndexInformer` and `sharedProcessor`.

use std::{
    cmp::Ordering,
    panic,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use klient_core::{Resource, ResourceVersion, TypeMeta};
use klient_proto::RawObject;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};

use super::{
    builder::ObjectFormat,
    delta_fifo::DeltaBatch,
    handler::{Event, Listener},
    narrow::Narrow,
    object::{CachedObject, encode},
    reflector::{InformerState, ReflectorStore, StatusBoard},
    scope::Scope,
    store::ThreadSafeStore,
};
use crate::{
    Error, ErrorKind, deadline,
    recording::{RecordedObject, Recorder},
};

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
/// A function that changes an object before it is stored.
pub(super) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// The parts that an informer's task, its handles and its handlers share.
pub(super) struct Processor<K: Resource> {
    pub(super) store: ThreadSafeStore<CachedObject<K>>,
    handlers: Mutex<Handlers<K>>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) scope: Scope,
    pub(super) synced: watch::Sender<bool>,
    /// Notified after each change of the store, for callers that wait for a version.
    store_changed: Notify,
    /// Notified when a handler was added, which may have a resync period.
    handler_added: Notify,
    tasks: mpsc::UnboundedSender<Task>,
    types: Option<Arc<TypeMeta>>,
    format: ObjectFormat,
    transform: Option<Transform<K>>,
    /// The recorder of the events, and the name of the resource.
    recorder: OnceLock<(Recorder, Arc<str>)>,
    /// The slots whose objects are stored, if not all objects are. Set before the informer is started.
    pub(super) narrow: OnceLock<Arc<Narrow<CachedObject<K>>>>,
}

struct Handlers<K> {
    registered: Vec<Registered<K>>,
    next_id: u64,
    /// The wire size of the stored objects, in bytes.
    bytes: usize,
    closed: bool,
}

struct Registered<K> {
    id: u64,
    listener: Arc<Listener<K>>,
    resync: Option<Resync>,
}

struct Resync {
    period: Duration,
    due: Instant,
}

impl<K: Resource> Processor<K> {
    pub(super) fn new(
        board: Arc<StatusBoard>,
        scope: Scope,
        types: Option<Arc<TypeMeta>>,
        format: ObjectFormat,
        transform: Option<Transform<K>>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Task>) {
        let (tasks, receiver) = mpsc::unbounded_channel();
        let processor = Self {
            store: ThreadSafeStore::new(),
            handlers: Mutex::new(Handlers { registered: Vec::new(), next_id: 0, bytes: 0, closed: false }),
            board,
            scope,
            synced: watch::Sender::new(false),
            store_changed: Notify::new(),
            handler_added: Notify::new(),
            tasks,
            types,
            format,
            transform,
            recorder: OnceLock::new(),
            narrow: OnceLock::new(),
        };
        (Arc::new(processor), receiver)
    }

    /// Runs a task as part of the informer, once the informer runs.
    pub(super) fn spawn(&self, task: Task) {
        // After the informer has stopped, the task would have nothing to do.
        let _ = self.tasks.send(task);
    }

    /// Records the events from now on. The first recorder stays.
    pub(super) fn record(&self, recorder: &Recorder) {
        let resource: Arc<str> = self.board.status().resource.into();
        // Under the lock, so that an event is in the recorded state or recorded itself.
        let handlers = self.lock();
        if self.recorder.set((recorder.clone(), Arc::clone(&resource))).is_ok() {
            // The store outlives the informer, so that a recording can be saved at the end of the process.
            let store = self.store.clone();
            recorder.add_cache(resource, move || {
                store.list().iter().map(|object| Box::new(object.clone()) as Box<dyn RecordedObject>).collect()
            });
        }
        drop(handlers);
    }

    pub(super) fn register(&self, listener: Arc<Listener<K>>, resync: Option<Duration>) -> u64 {
        let mut handlers = self.lock();
        let added = |object: &CachedObject<K>| Event::Added { object: object.clone(), in_initial_list: true };
        listener.buffer.extend(self.store.list().iter().map(added));
        if *self.synced.borrow() {
            listener.buffer.push_synced();
        }
        if handlers.closed {
            listener.buffer.close();
        }
        let id = handlers.next_id;
        handlers.next_id += 1;
        let resync = resync.map(|period| Resync { period, due: deadline::after(Instant::now(), period) });
        handlers.registered.push(Registered { id, listener, resync });
        drop(handlers);
        self.handler_added.notify_one();
        id
    }

    pub(super) fn unregister(&self, id: u64) {
        let mut handlers = self.lock();
        for removed in handlers.registered.extract_if(.., |handler| handler.id == id) {
            removed.listener.buffer.abandon();
        }
    }

    /// Stops the handlers once they have received everything.
    pub(super) fn close(&self) {
        let mut handlers = self.lock();
        handlers.closed = true;
        for handler in &handlers.registered {
            handler.listener.buffer.close();
        }
        drop(handlers);
        self.board.set_state(InformerState::Stopped);
    }

    /// Waits until the store has a version or a later one.
    pub(super) async fn wait_until_seen(&self, version: &ResourceVersion) {
        self.wait_until(|store| store.resource_version().compare(version).is_some_and(Ordering::is_ge)).await;
    }

    /// Waits until a condition of the store holds.
    pub(super) async fn wait_until(&self, holds: impl Fn(&ThreadSafeStore<CachedObject<K>>) -> bool) {
        loop {
            let changed = self.store_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.store) {
                return;
            }
            changed.await;
        }
    }

    /// Sends all objects again to each handler with a resync period, forever.
    pub(super) async fn run_resyncs(&self) {
        loop {
            let due = self.lock().registered.iter().filter_map(|handler| Some(handler.resync.as_ref()?.due)).min();
            let added = self.handler_added.notified();
            match due {
                None => added.await,
                Some(due) => tokio::select! {
                    () = added => {}
                    () = tokio::time::sleep_until(due) => self.resync_due(),
                },
            }
        }
    }

    fn resync_due(&self) {
        let now = Instant::now();
        let synced = *self.synced.borrow();
        let mut handlers = self.lock();
        for handler in &mut handlers.registered {
            let Some(resync) = handler.resync.as_mut().filter(|resync| resync.due <= now) else { continue };
            resync.due = deadline::after(now, resync.period);
            if synced {
                let again = |object: &CachedObject<K>| Event::Updated { old: object.clone(), new: object.clone() };
                handler.listener.buffer.extend(self.store.list().iter().map(again));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Handlers<K>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts an object that arrived to the form in which it is stored.
    fn stored_form(&self, arrived: CachedObject<K>) -> Result<CachedObject<K>, Error> {
        match (&self.transform, arrived.wire(), self.format) {
            (Some(transform), Some(raw), _) => self.transformed(transform, raw),
            (_, _, ObjectFormat::Wire) => Ok(arrived),
            (_, _, ObjectFormat::Decoded) => Ok(arrived.into_decoded()),
        }
    }

    fn transformed(&self, transform: &Transform<K>, raw: &RawObject) -> Result<CachedObject<K>, Error> {
        let mut object = raw.decode::<K>()?;
        let key = raw.key();
        let changed = panic::catch_unwind(panic::AssertUnwindSafe(|| transform(&mut object)));
        changed.map_err(|_| Error::new(ErrorKind::Invalid, format!("the transform of {} {key} panicked", K::KIND)))?;
        match self.format {
            ObjectFormat::Decoded => Ok(CachedObject::from_object(object)),
            ObjectFormat::Wire => Ok(CachedObject::with_types(encode(&object, raw.encoding())?, self.types.clone())),
        }
    }
}

impl<K: Resource> Handlers<K> {
    fn hand_out(&self, events: Vec<Event<K>>, first: bool) {
        let Some((last, others)) = self.registered.split_last() else { return };
        for handler in others {
            handler.listener.buffer.extend(events.iter().cloned());
        }
        last.listener.buffer.extend(events.into_iter());
        if first {
            self.registered.iter().for_each(|handler| handler.listener.buffer.push_synced());
        }
    }
}

impl<K: Resource> ReflectorStore for Arc<Processor<K>> {
    type Object = CachedObject<K>;

    fn ingest(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        self.stored_form(CachedObject::with_types(object, self.types.clone()))
    }

    fn ingest_listed(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        let arrived = CachedObject::with_types(object, self.types.clone());
        match self.store.get(arrived.key()) {
            Some(known) if arrived.is_known_as(&known) => Ok(known),
            _ => self.stored_form(arrived),
        }
    }

    fn known_objects(&self) -> Option<ThreadSafeStore<CachedObject<K>>> {
        Some(self.store.clone())
    }

    fn apply(&mut self, batch: DeltaBatch<CachedObject<K>>) {
        let first = batch.in_initial_list;
        self.apply_part(batch, first);
    }
}

impl<K: Resource> Processor<K> {
    /// Applies a batch to the store, then hands the events to the handlers. With `first`, the first list is complete.
    pub(super) fn apply_part(&self, batch: DeltaBatch<CachedObject<K>>, first: bool) {
        let metrics = self.board.metrics();
        let started = metrics.map(|_| Instant::now());
        let mut handlers = self.lock();
        let applied = self.store.apply_batch(batch);
        handlers.bytes = (handlers.bytes + applied.bytes_added).saturating_sub(applied.bytes_removed);
        if let Some((recorder, resource)) = self.recorder.get() {
            recorder.events(resource, &applied.events);
        }
        handlers.hand_out(applied.events, first);
        if first {
            self.synced.send_replace(true);
        }
        let bytes = handlers.bytes;
        let backlog = metrics.map(|_| handlers.registered.iter().map(|handler| handler.listener.buffer.len()).sum());
        drop(handlers);
        let objects = self.store.len();
        self.board.resized(objects, bytes);
        tracing::trace!(
            target: "klient::informer::store",
            resource = self.board.status().resource,
            objects,
            bytes,
            version = %self.store.resource_version(),
            "applied batch"
        );
        if let (Some(metrics), Some(started), Some(backlog)) = (metrics, started, backlog) {
            metrics.applied(started.elapsed(), objects, bytes, backlog, &self.store.resource_version());
        }
        self.store_changed.notify_waiters();
    }
}
