//! The store on disk: acknowledged writes survive a crash.
//!
//! A thread commits waiting writes in one transaction, and only then makes them visible:
//! clients never see a revision that a crash could undo.

use std::{
    collections::HashMap,
    fmt, fs, panic,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use tokio::sync::oneshot;

use super::{Change, ChangeKind, CommitError, Committed, Expected, StoreInner, Stored, Write};

const OBJECTS: TableDefinition<'_, (&str, &str), (u64, &[u8])> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FILE: &str = "objects.redb";
const REVISION: &str = "revision";
/// The maximum number of writes in a transaction.
const MAX_BATCH: usize = 512;

/// The database and its thread.
pub(super) struct Durable {
    open: Mutex<Option<Open>>,
}

struct Open {
    sender: mpsc::Sender<Request>,
    thread: thread::JoinHandle<()>,
}

/// The contents of a folder.
pub(super) struct Loaded {
    pub(super) revision: u64,
    pub(super) objects: Vec<(Arc<str>, String, Stored)>,
}

struct Request {
    inner: Arc<StoreInner>,
    table: Arc<str>,
    key: String,
    expected: Expected,
    write: Write,
    reply: oneshot::Sender<Result<Committed, CommitError>>,
}

/// An error of a folder that could not be opened.
#[derive(Debug)]
pub(crate) struct OpenError {
    message: String,
}

impl Durable {
    pub(super) fn open(folder: &Path) -> Result<(Self, Loaded), OpenError> {
        let wrong = |error: &dyn fmt::Display| OpenError { message: format!("{}: {error}", folder.display()) };
        create_private(folder).map_err(|error| wrong(&error))?;
        // The database panics on some kinds of damage.
        let opened = panic::catch_unwind(|| open_database(&folder.join(FILE)));
        let opened = opened.unwrap_or_else(|_| Err("objects.redb is damaged".into()));
        let (database, loaded) = opened.map_err(|error| wrong(&error))?;
        let (sender, requests) = mpsc::channel();
        // The thread ends when the store is closed, which drops the last sender.
        let thread = thread::Builder::new()
            .name("klient-apiserver-store".to_owned())
            .spawn(move || run(&database, &requests))
            .map_err(|error| wrong(&error))?;
        Ok((Self { open: Mutex::new(Some(Open { sender, thread })) }, loaded))
    }

    pub(super) async fn commit(
        &self,
        inner: &Arc<StoreInner>,
        table: &Arc<str>,
        key: &str,
        expected: Expected,
        write: Write,
    ) -> Result<Committed, CommitError> {
        let (reply, replied) = oneshot::channel();
        let request =
            Request { inner: Arc::clone(inner), table: Arc::clone(table), key: key.to_owned(), expected, write, reply };
        let gone = || CommitError::Disk("the store is closed".to_owned());
        match &*self.open.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(open) => open.sender.send(request).map_err(|_| gone())?,
            None => return Err(gone()),
        }
        replied.await.map_err(|_| gone())?
    }

    /// Closes the database after the waiting writes, so that it can be opened again.
    pub(super) fn close(&self) {
        let Some(Open { sender, thread }) = self.open.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        drop(sender);
        // The last reference to the store may be in its own thread, in a write whose request was cancelled.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.close();
    }
}

/// Creates a folder that only its owner can read, and the file of the database likewise. A folder that exists keeps its mode.
fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    let mut files = fs::OpenOptions::new();
    folders.recursive(true);
    files.create(true).append(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut files, 0o600);
    }
    folders.create(folder)?;
    let file = files.open(folder.join(FILE))?;
    // The mode above applies to a new file only.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

/// Checks the database, and loads its objects.
fn open_database(path: &Path) -> Result<(Database, Loaded), Box<dyn std::error::Error>> {
    let mut database = Database::create(path)?;
    // Opening the database repairs unfinished transactions. This is other damage.
    if !database.check_integrity()? {
        return Err("objects.redb is damaged, and its last valid state is older than acknowledged writes: restore a backup or delete it".into());
    }
    let loaded = load(&database)?;
    Ok((database, loaded))
}

