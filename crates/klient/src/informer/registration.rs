//! Registrations of handlers.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use klient_core::Resource;

use super::{Handle, InformerState, handler::Listener, stopped};
use crate::Error;

/// The registration of a handler, which keeps the informer running.
///
/// Dropping it removes the handler: events that wait are dropped, and a call that is running finishes. [`remove`](Self::remove)
/// also waits for that call.
#[doc(alias = "ResourceEventHandlerRegistration")]
pub struct Registration<K: Resource> {
    handle: Arc<Handle<K>>,
    listener: Arc<Listener<K>>,
    id: u64,
}

impl<K: Resource> Registration<K> {
    pub(super) fn new(handle: Arc<Handle<K>>, listener: Arc<Listener<K>>, id: u64) -> Self {
        Self { handle, listener, id }
    }

    /// Returns whether the handler was called with all objects of the first list, or with all that were cached when it was added.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        *self.listener.synced.borrow()
    }

    /// Waits until [`has_synced`](Self::has_synced) is true.
    ///
    /// # Errors
    ///
    /// Returns an error if the informer is stopped.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let mut synced = self.listener.synced.subscribe();
        let mut states = self.handle.processor.board.states();
        tokio::select! {
            biased;
            _ = synced.wait_for(|synced| *synced) => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// Returns a receiver of [`has_synced`](Self::has_synced).
    #[cfg(feature = "client")]
    pub(super) fn synced(&self) -> tokio::sync::watch::Receiver<bool> {
        self.listener.synced.subscribe()
    }

    /// Removes the handler, and waits for a call that is running. When this returns, the handler is not called any more.
    ///
    /// Must not be awaited by the handler itself, which would wait for its own end.
    #[doc(alias = "RemoveEventHandler")]
    pub async fn remove(self) {
        let listener = Arc::clone(&self.listener);
        drop(self);
        listener.wait_until_idle().await;
    }

    /// Returns the number of events that wait for the handler.
    pub fn backlog(&self) -> usize {
        self.listener.buffer.len()
    }

    /// Returns the number of times that the handler panicked.
    pub fn panics(&self) -> u64 {
        self.listener.panics.load(Ordering::Relaxed)
    }
}

impl<K: Resource> Drop for Registration<K> {
    fn drop(&mut self) {
        self.handle.processor.unregister(self.id);
    }
}

impl<K: Resource> fmt::Debug for Registration<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("synced", &self.has_synced()).field("backlog", &self.backlog()).finish()
    }
}
