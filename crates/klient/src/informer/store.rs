//! The store: objects by key and by index values. Step 5 of an object's way.
//!
//! One writer at a time changes it, in batches; each batch appears to readers at once, with its indices, or not at all.
//! Readers take no lock: they look at the newest state, or keep one as a [`Snapshot`] for as long as they like. In client-go:
//! `ThreadSafeStore`, `Store` and `Indexer`.

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

/// What a store can hold: small, cheap to clone, and with a key of its own.
pub trait Keyed: Clone + Send + Sync + 'static {
    /// The key, which never changes.
    fn key(&self) -> &ObjectKey;
}

/// Anything, with its key beside it.
impl<V: Clone + Send + Sync + 'static> Keyed for (ObjectKey, V) {
    fn key(&self) -> &ObjectKey {
        &self.0
    }
}

/// A handle to a store of objects with indices. Clones are handles to the same store.
///
/// An informer has one; it is of use without an informer, too.
///
/// ```
/// use klient::informer::{IndexFunc, ThreadSafeStore};
/// use klient::ObjectKey;
///
/// let store = ThreadSafeStore::new();
/// let by_namespace = store.add_index("namespace", IndexFunc::namespace())?;
/// store.insert((ObjectKey::namespaced("shop", "web"), 1));
/// let before = store.snapshot();
/// store.write(|batch| {
///     batch.insert((ObjectKey::namespaced("shop", "db"), 2));
///     batch.remove(&ObjectKey::namespaced("shop", "web"));
/// });
/// assert_eq!(by_namespace.keys("shop"), [ObjectKey::namespaced("shop", "db")]);
/// assert_eq!(before.len(), 1);
/// assert!(before.get(&ObjectKey::namespaced("shop", "web")).is_some());
/// # Ok::<(), klient::Error>(())
/// ```
#[doc(alias = "Indexer")]
#[doc(alias = "Store")]
pub struct ThreadSafeStore<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    writer: Mutex<Writer<T>>,
    published: Published<State<T>>,
}

/// What readers see.
pub(super) struct State<T> {
    objects: Trie<T>,
    indices: Arc<[IndexState<T>]>,
    version: ResourceVersion,
    hasher: RandomState,
}

struct IndexState<T> {
    name: Arc<str>,
    values: Trie<Bucket<T>>,
}

/// The objects that have one value in an index.
struct Bucket<T> {
    value: Arc<str>,
    members: Trie<T>,
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        let indices = Arc::clone(&self.indices);
        Self { objects: self.objects.clone(), indices, version: self.version.clone(), hasher: self.hasher.clone() }
    }
}

impl<T> Clone for IndexState<T> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), values: self.values.clone() }
    }
}

impl<T> Clone for Bucket<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), members: self.members.clone() }
    }
}

/// What the writer works on: it shares with the published state whatever it has not changed since.
struct Writer<T> {
    state: State<T>,
    functions: Vec<Function<T>>,
    old_values: IndexValues,
    new_values: IndexValues,
}

type Remembered = HashMap<ObjectKey, Box<[Box<str>]>, RandomState>;

struct Function<T> {
    function: IndexFunc<T>,
    /// The values of each object, if it is costly to compute them again.
    remembered: Option<Remembered>,
}

