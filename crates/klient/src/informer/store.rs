//! The store: objects by key and by index values. Step 5 of an object's way.
//!
//! One writer at a time changes the store, in batches. Readers see a batch completely, with its indices, or not at all. Readers
//! take no lock: they read the newest contents, or hold them as a [`Snapshot`]. In client-go: `ThreadSafeStore`, `Store` and
//! `Indexer`.

use std::{fmt, hash::BuildHasher as _, sync::Arc};

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use klient_core::{ObjectKey, ResourceVersion};

use super::{
    index::{Index, IndexFunc, IndexValues, unknown_index},
    trie::{self, Trie},
};
use crate::{
    Error, ErrorKind,
    sync::{Mutex, PoisonError, Published},
};

/// A value that a store can hold: cheap to clone, and with a key.
pub trait Keyed: Clone + Send + Sync + 'static {
    /// Returns the key, which never changes.
    fn key(&self) -> &ObjectKey;
}

/// Any value with its key.
impl<V: Clone + Send + Sync + 'static> Keyed for (ObjectKey, V) {
    fn key(&self) -> &ObjectKey {
        &self.0
    }
}

/// A store of objects with indices. This is a handle: clones share one store.
///
/// Each informer has one. A store can also be used without an informer.
///
/// ```
/// use klient::{ObjectKey, informer::{IndexFunc, ThreadSafeStore}};
///
/// let store = ThreadSafeStore::new();
/// let by_namespace = store.add_index("namespace", IndexFunc::namespace())?;
/// store.insert((ObjectKey::namespaced("shop", "web"), 1));
/// let before = store.snapshot();
/// store.write(|writer| {
///     writer.insert((ObjectKey::namespaced("shop", "db"), 2));
///     writer.remove(&ObjectKey::namespaced("shop", "web"));
/// });
/// assert_eq!(by_namespace.keys("shop"), [ObjectKey::namespaced("shop", "db")]);
/// assert_eq!(before.len(), 1);
/// assert!(before.get(&ObjectKey::namespaced("shop", "web")).is_some());
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "Indexer")]
#[doc(alias = "Store")]
pub struct ThreadSafeStore<T> {
    sides: Arc<Sides<T>>,
}

/// The side of the writer and the side of the readers.
struct Sides<T> {
    writer: Mutex<StoreWriter<T>>,
    published: Published<Contents<T>>,
}

/// The contents of a store at one moment. Copies share all objects.
pub(super) struct Contents<T> {
    objects: Trie<T>,
    indices: Arc<[IndexContents<T>]>,
    version: ResourceVersion,
    hasher: RandomState,
}

struct IndexContents<T> {
    name: Arc<str>,
    values: Trie<Bucket<T>>,
}

/// The objects that have one value in an index.
struct Bucket<T> {
    value: Arc<str>,
    members: Trie<T>,
}

impl<T> Clone for Contents<T> {
    fn clone(&self) -> Self {
        let indices = Arc::clone(&self.indices);
        Self { objects: self.objects.clone(), indices, version: self.version.clone(), hasher: self.hasher.clone() }
    }
}

impl<T> Clone for IndexContents<T> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), values: self.values.clone() }
    }
}

impl<T> Clone for Bucket<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), members: self.members.clone() }
    }
}

/// Write access to a store inside of [`ThreadSafeStore::write`]. Readers see all of its changes in one step.
///
/// This is the writer's copy of the contents, which shares everything unchanged with the published contents.
pub struct StoreWriter<T> {
    contents: Contents<T>,
    functions: Vec<Function<T>>,
    old_values: IndexValues,
    new_values: IndexValues,
}

type StoredValues = HashMap<ObjectKey, Box<[Box<str>]>, RandomState>;

struct Function<T> {
    function: IndexFunc<T>,
    /// The values of each object, if they are costly to compute again.
    stored: Option<StoredValues>,
}

