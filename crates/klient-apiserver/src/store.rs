//! The store of objects. Every write is a revision, which can be read and watched until it is compacted.
//!
//! Invariants: revisions are shared by all tables and only grow; a table's log is in the order of revisions and has no
//! gaps after its start; an object's bytes carry the revision that wrote it. Readers share a lock; the one writer at a
//! time holds it for as long as it takes to write one object down.

mod cursor;
mod durable;
mod stored;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::Path,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use foldhash::fast::RandomState;
use serde_json::Value;
use tokio::sync::watch;

use self::durable::Durable;
pub(crate) use self::{
    cursor::{Compacted, Cursor},
    durable::OpenError,
    stored::{Change, ChangeKind, Committed, Stored, json_event},
};

/// The store of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    contents: RwLock<Contents>,
    durable: Option<Durable>,
}

struct Contents {
    revision: u64,
    /// The revision at which the history begins.
    origin: u64,
    tables: HashMap<Arc<str>, Table, RandomState>,
    /// The revisions at which removed tables ended.
    ended: HashMap<Arc<str>, u64>,
    history: usize,
}

/// The objects of one resource.
struct Table {
    objects: BTreeMap<String, Arc<Stored>>,
    log: VecDeque<Arc<Change>>,
    /// The revision up to which changes are no longer in the log.
    log_start: u64,
    /// The revision of the last change that was removed from the log.
    removed: u64,
    changed: watch::Sender<u64>,
}

/// The precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No object.
    Absent,
    /// An object of this revision.
    Revision(u64),
}

/// A write.
#[derive(Debug)]
pub(crate) enum Write {
    /// Stores an object.
    Put(Value),
    /// Deletes an object, whose last state this is.
    Delete(Value),
}

/// An error of a write that was not done.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The precondition failed. This is the stored object, if any.
    Changed(Option<Arc<Stored>>),
    /// The object cannot be stored.
    Invalid(String),
    /// The object could not be written to disk.
    Disk(String),
}

/// The objects at one revision, in the order of their keys.
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

impl Store {
    /// Returns an empty in-memory store, whose first write is the revision after `revision`.
    pub(crate) fn in_memory(revision: u64, history: usize) -> Self {
        let contents = Contents::new(revision, history);
        Self { inner: Arc::new(StoreInner { contents: RwLock::new(contents), durable: None }) }
    }

    /// Opens a store in a folder. The history of revisions does not outlive the process.
    ///
    /// Revisions continue after the newest one on disk, or after `revision` if that is higher. In a new folder they begin after
    /// `first`, unless `revision` is given.
    pub(crate) fn open(folder: &Path, revision: Option<u64>, first: u64, history: usize) -> Result<Self, OpenError> {
        let (durable, loaded) = Durable::open(folder)?;
        let start = match (revision, loaded.revision) {
            (None, 0) => first,
            (revision, on_disk) => on_disk.max(revision.unwrap_or_default()),
        };
        let mut contents = Contents::new(start, history);
        for (table, key, stored) in loaded.objects {
            contents.table(&table).objects.insert(key, Arc::new(stored));
        }
        Ok(Self { inner: Arc::new(StoreInner { contents: RwLock::new(contents), durable: Some(durable) }) })
    }

    /// Closes the folder, if there is one. Objects in memory can still be read.
    pub(crate) fn close(&self) {
        if let Some(durable) = &self.inner.durable {
            durable.close();
        }
    }

    /// Returns whether objects are stored in a folder.
    pub(crate) fn is_durable(&self) -> bool {
        self.inner.durable.is_some()
    }

    /// Returns the newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Returns an object.
    pub(crate) fn get(&self, table: &str, key: &str) -> Option<Arc<Stored>> {
        self.read().tables.get(table)?.objects.get(key).cloned()
    }