impl<T> ThreadSafeStore<T>
where
    T: Keyed,
{
    /// An empty store.
    pub fn new() -> Self {
        let hasher = RandomState::default();
        let state =
            State { objects: Trie::default(), indices: Arc::new([]), version: ResourceVersion::default(), hasher };
        let writer = Writer {
            state: state.clone(),
            functions: Vec::new(),
            old_values: IndexValues::default(),
            new_values: IndexValues::default(),
        };
        Self { shared: Arc::new(Shared { writer: Mutex::new(writer), published: Published::new(state) }) }
    }

    /// Changes the store in one step: readers see all of it or nothing.
    ///
    /// Waits for other writers, never for readers. Changing the same store inside of `change` would wait for ever.
    #[doc(alias = "Transaction")]
    pub fn write<R>(&self, change: impl FnOnce(&mut Batch<'_, T>) -> R) -> R {
        let mut writer = self.shared.writer.lock().unwrap_or_else(|poisoned| {
            // A change panicked half-way: what it did was never seen, and is undone.
            let mut writer = PoisonError::into_inner(poisoned);
            writer.state = (*self.shared.published.get()).clone();
            writer.functions.iter_mut().for_each(|function| function.remembered = None);
            writer
        });
        let result = change(&mut Batch { writer: &mut writer });
        self.shared.published.set(writer.state.clone());
        result
    }

    /// Puts an object in, in the place of the one with its key; gives that back.
    pub fn insert(&self, object: T) -> Option<T> {
        self.write(|batch| batch.insert(object))
    }

    /// Takes an object out.
    pub fn remove(&self, key: &ObjectKey) -> Option<T> {
        self.write(|batch| batch.remove(key))
    }

    /// Puts these objects in the place of all others.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        self.write(|batch| batch.replace(objects, version));
    }

    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        self.read(|state| state.get(key).cloned())
    }

    /// Everything that is in the store now.
    pub fn list(&self) -> Objects<T> {
        self.read(|state| Objects { members: state.objects.clone() })
    }

    /// The objects that have this value in an index.
    ///
    /// # Errors
    ///
    /// If there is no such index.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, index: &str, value: &str) -> Result<Objects<T>, Error> {
        self.read(|state| Ok(state.at_index(state.position(index)?, value)))
    }

    /// The keys of the objects that have this value in an index, sorted.
    ///
    /// # Errors
    ///
    /// If there is no such index.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, Error> {
        self.by_index(index, value).map(|objects| objects.keys())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read(|state| state.objects.len())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version that the store is at: everything up to it is here.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn resource_version(&self) -> ResourceVersion {
        self.read(|state| state.version.clone())
    }

    /// The store as it is now, unchanged by what comes.
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot { state: self.shared.published.get() }
    }

    /// Adds an index, at any time: what is in the store is in the index when this returns.
    ///
    /// # Errors
    ///
    /// If there is an index of that name.
    #[doc(alias = "AddIndexers")]
    pub fn add_index(&self, name: impl Into<Arc<str>>, function: IndexFunc<T>) -> Result<Index<T>, Error> {
        let name = name.into();
        let position = self.write(|batch| batch.writer.add_index(Arc::clone(&name), function))?;
        Ok(Index::new(self.clone(), name, position))
    }

    /// The index of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn index(&self, name: &str) -> Result<Index<T>, Error> {
        let (position, name) = self.read(|state| {
            let position = state.position(name)?;
            Ok::<_, Error>((position, Arc::clone(&state.indices[position].name)))
        })?;
        Ok(Index::new(self.clone(), name, position))
    }

    pub(super) fn read<R>(&self, look: impl FnOnce(&State<T>) -> R) -> R {
        self.shared.published.read(look)
    }
}

impl<T: Keyed> Default for ThreadSafeStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for ThreadSafeStore<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for ThreadSafeStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (objects, version) = self.shared.published.read(|state| (state.objects.len(), state.version.clone()));
        f.debug_struct("ThreadSafeStore").field("objects", &objects).field("version", &version).finish()
    }
}

impl<T: Keyed> State<T> {
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

/// Changes of a store that appear to readers in one step.
pub struct Batch<'a, T> {
    writer: &'a mut Writer<T>,
}

impl<T: Keyed> Batch<'_, T> {
    /// The object with this key, as this batch has it.
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.writer.state.get(key)
    }

    /// Puts an object in, in the place of the one with its key; gives that back.
    #[expect(clippy::needless_pass_by_value, reason = "the store keeps it")]
    pub fn insert(&mut self, object: T) -> Option<T> {
        self.writer.insert(&object)
    }

    /// Takes an object out.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        self.writer.remove(key)
    }

    /// Puts these objects in the place of all others.
    pub fn replace(&mut self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        self.writer.clear();
        for object in objects {
            self.writer.insert(&object);
        }
        self.set_resource_version(version);
    }

    /// Says which version the store is at.
    pub fn set_resource_version(&mut self, version: ResourceVersion) {
        self.writer.state.version = version;
    }

    /// Everything that is in the store, as this batch has it.
    pub fn list(&self) -> Objects<T> {
        Objects { members: self.writer.state.objects.clone() }
    }
}

impl<T> fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("objects", &self.writer.state.objects.len()).finish_non_exhaustive()
    }
}

impl<T: Keyed> Writer<T> {
    fn insert(&mut self, object: &T) -> Option<T> {
        let hash = self.state.hasher.hash_one(object.key());
        let old = self.state.objects.insert(hash, object.clone(), |other| other.key() == object.key());
        for position in 0..self.functions.len() {
            self.reindex(position, hash, old.as_ref(), Some(object));
        }
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        let hash = self.state.hasher.hash_one(key);
        let old = self.state.objects.remove(hash, |other| other.key() == key)?;
        for position in 0..self.functions.len() {
            self.reindex(position, hash, Some(&old), None);
        }
        Some(old)
    }

