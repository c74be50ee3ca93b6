//! A fifo that several threads share, with a consumer that waits: client-go's blocking `Pop`.
//!
//! Informers do not need it; their reflector owns its fifo. All rules are those of [`DeltaFifo`]; this file adds one lock, the
//! wakers of those who wait, a limit for producers, and an end.

use std::{
    fmt,
    future::poll_fn,
    task::{Poll, Waker},
};

use klient_core::ResourceVersion;

use super::{
    delta_fifo::{DeltaBatch, DeltaFifo, Deltas},
    store::Keyed,
};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The number of changes that a queue holds before producers should wait, unless set.
const CAPACITY: usize = 4096;

/// A [`DeltaFifo`] behind a lock, for producers and a consumer on different threads or tasks.
///
/// ```
/// use klient::{ObjectKey, informer::{DeltaFifo, DeltaQueue}};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let queue = DeltaQueue::new(DeltaFifo::new());
/// queue.add((ObjectKey::cluster("a"), 1));
/// queue.close();
/// assert_eq!(queue.pop().await.unwrap().key().name(), "a");
/// assert!(queue.pop().await.is_none());
/// # });
/// ```
#[doc(alias = "Queue")]
pub struct DeltaQueue<T> {
    guarded: Mutex<Guarded<T>>,
    capacity: usize,
}

struct Guarded<T> {
    fifo: DeltaFifo<T>,
    closed: bool,
    consumer: Option<Waker>,
    producers: Vec<Waker>,
}

impl<T: Keyed> DeltaQueue<T> {
    /// Creates a queue from a fifo.
    pub fn new(fifo: DeltaFifo<T>) -> Self {
        let guarded = Guarded { fifo, closed: false, consumer: None, producers: Vec::new() };
        Self { guarded: Mutex::new(guarded), capacity: CAPACITY }
    }

    /// Sets the number of changes at which [`is_full`](Self::is_full) returns true. A replace counts as one change.
    #[must_use]
    pub fn capacity(mut self, changes: usize) -> Self {
        self.capacity = changes.max(1);
        self
    }

    /// Queues the creation of an object.
    pub fn add(&self, object: T) {
        self.change(|fifo| fifo.add(object));
    }

    /// Queues a change of an object.
    pub fn update(&self, object: T) {
        self.change(|fifo| fifo.update(object));
    }

    /// Queues the deletion of an object; see [`DeltaFifo::delete`].
    pub fn delete(&self, object: T) {
        self.change(|fifo| fifo.delete(object));
    }

    /// Queues a complete list of objects with its resource version.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        self.change(|fifo| fifo.replace(objects, version));
    }

    /// Queues all known objects that have no other delta, so that they are sent again.
    pub fn resync(&self) {
        self.change(DeltaFifo::resync);
    }

    /// Waits for a key, and takes it with all of its deltas. Returns `None` when the queue is closed and empty.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn pop(&self) -> Option<Deltas<T>> {
        self.taken(DeltaFifo::pop).await
    }

    /// Waits for anything, and takes everything that is queued. Returns `None` when the queue is closed and empty.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn pop_batch(&self) -> Option<DeltaBatch<T>> {
        self.taken(DeltaFifo::pop_batch).await
    }

    /// Returns whether the first list was taken; see [`DeltaFifo::has_synced`].
    pub fn has_synced(&self) -> bool {
        self.lock().fifo.has_synced()
    }

    /// Returns the number of keys that are queued.
    pub fn len(&self) -> usize {
        self.lock().fifo.len()
    }

    /// Returns whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.lock().fifo.is_empty()
    }

    /// Returns whether producers should wait.
    pub fn is_full(&self) -> bool {
        self.lock().fifo.changes() >= self.capacity
    }

    /// Waits until there is room for a change, or the queue is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ready(&self) {
        poll_fn(|context| {
            let mut guarded = self.lock();
            if guarded.closed || guarded.fifo.changes() < self.capacity {
                return Poll::Ready(());
            }
            guarded.producers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Closes the queue: later changes are ignored. Deltas that are queued can still be taken.
    pub fn close(&self) {
        let mut guarded = self.lock();
        guarded.closed = true;
        let producers = std::mem::take(&mut guarded.producers);
        let wakers = producers.into_iter().chain(guarded.consumer.take());
        drop(guarded);
        wakers.for_each(Waker::wake);
    }

    fn change(&self, change: impl FnOnce(&mut DeltaFifo<T>)) {
        let mut guarded = self.lock();
        if guarded.closed {
            return;
        }
        change(&mut guarded.fifo);
        let consumer = guarded.consumer.take();
        drop(guarded);
        if let Some(waker) = consumer {
            waker.wake();
        }
    }

    async fn taken<R>(&self, take: fn(&mut DeltaFifo<T>) -> Option<R>) -> Option<R> {
        poll_fn(|context| {
            let mut guarded = self.lock();
            let Some(taken) = take(&mut guarded.fifo) else {
                if guarded.closed {
                    return Poll::Ready(None);
                }
                guarded.consumer = Some(context.waker().clone());
                return Poll::Pending;
            };
            let producers = std::mem::take(&mut guarded.producers);
            drop(guarded);
            producers.into_iter().for_each(Waker::wake);
            Poll::Ready(Some(taken))
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Guarded<T>> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Keyed> From<DeltaFifo<T>> for DeltaQueue<T> {
    fn from(fifo: DeltaFifo<T>) -> Self {
        Self::new(fifo)
    }
}

impl<T: Keyed> fmt::Debug for DeltaQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guarded = self.lock();
        f.debug_struct("DeltaQueue").field("fifo", &guarded.fifo).field("closed", &guarded.closed).finish()
    }
}
