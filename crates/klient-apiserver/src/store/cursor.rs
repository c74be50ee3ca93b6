//! A watch's position in a table's log.
//!
//! Watches have no queues: each reads the shared log from its own position. A watch that falls so far behind that its position is
//! compacted gets an error.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Change, Store};

/// A position in a table's log.
pub(crate) struct Cursor {
    store: Store,
    table: Arc<str>,
    after: u64,
    changed: watch::Receiver<u64>,
}

/// An error: the requested revision is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest available revision.
    pub(crate) oldest: u64,
}

impl Cursor {
    pub(super) fn new(store: Store, table: Arc<str>, after: u64, changed: watch::Receiver<u64>) -> Self {
        Self { store, table, after, changed }
    }

    /// Returns the changes since the last call without waiting, and the revision up to which they are complete.
    pub(crate) fn ready(&mut self) -> Result<(Vec<Arc<Change>>, u64), Compacted> {
        // The mark is set before reading, so that a change during the read ends the next wait.
        self.changed.mark_unchanged();
        let (changes, complete) = self.store.changes(&self.table, self.after)?;
        if let Some(last) = changes.last() {
            self.after = last.revision;
        }
        Ok((changes, complete))
    }

    /// Returns whether there were no changes since the last read.
    pub(crate) fn ready_is_empty(&self) -> bool {
        !self.changed.has_changed().unwrap_or(true)
    }

    /// Waits until there may be changes. Returns false if the table was removed.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no change is lost if the future is dropped.
    pub(crate) async fn changed(&mut self) -> bool {
        self.changed.changed().await.is_ok()
    }
}