    fn clear(&mut self) {
        self.state.objects = Trie::default();
        for index in indices_mut(&mut self.state.indices) {
            index.values = Trie::default();
        }
        for function in &mut self.functions {
            if let Some(remembered) = &mut function.remembered {
                remembered.clear();
            }
        }
    }

    fn add_index(&mut self, name: Arc<str>, function: IndexFunc<T>) -> Result<usize, Error> {
        if self.state.position(&name).is_ok() {
            let what = format!("an index is called {name:?} already");
            return Err(Error::new(ErrorKind::AlreadyExists, what));
        }
        let position = self.functions.len();
        let remembered = function.is_costly().then(HashMap::default);
        self.functions.push(Function { function, remembered });
        let added = IndexState { name, values: Trie::default() };
        self.state.indices = self.state.indices.iter().cloned().chain([added]).collect();
        let objects = self.state.objects.clone();
        for object in objects.iter() {
            self.reindex(position, self.state.hasher.hash_one(object.key()), None, Some(object));
        }
        Ok(position)
    }

    /// Takes the old object out of an index where the new one does not belong, and puts that in where it does.
    fn reindex(&mut self, position: usize, hash: u64, old: Option<&T>, new: Option<&T>) {
        let Self { state, functions, old_values, new_values } = self;
        let Function { function, remembered } = &mut functions[position];
        old_values.clear();
        new_values.clear();
        match (old, &remembered) {
            (None, _) => {}
            (Some(old), None) => function.compute(old, old_values),
            (Some(old), Some(remembered)) => {
                for value in remembered.get(old.key()).map(|values| values.iter()).into_iter().flatten() {
                    old_values.add(value);
                }
            }
        }
        if let Some(new) = new {
            function.compute(new, new_values);
        }
        if let (Some(remembered), Some(key)) = (remembered, new.or(old).map(Keyed::key)) {
            if new_values.iter().next().is_none() {
                remembered.remove(key);
            } else {
                remembered.insert(key.clone(), new_values.iter().map(Box::from).collect());
            }
        }
        let hasher = state.hasher.clone();
        let values = &mut indices_mut(&mut state.indices)[position].values;
        if let Some(old) = old {
            for value in old_values.iter().filter(|value| !new_values.contains(value)) {
                take_out(values, hasher.hash_one(value), value, hash, old.key());
            }
        }
        if let Some(new) = new {
            for value in new_values.iter() {
                put_in(values, hasher.hash_one(value), value, hash, new);
            }
        }
    }
}

/// The indices, to be changed: copied if a reader may see them.
fn indices_mut<T>(indices: &mut Arc<[IndexState<T>]>) -> &mut [IndexState<T>] {
    Arc::make_mut(indices)
}

fn put_in<T: Keyed>(values: &mut Trie<Bucket<T>>, value_hash: u64, value: &str, hash: u64, object: &T) {
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

fn take_out<T: Keyed>(values: &mut Trie<Bucket<T>>, value_hash: u64, value: &str, hash: u64, key: &ObjectKey) {
    let same_value = |bucket: &Bucket<T>| *bucket.value == *value;
    let Some(bucket) = values.find_mut(value_hash, same_value) else { return };
    bucket.members.remove(hash, |other| other.key() == key);
    if bucket.members.len() == 0 {
        values.remove(value_hash, same_value);
    }
}

/// A store as it was at one moment.
pub struct Snapshot<T> {
    state: Arc<State<T>>,
}

impl<T: Keyed> Snapshot<T> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.state.get(key)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.objects.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.state.objects.iter()
    }

    /// The version that the store was at.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.state.version
    }

    /// The objects that have this value in an index.
    ///
    /// # Errors
    ///
    /// If there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Objects<T>, Error> {
        Ok(self.state.at_index(self.state.position(index)?, value))
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { objects, version, .. } = &*self.state;
        f.debug_struct("Snapshot").field("objects", &objects.len()).field("version", version).finish()
    }
}

/// Objects of a store as they were at one moment; unchanged by what comes. Having them copies none.
pub struct Objects<T> {
    members: Trie<T>,
}

impl<T> Objects<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them, in no particular order.
    pub fn iter(&self) -> ObjectsIter<'_, T> {
        ObjectsIter { inner: self.members.iter() }
    }
}

impl<T: Keyed> Objects<T> {
    /// Their keys, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// Each of them, sorted by key.
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

/// Gives out the objects of [`Objects`].
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
