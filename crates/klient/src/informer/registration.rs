//! A handler's place in an informer.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use klient_core::Resource;

use super::{Handle, InformerState, handler::Listener, stopped};
use crate::Error;

/// A handler's place in an informer, which it keeps running. Dropping it removes the handler: what it was not told is
/// forgotten, and a call that is under way ends.
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

    /// Whether the handler was told of all objects of the first list, or of all that were there when it was added.
    pub fn has_synced(&self) -> bool {
        *self.listener.synced.borrow()
    }

    /// Waits until the handler was told of all objects of the first list.
    ///
    /// # Errors
    ///
    /// If the informer is stopped.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        let mut synced = self.listener.synced.subscribe();
        let mut states = self.handle.shared.board.states();
        tokio::select! {
            biased;
            _ = synced.wait_for(|synced| *synced) => Ok(()),
            _ = states.wait_for(|state| *state == InformerState::Stopped) => Err(stopped()),
        }
    }

    /// How many events the handler has still to be told of.
    pub fn backlog(&self) -> usize {
        self.listener.buffer.len()
    }

    /// How often the handler panicked.
    pub fn panics(&self) -> u64 {
        self.listener.panics.load(Ordering::Relaxed)
    }
}

impl<K: Resource> Drop for Registration<K> {
    fn drop(&mut self) {
        self.handle.shared.unregister(self.id);
    }
}

impl<K: Resource> fmt::Debug for Registration<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("synced", &self.has_synced()).field("backlog", &self.backlog()).finish()
    }
}
