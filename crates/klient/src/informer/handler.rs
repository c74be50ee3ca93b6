//! Event handlers: who is told what changed, and how. Step 6 of an object's way.

mod buffer;
mod funcs;
mod stream;

use std::{
    fmt, panic,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use klient_core::{ObjectKey, Resource};
use tokio::sync::watch;

pub(super) use self::buffer::{Buffer, Item};
pub use self::{
    funcs::{FilteringHandler, HandlerFuncs},
    stream::EventStream,
};
use super::{delta_fifo::Tombstone, object::CachedObject};

/// A change, as handlers get it.
pub enum Event<K> {
    /// An object that the handler has not seen.
    Added {
        /// The object.
        object: CachedObject<K>,
        /// Whether it was there before the handler began to listen, or before the informer had its first list.
        in_initial_list: bool,
    },
    /// An object that the handler has seen, in a new state; or in the same, if this is a resync.
    Updated {
        /// The state that the handler knows.
        old: CachedObject<K>,
        /// The state that the cache has now, or had a moment ago.
        new: CachedObject<K>,
    },
    /// An object that is gone.
    Deleted(Tombstone<CachedObject<K>>),
}

impl<K: Resource> Event<K> {
    /// The newest state that it tells of.
    pub fn object(&self) -> &CachedObject<K> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(tombstone) => tombstone.object(),
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// Whether nothing changed: the object is shown again, as the handler asked for from time to time.
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.is_same_state(new))
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, in_initial_list } => {
                Self::Added { object: object.clone(), in_initial_list: *in_initial_list }
            }
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted(tombstone) => Self::Deleted(tombstone.clone()),
        }
    }
}

impl<K: Resource> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Added { .. } => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted(_) => "Deleted",
        };
        f.debug_tuple(name).field(self.object()).finish()
    }
}

/// What wants to know of changes.
///
/// Called one event after the other, always after the cache has the change. A handler that is slow delays only itself; when it
/// falls far behind, changes of one object are folded into one. A handler that panics is called again with the next event.
#[doc(alias = "ResourceEventHandler")]
pub trait EventHandler<K: Resource>: Send + 'static {
    /// An object that was not there.
    fn on_add(&mut self, object: &CachedObject<K>, in_initial_list: bool);

    /// An object changed; or did not, if this is a resync.
    fn on_update(&mut self, old: &CachedObject<K>, new: &CachedObject<K>);

    /// An object is gone.
    fn on_delete(&mut self, object: &Tombstone<CachedObject<K>>);
}

/// Options of a handler.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// How often all objects are shown again; never, if unset. At least a second.
    pub resync: Option<Duration>,
}

impl HandlerOptions {
    /// Sets how often all objects are shown again.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }
}

/// One handler, as the informer and the handler's own task share it.
pub(super) struct Listener<K> {
    pub(super) buffer: Buffer<K>,
    pub(super) synced: watch::Sender<bool>,
    pub(super) panics: AtomicU64,
}

impl<K: Resource> Listener<K> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { buffer: Buffer::new(), synced: watch::Sender::new(false), panics: AtomicU64::new(0) })
    }

    /// Gives a handler what comes, until the informer has stopped and everything is given, or the handler is removed.
    pub(super) async fn run(self: Arc<Self>, mut handler: impl EventHandler<K>) {
        // Whoever runs this is not alone on its thread.
        while let Some(item) = self.buffer.next().await {
            match item {
                Item::Synced => drop(self.synced.send_replace(true)),
                Item::Event(event) => self.call(&mut handler, &event),
            }
            tokio::task::consume_budget().await;
        }
    }

    fn call(&self, handler: &mut impl EventHandler<K>, event: &Event<K>) {
        let called = panic::catch_unwind(panic::AssertUnwindSafe(|| match event {
            Event::Added { object, in_initial_list } => handler.on_add(object, *in_initial_list),
            Event::Updated { old, new } => handler.on_update(old, new),
            Event::Deleted(tombstone) => handler.on_delete(tombstone),
        }));
        if called.is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
            tracing::error!(kind = K::KIND, key = %event.key(), "an event handler panicked; it goes on with the next event");
        }
    }
}
