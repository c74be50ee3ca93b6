//! Event handlers: functions that are called with every change, after the store has it. Step 6 of an object's way.

mod buffer;
mod funcs;
mod stream;

use std::{
    fmt, panic,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use klient_core::{ObjectKey, Resource};
use tokio::sync::watch;

pub(super) use self::buffer::{Buffer, Item};
pub use self::{
    funcs::{FilteringHandler, HandlerFuncs},
    stream::EventStream,
};
use super::{delta_fifo::Tombstone, object::CachedObject};

/// A change of an object, with the state before it and the state after it.
///
/// The order of events is the order of the server, and per object always added, then updated, then deleted.
pub enum Event<K> {
    /// An object that the handler has not seen.
    Added {
        /// The object.
        object: CachedObject<K>,
        /// Whether the object is part of the first list, or was cached before the handler was added.
        in_initial_list: bool,
    },
    /// A new state of an object that the handler has seen, or the same state again if this is a [resync](Self::is_resync).
    Updated {
        /// The state that the handler saw last.
        old: CachedObject<K>,
        /// The new state. The cache has this state or a later one.
        new: CachedObject<K>,
    },
    /// A deleted object.
    Deleted(Tombstone<CachedObject<K>>),
}

impl<K: Resource> Event<K> {
    /// Returns the newest state of the object.
    pub fn object(&self) -> &CachedObject<K> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(tombstone) => tombstone.object(),
        }
    }

    /// Returns namespace and name of the object.
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// Returns whether the object is unchanged and was sent again because of [`HandlerOptions::resync`].
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

/// A handler of an informer's events.
///
/// Handlers are called with one event after the other, always after the cache has the change. When a handler falls far behind,
/// changes of one object are merged into one. A handler that panics is called again with the next event. A handler is not called
/// for an event with a resource version that the cache already has: servers and proxies may send a state twice.
///
/// # Slow handlers
///
/// Each handler has its own task, so that a slow one delays only itself: the cache and the other handlers go on. A call that
/// blocks occupies one thread of the runtime until it returns. On a multi-thread runtime, the others go on as long as one thread
/// is free; when all threads are blocked, the other tasks wait for the first call that returns, and go first then. On a
/// current-thread runtime everything waits for the call, and goes first when it returns. A handler that needs more than a
/// millisecond should put the key on a [`WorkQueue`](crate::WorkQueue).
///
/// Every `FnMut(&Event<K>)` is a handler. [`HandlerFuncs`] has one function for each kind of event, as in client-go.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::informer::{Event, EventHandler};
///
/// fn handler() -> impl EventHandler<Pod> {
///     |event: &Event<Pod>| println!("{} changed", event.key())
/// }
/// ```
#[doc(alias = "ResourceEventHandler")]
pub trait EventHandler<K: Resource>: Send + 'static {
    /// Handles one event.
    #[doc(alias = "OnAdd")]
    #[doc(alias = "OnUpdate")]
    #[doc(alias = "OnDelete")]
    fn on_event(&mut self, event: &Event<K>);
}

/// Marks a handler's task as running until it ends, also when it is aborted.
struct Running<'a>(&'a watch::Sender<bool>);

impl<'a> Running<'a> {
    fn new(running: &'a watch::Sender<bool>) -> Self {
        running.send_replace(true);
        Self(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// The time after which a handler's call has occupied its thread for so long that other tasks go first.
const LONG_CALL: Duration = Duration::from_millis(1);

/// The options of a handler.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// The period after which all cached objects are sent to the handler again, at least one second. Never, if unset.
    pub resync: Option<Duration>,
}

impl HandlerOptions {
    /// Sets the period after which all cached objects are sent to the handler again.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }
}

/// The part of a handler that the informer shares with the handler's task. In client-go: `processorListener`.
pub(super) struct Listener<K> {
    pub(super) buffer: Buffer<K>,
    pub(super) synced: watch::Sender<bool>,
    /// Whether the handler's task is running, and may call the handler.
    running: watch::Sender<bool>,
    pub(super) panics: AtomicU64,
}

impl<K: Resource> Listener<K> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            buffer: Buffer::new(),
            synced: watch::Sender::new(false),
            running: watch::Sender::new(false),
            panics: AtomicU64::new(0),
        })
    }

    /// Calls a handler with each event, until the informer has stopped and no event is left, or the handler was removed.
    pub(super) async fn run(self: Arc<Self>, mut handler: impl EventHandler<K>) {
        // Set before an event is taken: a caller that removes the handler sees either the task or an event that nothing takes.
        let _running = Running::new(&self.running);
        while let Some(item) = self.buffer.next().await {
            match item {
                Item::Synced => drop(self.synced.send_replace(true)),
                Item::Event(event) => {
                    let called = Instant::now();
                    self.call(&mut handler, &event);
                    if called.elapsed() >= LONG_CALL {
                        crate::sync::yield_to_others().await;
                    }
                }
            }
            // Other tasks of the same thread get their turn.
            tokio::task::consume_budget().await;
        }
    }

    /// Waits until the handler's task has ended. A task that has not begun finds the buffer closed, and calls nothing.
    pub(super) async fn wait_until_idle(&self) {
        // The sender is part of this listener, so that the channel stays open.
        let _ = self.running.subscribe().wait_for(|running| !running).await;
    }

    fn call(&self, handler: &mut impl EventHandler<K>, event: &Event<K>) {
        if panic::catch_unwind(panic::AssertUnwindSafe(|| handler.on_event(event))).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
            tracing::error!(kind = K::KIND, key = %event.key(), "event handler panicked, continuing with the next event");
        }
    }
}
