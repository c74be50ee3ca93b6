//! Where objects are kept: every write is a revision, every revision can be read and watched until it is compacted.
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

use serde_json::Value;
use tokio::sync::watch;

use self::durable::Durable;
pub(crate) use self::{
    cursor::{Compacted, Cursor},
    durable::OpenError,
    stored::{Change, ChangeKind, Stored, json_event},
};

/// The store of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    state: RwLock<State>,
    durable: Option<Durable>,
}

struct State {
    revision: u64,
    /// Nothing is known of what was before this revision.
    origin: u64,
    tables: HashMap<Arc<str>, Table>,
    /// When tables ended that are no longer there.
    ended: HashMap<Arc<str>, u64>,
    history: usize,
}

/// The objects of one resource.
struct Table {
    objects: BTreeMap<String, Arc<Stored>>,
    log: VecDeque<Arc<Change>>,
    /// Changes up to this revision are no longer in the log.
    log_start: u64,
    changed: watch::Sender<u64>,
}

/// What must be there for a write to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No object.
    Absent,
    /// The object as of this revision.
    Revision(u64),
}

/// What a write does.
#[derive(Debug)]
pub(crate) enum Write {
    /// Stores an object.
    Put(Value),
    /// Deletes one, whose last state this is.
    Delete(Value),
}

/// Why a write was not done.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// There is something else than was expected; nothing at all if `None`.
    Changed(Option<Arc<Stored>>),
    /// The object is not one that can be stored.
    Invalid(String),
    /// The disk failed.
    Disk(String),
}

/// Objects as they were at one revision, in the order of their keys.
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

impl Store {
    /// An empty store in memory, whose first write will be the revision after this one.
    pub(crate) fn in_memory(revision: u64, history: usize) -> Self {
        let state = State::new(revision, history);
        Self { shared: Arc::new(Shared { state: RwLock::new(state), durable: None }) }
    }

    /// A store that keeps its objects in a folder. The history of revisions does not outlive the process.
    ///
    /// Revisions continue after the newest one on disk, or after `revision` if that is higher. In a new folder they begin after
    /// `first`, unless `revision` is given.
    pub(crate) fn open(folder: &Path, revision: Option<u64>, first: u64, history: usize) -> Result<Self, OpenError> {
        let (durable, loaded) = Durable::open(folder)?;
        let start = match (revision, loaded.revision) {
            (None, 0) => first,
            (revision, on_disk) => on_disk.max(revision.unwrap_or_default()),
        };
        let mut state = State::new(start, history);
        for (table, key, stored) in loaded.objects {
            state.table(&table).objects.insert(key, Arc::new(stored));
        }
        Ok(Self { shared: Arc::new(Shared { state: RwLock::new(state), durable: Some(durable) }) })
    }

    /// Ends writing to the folder, if there is one, and frees it. What is in memory can still be read.
    pub(crate) fn close(&self) {
        if let Some(durable) = &self.shared.durable {
            durable.close();
        }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// One object.
    pub(crate) fn get(&self, table: &str, key: &str) -> Option<Arc<Stored>> {
        self.read().tables.get(table)?.objects.get(key).cloned()
    }

    /// How many objects a table has.
    pub(crate) fn count(&self, table: &str) -> usize {
        self.read().tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// The objects whose keys begin so, as they are now.
    pub(crate) fn list(&self, table: &str, prefix: &str) -> Snapshot {
        let state = self.read();
        let objects = state.tables.get(table).map_or_else(Vec::new, |table| table.under(prefix));
        Snapshot { revision: state.revision, objects }
    }

    /// The objects whose keys begin so, as they were.
    pub(crate) fn list_at(&self, table: &str, prefix: &str, revision: u64) -> Result<Snapshot, Compacted> {
        let state = self.read();
        let Some(table) = state.tables.get(table) else {
            let oldest = state.origin.max(state.ended.get(table).copied().unwrap_or_default());
            let empty = Snapshot { revision, objects: Vec::new() };
            return if revision < oldest { Err(Compacted { oldest }) } else { Ok(empty) };
        };
        if revision < table.log_start {
            return Err(Compacted { oldest: table.log_start });
        }
        // From now backwards: what each later write found.
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

    /// Does one write, if what is there is what was expected. The object gets the revision of the write.
    pub(crate) async fn commit(
        &self,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
    ) -> Result<Arc<Change>, CommitError> {
        match &self.shared.durable {
            None => self.write().commit(table, key, expected, write),
            Some(durable) => durable.commit(&self.shared, table, key, expected, write).await,
        }
    }

    /// Follows the changes of a table after a revision.
    pub(crate) fn follow(&self, table: &Arc<str>, after: u64) -> Result<Cursor, Compacted> {
        let mut state = self.write();
        let found = state.table(table);
        if after < found.log_start {
            return Err(Compacted { oldest: found.log_start });
        }
        Ok(Cursor::new(self.clone(), Arc::clone(table), after, found.changed.subscribe()))
    }

    /// Changes of a table after a revision, and the revision up to which they are complete.
    fn changes(&self, table: &str, after: u64) -> Result<(Vec<Arc<Change>>, u64), Compacted> {
        let state = self.read();
        let Some(table) = state.tables.get(table) else { return Ok((Vec::new(), state.revision)) };
        if after < table.log_start {
            return Err(Compacted { oldest: table.log_start });
        }
        let from = table.log.partition_point(|change| change.revision <= after);
        Ok((table.log.range(from..).cloned().collect(), state.revision))
    }

    /// Forgets what was before a revision: older ones can be neither read nor watched.
    pub(crate) fn compact(&self, revision: u64) {
        let mut state = self.write();
        let revision = revision.min(state.revision);
        state.origin = state.origin.max(revision);
        for table in state.tables.values_mut() {
            table.forget_until(revision);
        }
    }

    /// Ends a table: its watchers see the end of their watch.
    pub(crate) fn drop_table(&self, table: &str) {
        let mut state = self.write();
        let revision = state.revision;
        if let Some((name, _)) = state.tables.remove_entry(table) {
            state.ended.insert(name, revision);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.shared.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(revision: u64, history: usize) -> Self {
        Self { revision, origin: revision, tables: HashMap::new(), ended: HashMap::new(), history }
    }

    /// A table, which begins where nothing is known of it yet.
    fn table(&mut self, name: &Arc<str>) -> &mut Table {
        let ended = self.ended.get(name).copied().unwrap_or_default();
        let start = self.origin.max(ended);
        self.tables.entry(Arc::clone(name)).or_insert_with(|| Table::new(start))
    }

    /// Checks and does one write.
    fn commit(
        &mut self,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
    ) -> Result<Arc<Change>, CommitError> {
        let change = self.prepare(table, key, expected, write, self.revision + 1)?;
        self.apply(table, &change);
        Ok(change)
    }

    /// Checks a write and makes the change that it would be.
    fn prepare(
        &self,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
        revision: u64,
    ) -> Result<Arc<Change>, CommitError> {
        let previous = self.tables.get(table).and_then(|table| table.objects.get(key));
        Change::make(key, expected, write, previous, revision).map(Arc::new)
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
            table.log_start = table.log.pop_front().map_or(table.log_start, |change| change.revision);
        }
        table.changed.send_replace(change.revision);
    }
}

impl Table {
    fn new(revision: u64) -> Self {
        let changed = watch::Sender::new(revision);
        Self { objects: BTreeMap::new(), log: VecDeque::new(), log_start: revision, changed }
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
        while self.log.front().is_some_and(|change| change.revision <= revision) {
            self.log.pop_front();
        }
        self.log_start = self.log_start.max(revision);
    }
}
