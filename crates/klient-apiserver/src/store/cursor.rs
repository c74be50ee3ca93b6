//! One watcher's place in a table's log.
//!
//! Watchers have no queues: each reads the shared log from where it is. One that falls behind so far that its place is
//! forgotten is told so.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Change, Store};

/// A place in a table's log.
pub(crate) struct Cursor {
    store: Store,
    table: Arc<str>,
    after: u64,
    changed: watch::Receiver<u64>,
}

/// The revision that was asked for is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest revision that is still known.
    pub(crate) oldest: u64,
}

impl Cursor {
    pub(super) fn new(store: Store, table: Arc<str>, after: u64, changed: watch::Receiver<u64>) -> Self {
        Self { store, table, after, changed }
    }

    /// What happened since the last call, without waiting, and the revision up to which that is all.
    pub(crate) fn ready(&mut self) -> Result<(Vec<Arc<Change>>, u64), Compacted> {
        // Before reading, so that a change in between wakes the next wait.
        self.changed.mark_unchanged();
        let (changes, complete) = self.store.changes(&self.table, self.after)?;
        if let Some(last) = changes.last() {
            self.after = last.revision;
        }
        Ok((changes, complete))
    }

    /// Whether nothing has happened since the last look.
    pub(crate) fn ready_is_empty(&self) -> bool {
        !self.changed.has_changed().unwrap_or(true)
    }

    /// Waits until something may have happened; false if the table is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn changed(&mut self) -> bool {
        self.changed.changed().await.is_ok()
    }
}
