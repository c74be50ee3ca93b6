//! An informer's events as a stream.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use klient_core::Resource;

use super::{Event, Item, Listener};
use crate::informer::Registration;

/// A stream of an informer's events. Dropping the stream unsubscribes it.
///
/// The stream begins with the cached objects as added. When its reader falls far behind, changes of one object are merged into
/// one.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::SharedInformer;
///
/// # async fn print(pods: SharedInformer<Pod>) {
/// let mut events = pods.events();
/// while let Some(event) = events.next().await {
///     println!("{event:?}");
/// }
/// # }
/// ```
pub struct EventStream<K: Resource> {
    listener: Arc<Listener<K>>,
    registration: Registration<K>,
}

impl<K: Resource> EventStream<K> {
    pub(in crate::informer) fn new(listener: Arc<Listener<K>>, registration: Registration<K>) -> Self {
        Self { listener, registration }
    }

    /// Waits for the next event. Returns `None` when the informer has stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event<K>> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    /// Returns the registration, which tells how many events wait and whether the first list was read completely.
    pub fn registration(&self) -> &Registration<K> {
        &self.registration
    }

    fn poll_event(&mut self, context: &Context<'_>) -> Poll<Option<Event<K>>> {
        loop {
            match self.listener.buffer.poll_next(context) {
                Poll::Ready(Some(Item::Event(event))) => return Poll::Ready(Some(event)),
                Poll::Ready(Some(Item::Synced)) => drop(self.listener.synced.send_replace(true)),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<K: Resource> Stream for EventStream<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        self.poll_event(context)
    }
}

impl<K: Resource> fmt::Debug for EventStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("backlog", &self.listener.buffer.len()).finish()
    }
}