fn load(database: &Database) -> Result<Loaded, Box<dyn std::error::Error>> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(META)?;
    transaction.commit()?;
    let transaction = database.begin_read()?;
    let revision = transaction.open_table(META)?.get(REVISION)?.map_or(0, |found| found.value());
    let mut objects = Vec::new();
    let mut tables: HashMap<String, Arc<str>> = HashMap::new();
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = entry?;
        let ((table, key), (revision, json)) = (key.value(), value.value());
        let table = tables.entry(table.to_owned()).or_insert_with(|| Arc::from(table));
        let stored =
            Stored::from_json(json, revision).map_err(|error| format!("cannot read {key} of {table}: {error:?}"))?;
        objects.push((Arc::clone(table), key.to_owned(), stored));
    }
    Ok(Loaded { revision, objects })
}

fn run(database: &Database, requests: &mpsc::Receiver<Request>) {
    while let Ok(first) = requests.recv() {
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH
            && let Ok(next) = requests.try_recv()
        {
            batch.push(next);
        }
        commit_batch(database, batch);
    }
}

/// Checks the writes of a batch in order, commits them, and makes them visible.
fn commit_batch(database: &Database, batch: Vec<Request>) {
    let Some(inner) = batch.first().map(|request| Arc::clone(&request.inner)) else { return };
    let mut prepared = Vec::new();
    // The objects that earlier writes of this batch stored: `None` if they were deleted.
    let mut pending: HashMap<(Arc<str>, String), Option<Arc<Stored>>> = HashMap::new();
    let mut revision = inner.contents.read().unwrap_or_else(PoisonError::into_inner).revision;
    for Request { table, key, expected, write, reply, .. } in batch {
        let object_key = (Arc::clone(&table), key);
        let previous = match pending.get(&object_key) {
            Some(previous) => previous.clone(),
            None => {
                let contents = inner.contents.read().unwrap_or_else(PoisonError::into_inner);
                contents.tables.get(&table).and_then(|table| table.objects.get(&object_key.1)).cloned()
            }
        };
        match Change::make(&object_key.1, expected, write, previous.as_ref(), revision + 1) {
            Ok(committed) => {
                revision += 1;
                let change = &committed.change;
                let after = (change.kind != ChangeKind::Deleted).then(|| Arc::clone(&change.object));
                pending.insert(object_key, after);
                prepared.push((table, committed, reply));
            }
            // The request may have been cancelled.
            Err(error) => drop(reply.send(Err(error))),
        }
    }
    if prepared.is_empty() {
        return;
    }
    if let Err(error) =
        commit_to_disk(database, revision, prepared.iter().map(|(table, committed, _)| (table, &committed.change)))
    {
        for (_, _, reply) in prepared {
            drop(reply.send(Err(CommitError::Disk(error.to_string()))));
        }
        return;
    }
    {
        let mut contents = inner.contents.write().unwrap_or_else(PoisonError::into_inner);
        for (table, committed, _) in &prepared {
            contents.apply(table, &committed.change);
        }
    }
    for (_, committed, reply) in prepared {
        drop(reply.send(Ok(committed)));
    }
}

fn commit_to_disk<'a>(
    database: &Database,
    revision: u64,
    changes: impl Iterator<Item = (&'a Arc<str>, &'a Arc<Change>)>,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for (table, change) in changes {
            let object_key = (&**table, change.key.as_str());
            if change.kind == ChangeKind::Deleted {
                objects.remove(object_key)?;
            } else {
                objects.insert(object_key, (change.revision, change.object.json()))?;
            }
        }
        transaction.open_table(META)?.insert(REVISION, revision)?;
    }
    transaction.commit()?;
    Ok(())
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpenError {}