impl<T> ThreadSafeStore<T>
where
    T: Keyed,
{
    /// Creates an empty store.
    pub fn new() -> Self {
        let hasher = RandomState::default();
        let contents =
            Contents { objects: Trie::default(), indices: Arc::new([]), version: ResourceVersion::default(), hasher };
        let writer = StoreWriter {
            contents: contents.clone(),
            functions: Vec::new(),
            old_values: IndexValues::default(),
            new_values: IndexValues::default(),
        };
        Self { sides: Arc::new(Sides { writer: Mutex::new(writer), published: Published::new(contents) }) }
    }

    /// Changes the store in one step: readers see all of the changes or none.
    ///
    /// Waits for other writers, never for readers. Changing the same store inside of `change` deadlocks.
    #[doc(alias = "Transaction")]
    pub fn write<R>(&self, change: impl FnOnce(&mut StoreWriter<T>) -> R) -> R {
        let mut writer = self.sides.writer.lock().unwrap_or_else(|poisoned| {
            // A change panicked half-way. Readers never saw it, and it is undone.
            let mut writer = PoisonError::into_inner(poisoned);
            writer.contents = (*self.sides.published.get()).clone();
            writer.functions.iter_mut().for_each(|function| function.stored = None);
            writer
        });
        let result = change(&mut writer);
        self.sides.published.set(writer.contents.clone());
        result
    }

    /// Stores an object. Returns the object with the same key that it replaces, if any.
    pub fn insert(&self, object: T) -> Option<T> {
        self.write(|writer| writer.insert(object))
    }

    /// Removes the object with this key, and returns it.
    pub fn remove(&self, key: &ObjectKey) -> Option<T> {
        self.write(|writer| writer.remove(key))
    }

    /// Replaces all objects.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        self.write(|writer| writer.replace(objects, version));
    }

    /// Returns the object with this key, if any.
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        self.read(|contents| contents.get(key).cloned())
    }

    /// Returns all objects.
    pub fn list(&self) -> Objects<T> {
        self.read(|contents| Objects { members: contents.objects.clone() })
    }

    /// Returns the objects that have this value in an index.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such index.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, index: &str, value: &str) -> Result<Objects<T>, Error> {
        self.read(|contents| Ok(contents.at_index(contents.position(index)?, value)))
    }

    /// Returns the keys of the objects that have this value in an index, sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such index.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, Error> {
        self.by_index(index, value).map(|objects| objects.keys())
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.read(|contents| contents.objects.len())
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resource version of the store, which has all changes up to this version.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn resource_version(&self) -> ResourceVersion {
        self.read(|contents| contents.version.clone())
    }

    /// Returns the contents of the store as they are now, unaffected by later changes.
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot { contents: self.sides.published.get() }
    }

    /// Adds an index, at any time. All stored objects are in the index when this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if there is an index with this name.
    #[doc(alias = "AddIndexers")]
    pub fn add_index(&self, name: impl Into<Arc<str>>, function: IndexFunc<T>) -> Result<Index<T>, Error> {
        let name = name.into();
        let position = self.write(|writer| writer.add_index(Arc::clone(&name), function))?;
        Ok(Index::new(self.clone(), name, position))
    }

    /// Returns the index with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such index.
    pub fn index(&self, name: &str) -> Result<Index<T>, Error> {
        let (position, name) = self.read(|contents| {
            let position = contents.position(name)?;
            Ok::<_, Error>((position, Arc::clone(&contents.indices[position].name)))
        })?;
        Ok(Index::new(self.clone(), name, position))
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&Contents<T>) -> R) -> R {
        self.sides.published.read(read)
    }
}

impl<T: Keyed> Default for ThreadSafeStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for ThreadSafeStore<T> {
    fn clone(&self) -> Self {
        Self { sides: Arc::clone(&self.sides) }
    }
}

impl<T> fmt::Debug for ThreadSafeStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (objects, version) =
            self.sides.published.read(|contents| (contents.objects.len(), contents.version.clone()));
        f.debug_struct("ThreadSafeStore").field("objects", &objects).field("version", &version).finish()
    }
}

