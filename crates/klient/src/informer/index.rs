//! Indices: objects by the values that they have in common.
//!
//! An index function returns the values of an object: none, one or many. Functions of metadata and of field paths read the
//! object's bytes. Only a function of the typed object decodes it, once, when it is stored.

use std::{fmt, panic, sync::Arc};

use super::store::{Keyed, Objects, ThreadSafeStore};
use crate::{Error, ErrorKind, ObjectKey};

type Compute<T> = Arc<dyn Fn(&T, &mut IndexValues) + Send + Sync>;

/// A function that returns the values of an object in an index.
///
/// ```
/// use klient::{ObjectKey, informer::{IndexFunc, ThreadSafeStore}};
///
/// let store = ThreadSafeStore::<(ObjectKey, u32)>::new();
/// let by_parity = store.add_index("parity", IndexFunc::new(|(_, number): &(ObjectKey, u32), found| {
///     found.add(if number % 2 == 0 { "even" } else { "odd" });
/// }))?;
/// for number in 1..=3 {
///     store.insert((ObjectKey::cluster(&number.to_string()), number));
/// }
/// assert_eq!(by_parity.get("odd").len(), 2);
/// # Ok::<(), klient::Error>(())
/// ```
pub struct IndexFunc<T> {
    compute: Compute<T>,
    costly: bool,
}

impl<T> IndexFunc<T> {
    /// Creates an index function, which adds the values of an object to its second argument.
    pub fn new(compute: impl Fn(&T, &mut IndexValues) + Send + Sync + 'static) -> Self {
        Self { compute: Arc::new(compute), costly: false }
    }

    /// Marks the function as slow, so that its values are stored for each object. Otherwise they are computed again when the
    /// object is changed or deleted.
    #[must_use]
    pub fn costly(mut self) -> Self {
        self.costly = true;
        self
    }

    pub(super) fn is_costly(&self) -> bool {
        self.costly
    }

    /// Computes the values of an object. There are none if the function panics.
    pub(super) fn compute(&self, object: &T, values: &mut IndexValues) {
        values.clear();
        let computed = panic::catch_unwind(panic::AssertUnwindSafe(|| (self.compute)(object, values)));
        if computed.is_err() {
            tracing::error!("index function panicked, leaving the object out of the index");
            values.clear();
        }
    }
}

impl<T: Keyed> IndexFunc<T> {
    /// Creates an index by namespace. Cluster-scoped objects are not in the index.
    #[doc(alias = "MetaNamespaceIndexFunc")]
    pub fn namespace() -> Self {
        Self::new(|object: &T, found| {
            if let Some(namespace) = object.key().namespace() {
                found.add(namespace);
            }
        })
    }
}

impl<T> Clone for IndexFunc<T> {
    fn clone(&self) -> Self {
        Self { compute: Arc::clone(&self.compute), costly: self.costly }
    }
}

impl<T> fmt::Debug for IndexFunc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexFunc").field("costly", &self.costly).finish_non_exhaustive()
    }
}

/// A list of index functions with names.
#[derive(Clone, Debug)]
pub struct Indexers<T> {
    functions: Vec<(String, IndexFunc<T>)>,
}

impl<T> Indexers<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self { functions: Vec::new() }
    }

    /// Adds an index function.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, function: IndexFunc<T>) -> Self {
        self.functions.push((name.into(), function));
        self
    }
}

impl<T> Default for Indexers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> IntoIterator for Indexers<T> {
    type Item = (String, IndexFunc<T>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.functions.into_iter()
    }
}

/// The values of an object in an index.
#[derive(Default)]
pub struct IndexValues {
    // All values in one string, and the end of each, so that a value needs no allocation.
    text: String,
    ends: Vec<usize>,
}

impl IndexValues {
    /// Adds a value, unless it was added before.
    pub fn add(&mut self, value: &str) {
        if !self.contains(value) {
            self.text.push_str(value);
            self.ends.push(self.text.len());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    pub(super) fn contains(&self, value: &str) -> bool {
        self.iter().any(|other| other == value)
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

impl fmt::Debug for IndexValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An index of a store.
#[derive(Clone, Debug)]
pub struct Index<T> {
    store: ThreadSafeStore<T>,
    name: Arc<str>,
    position: usize,
}

impl<T: Keyed> Index<T> {
    pub(super) fn new(store: ThreadSafeStore<T>, name: Arc<str>, position: usize) -> Self {
        Self { store, name, position }
    }

    /// Returns the name of the index.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the objects that have this value now.
    #[doc(alias = "ByIndex")]
    pub fn get(&self, value: &str) -> Objects<T> {
        self.store.read(|contents| contents.at_index(self.position, value))
    }

    /// Returns the keys of the objects that have this value, sorted.
    #[doc(alias = "IndexKeys")]
    pub fn keys(&self, value: &str) -> Vec<ObjectKey> {
        self.get(value).keys()
    }

    /// Returns all values that objects have now, sorted.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<Arc<str>> {
        self.store.read(|contents| contents.index_values(self.position))
    }
}

#[cold]
pub(super) fn unknown_index(name: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("there is no index named {name:?}: add it with `add_index`"))
}