    /// Returns the number of objects of a table.
    pub(crate) fn count(&self, table: &str) -> usize {
        self.read().tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// Returns the current objects whose keys start with `prefix`.
    pub(crate) fn list(&self, table: &str, prefix: &str) -> Snapshot {
        let contents = self.read();
        let objects = contents.tables.get(table).map_or_else(Vec::new, |table| table.under(prefix));
        Snapshot { revision: contents.revision, objects }
    }

    /// Returns the objects whose keys start with `prefix`, at a revision.
    pub(crate) fn list_at(&self, table: &str, prefix: &str, revision: u64) -> Result<Snapshot, Compacted> {
        let contents = self.read();
        let Some(table) = contents.tables.get(table) else {
            let oldest = contents.origin.max(contents.ended.get(table).copied().unwrap_or_default());
            let empty = Snapshot { revision, objects: Vec::new() };
            return if revision < oldest { Err(Compacted { oldest }) } else { Ok(empty) };
        };
        if revision < table.log_start {
            return Err(Compacted { oldest: table.log_start });
        }
        // Later writes are undone, the newest first.
        let mut undone: BTreeMap<&str, Option<&Arc<Stored>>> = BTreeMap::new();
        for change in table.log.iter().rev().take_while(|change| change.revision > revision) {
            if change.key.starts_with(prefix) {
                undone.insert(&change.key, change.previous.as_ref());
            }
        }
        let mut then: BTreeMap<&str, &Arc<Stored>> =
            table.range(prefix).map(|(key, stored)| (key.as_str(), stored)).collect();
        for (key, stored) in undone {
            match stored {
                Some(stored) => then.insert(key, stored),
                None => then.remove(key),
            };
        }
        Ok(Snapshot { revision, objects: then.into_values().cloned().collect() })
    }

    /// Writes an object, if its precondition holds. The object gets the revision of the write.
    pub(crate) async fn commit(
        &self,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
    ) -> Result<Committed, CommitError> {
        match &self.inner.durable {
            None => self.write().commit(table, key, expected, write),
            Some(durable) => durable.commit(&self.inner, table, key, expected, write).await,
        }
    }

    /// Skips the revisions up to this one.
    pub(crate) fn raise(&self, revision: u64) {
        let mut contents = self.write();
        contents.revision = contents.revision.max(revision);
    }

    /// Returns a cursor on the changes of a table after a revision.
    pub(crate) fn follow(&self, table: &Arc<str>, after: u64) -> Result<Cursor, Compacted> {
        let mut contents = self.write();
        let found = contents.table(table);
        if after < found.log_start {
            return Err(Compacted { oldest: found.log_start });
        }
        Ok(Cursor::new(self.clone(), Arc::clone(table), after, found.changed.subscribe()))
    }

    /// Returns the changes of a table after a revision, and the revision up to which they are complete.
    fn changes(&self, table: &str, after: u64) -> Result<(Vec<Arc<Change>>, u64), Compacted> {
        let contents = self.read();
        let Some(table) = contents.tables.get(table) else { return Ok((Vec::new(), contents.revision)) };
        // A watch that has sent all changes before the log begins has missed nothing.
        if after < table.removed {
            return Err(Compacted { oldest: table.log_start });
        }
        let from = table.log.partition_point(|change| change.revision <= after);
        Ok((table.log.range(from..).cloned().collect(), contents.revision))
    }

    /// Removes the history before a revision. Older revisions can be neither read nor watched.
    pub(crate) fn compact(&self, revision: u64) {
        let mut contents = self.write();
        let revision = revision.min(contents.revision);
        contents.origin = contents.origin.max(revision);
        for table in contents.tables.values_mut() {
            table.forget_until(revision);
        }
    }

    /// Ends the watches of a table.
    pub(crate) fn end_watches(&self, table: &str) {
        let mut contents = self.write();
        let revision = contents.revision;
        if let Some(table) = contents.tables.get_mut(table) {
            // Watches end when the sender that they subscribed to is dropped.
            table.changed = watch::Sender::new(revision);
        }
    }

    /// Removes a table. Its watches end.
    pub(crate) fn drop_table(&self, table: &str) {
        let mut contents = self.write();
        let revision = contents.revision;
        if let Some((name, _)) = contents.tables.remove_entry(table) {
            contents.ended.insert(name, revision);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.inner.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.inner.contents.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn new(revision: u64, history: usize) -> Self {
        Self { revision, origin: revision, tables: HashMap::default(), ended: HashMap::new(), history }
    }

    /// Returns a table, which is created if it does not exist.
    fn table(&mut self, name: &Arc<str>) -> &mut Table {
        let ended = self.ended.get(name).copied().unwrap_or_default();
        let start = self.origin.max(ended);
        self.tables.entry(Arc::clone(name)).or_insert_with(|| Table::new(start))
    }

    /// Checks and applies one write.
    fn commit(
        &mut self,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
    ) -> Result<Committed, CommitError> {
        let previous = self.tables.get(table).and_then(|table| table.objects.get(key));
        let committed = Change::make(key, expected, write, previous, self.revision + 1)?;
        self.apply(table, &committed.change);
        Ok(committed)
    }

    fn apply(&mut self, table: &Arc<str>, change: &Arc<Change>) {
        let history = self.history;
        self.revision = change.revision;
        let table = self.table(table);
        if change.kind == ChangeKind::Deleted {
            table.objects.remove(&change.key);
        } else {
            table.objects.insert(change.key.clone(), Arc::clone(&change.object));
        }
        table.log.push_back(Arc::clone(change));
        while table.log.len() > history {
            table.removed = table.log.pop_front().map_or(table.removed, |change| change.revision);
            table.log_start = table.log_start.max(table.removed);
        }
        table.changed.send_replace(change.revision);
    }
}

impl Table {
    fn new(revision: u64) -> Self {
        let changed = watch::Sender::new(revision);
        Self { objects: BTreeMap::new(), log: VecDeque::new(), log_start: revision, removed: 0, changed }
    }

    fn range(&self, prefix: &str) -> impl Iterator<Item = (&String, &Arc<Stored>)> {
        let from = std::ops::Bound::Included(prefix.to_owned());
        let prefix = prefix.to_owned();
        self.objects.range((from, std::ops::Bound::Unbounded)).take_while(move |(key, _)| key.starts_with(&prefix))
    }

    fn under(&self, prefix: &str) -> Vec<Arc<Stored>> {
        self.range(prefix).map(|(_, stored)| Arc::clone(stored)).collect()
    }

    fn forget_until(&mut self, revision: u64) {
        while let Some(change) = self.log.pop_front_if(|change| change.revision <= revision) {
            self.removed = change.revision;
        }
        self.log_start = self.log_start.max(revision);
    }
}