impl<T: Keyed> Contents<T> {
    fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.objects.find(self.hasher.hash_one(key), |object| object.key() == key)
    }

    fn position(&self, index: &str) -> Result<usize, Error> {
        self.indices.iter().position(|other| *other.name == *index).ok_or_else(|| unknown_index(index))
    }

    pub(super) fn at_index(&self, position: usize, value: &str) -> Objects<T> {
        let bucket = self.indices.get(position).and_then(|index| {
            let found = index.values.find(self.hasher.hash_one(value), |bucket| *bucket.value == *value);
            found.map(|bucket| bucket.members.clone())
        });
        Objects { members: bucket.unwrap_or_default() }
    }

    pub(super) fn index_values(&self, position: usize) -> Vec<Arc<str>> {
        let values = self.indices.get(position).map(|index| index.values.iter());
        let mut values: Vec<_> = values.into_iter().flatten().map(|bucket| Arc::clone(&bucket.value)).collect();
        values.sort_unstable();
        values
    }
}

impl<T> fmt::Debug for StoreWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreWriter").field("objects", &self.contents.objects.len()).finish_non_exhaustive()
    }
}

impl<T: Keyed> StoreWriter<T> {
    /// Returns the object with this key, including earlier changes of this writer.
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.contents.get(key)
    }

    /// Stores an object. Returns the object with the same key that it replaces, if any.
    #[expect(clippy::needless_pass_by_value, reason = "the store takes the object")]
    pub fn insert(&mut self, object: T) -> Option<T> {
        let hash = self.contents.hasher.hash_one(object.key());
        let old = self.contents.objects.insert(hash, object.clone(), |other| other.key() == object.key());
        for position in 0..self.functions.len() {
            self.reindex(position, hash, old.as_ref(), Some(&object));
        }
        old
    }

    /// Removes the object with this key, and returns it.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        let hash = self.contents.hasher.hash_one(key);
        let old = self.contents.objects.remove(hash, |other| other.key() == key)?;
        for position in 0..self.functions.len() {
            self.reindex(position, hash, Some(&old), None);
        }
        Some(old)
    }

    /// Replaces all objects.
    pub fn replace(&mut self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        self.clear();
        for object in objects {
            self.insert(object);
        }
        self.set_resource_version(version);
    }

    /// Sets the resource version of the store.
    pub fn set_resource_version(&mut self, version: ResourceVersion) {
        self.contents.version = version;
    }

    /// Returns all objects, including earlier changes of this writer.
    pub fn list(&self) -> Objects<T> {
        Objects { members: self.contents.objects.clone() }
    }

    fn clear(&mut self) {
        self.contents.objects = Trie::default();
        for index in indices_mut(&mut self.contents.indices) {
            index.values = Trie::default();
        }
        for function in &mut self.functions {
            if let Some(stored) = &mut function.stored {
                stored.clear();
            }
        }
    }

    fn add_index(&mut self, name: Arc<str>, function: IndexFunc<T>) -> Result<usize, Error> {
        if self.contents.position(&name).is_ok() {
            let message = format!("there is already an index named {name:?}");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let position = self.functions.len();
        let stored = function.is_costly().then(HashMap::default);
        self.functions.push(Function { function, stored });
        let added = IndexContents { name, values: Trie::default() };
        self.contents.indices = self.contents.indices.iter().cloned().chain([added]).collect();
        let objects = self.contents.objects.clone();
        for object in objects.iter() {
            self.reindex(position, self.contents.hasher.hash_one(object.key()), None, Some(object));
        }
        Ok(position)
    }

    /// Removes the old object from the values of an index that the new one does not have, and adds the new one to its values.
    fn reindex(&mut self, position: usize, hash: u64, old: Option<&T>, new: Option<&T>) {
        let Self { contents, functions, old_values, new_values } = self;
        let Function { function, stored } = &mut functions[position];
        old_values.clear();
        new_values.clear();
        match (old, &stored) {
            (None, _) => {}
            (Some(old), None) => function.compute(old, old_values),
            (Some(old), Some(stored)) => {
                for value in stored.get(old.key()).map(|values| values.iter()).into_iter().flatten() {
                    old_values.add(value);
                }
            }
        }
        if let Some(new) = new {
            function.compute(new, new_values);
        }
        if let (Some(stored), Some(key)) = (stored, new.or(old).map(Keyed::key)) {
            if new_values.iter().next().is_none() {
                stored.remove(key);
            } else {
                stored.insert(key.clone(), new_values.iter().map(Box::from).collect());
            }
        }
        let hasher = contents.hasher.clone();
        let values = &mut indices_mut(&mut contents.indices)[position].values;
        if let Some(old) = old {
            for value in old_values.iter().filter(|value| !new_values.contains(value)) {
                remove_member(values, hasher.hash_one(value), value, hash, old.key());
            }
        }
        if let Some(new) = new {
            for value in new_values.iter() {
                add_member(values, hasher.hash_one(value), value, hash, new);
            }
        }
    }
}

/// Returns the indices for writing. They are copied if a reader may see them.
fn indices_mut<T>(indices: &mut Arc<[IndexContents<T>]>) -> &mut [IndexContents<T>] {
    Arc::make_mut(indices)
}

fn add_member<T: Keyed>(values: &mut Trie<Bucket<T>>, value_hash: u64, value: &str, hash: u64, object: &T) {
    let same = |other: &T| other.key() == object.key();
    match values.find_mut(value_hash, |bucket| *bucket.value == *value) {
        Some(bucket) => {
            bucket.members.insert(hash, object.clone(), same);
        }
        None => {
            let mut members = Trie::default();
            members.insert(hash, object.clone(), same);
            let bucket = Bucket { value: value.into(), members };
            values.insert(value_hash, bucket, |_| false);
        }
    }
}

fn remove_member<T: Keyed>(values: &mut Trie<Bucket<T>>, value_hash: u64, value: &str, hash: u64, key: &ObjectKey) {
    let same_value = |bucket: &Bucket<T>| *bucket.value == *value;
    let Some(bucket) = values.find_mut(value_hash, same_value) else { return };
    bucket.members.remove(hash, |other| other.key() == key);
    if bucket.members.len() == 0 {
        values.remove(value_hash, same_value);
    }
}

/// The contents of a store at one moment.
pub struct Snapshot<T> {
    contents: Arc<Contents<T>>,
}

impl<T: Keyed> Snapshot<T> {
    /// Returns the object with this key, if any.
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.contents.get(key)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.contents.objects.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all objects, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.contents.objects.iter()
    }

    /// Returns the resource version of the store at that moment.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.contents.version
    }

    /// Returns the objects that have this value in an index.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Objects<T>, Error> {
        Ok(self.contents.at_index(self.contents.position(index)?, value))
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { contents: Arc::clone(&self.contents) }
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contents { objects, version, .. } = &*self.contents;
        f.debug_struct("Snapshot").field("objects", &objects.len()).field("version", version).finish()
    }
}

/// Objects of a store at one moment, unaffected by later changes. Creating this copies no object.
pub struct Objects<T> {
    members: Trie<T>,
}

impl<T> Objects<T> {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the objects, in no particular order.
    pub fn iter(&self) -> ObjectsIter<'_, T> {
        ObjectsIter { inner: self.members.iter() }
    }
}

impl<T: Keyed> Objects<T> {
    /// Returns the keys of the objects, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the objects, sorted by key.
    pub fn sorted(&self) -> Vec<T> {
        let mut objects: Vec<_> = self.iter().cloned().collect();
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        objects
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self { members: Trie::default() }
    }
}

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Self { members: self.members.clone() }
    }
}

impl<'a, T> IntoIterator for &'a Objects<T> {
    type Item = &'a T;
    type IntoIter = ObjectsIter<'a, T>;

    fn into_iter(self) -> ObjectsIter<'a, T> {
        self.iter()
    }
}

impl<T> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("len", &self.len()).finish()
    }
}

/// An iterator over [`Objects`].
pub struct ObjectsIter<'a, T> {
    inner: trie::Iter<'a, T>,
}

impl<'a, T> Iterator for ObjectsIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.inner.next()
    }
}

impl<T> fmt::Debug for ObjectsIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectsIter").finish_non_exhaustive()
    }
}
