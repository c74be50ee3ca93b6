//! The named entries of a kubeconfig, each with the file that it was read from.
//!
//! Names are unique. An entry keeps its position in its file, so that changing one does not move the others.

use std::{
    collections::{BTreeMap, btree_map::Entry as Slot},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    fields::{Fields, ObjectBuilder},
    problem::Problem,
};

/// Clusters, users, contexts or extensions, by name.
///
/// ```
/// use klient::client::config::{Cluster, Kubeconfig};
///
/// let mut kubeconfig = Kubeconfig::default();
/// kubeconfig.clusters.insert("kind", Cluster::new("https://127.0.0.1:6443"));
/// assert_eq!(kubeconfig.clusters.names().collect::<Vec<_>>(), ["kind"]);
/// assert_eq!(kubeconfig.clusters.origin("kind"), None);
/// ```
#[derive(Clone)]
pub struct Entries<T> {
    entries: BTreeMap<String, Entry<T>>,
}

#[derive(Clone)]
pub(super) struct Entry<T> {
    pub(super) value: T,
    pub(super) origin: Option<Arc<Path>>,
    // The position in the list that it was read from; the last for new entries.
    position: usize,
    // Fields besides the name and the value.
    rest: Map<String, Value>,
}

/// The value of a named entry.
pub(super) trait EntryValue: Clone + PartialEq {
    /// The name of the list, and of the value in each of its items.
    const NAMES: (&'static str, &'static str);

    fn read(path: String, value: Value) -> Result<Self, Problem>;

    fn write(&self) -> Value;

    /// Returns the file paths in the value, by field. The fields identify a path when it is made relative again.
    fn paths(&mut self) -> Vec<(&'static str, &mut PathBuf)> {
        Vec::new()
    }
}

impl<T> Entries<T> {
    /// Returns the entry of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    /// Returns the entry of that name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.get_mut(name).map(|entry| &mut entry.value)
    }

    /// Inserts an entry and returns the replaced one of that name, if any. A replaced entry keeps its file.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        match self.entries.entry(name.into()) {
            Slot::Occupied(mut slot) => Some(std::mem::replace(&mut slot.get_mut().value, value)),
            Slot::Vacant(slot) => {
                slot.insert(Entry { value, origin: None, position: usize::MAX, rest: Map::new() });
                None
            }
        }
    }

    /// Removes and returns the entry of that name.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.entries.remove(name).map(|entry| entry.value)
    }

    /// Returns whether there is an entry of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns the file that an entry was read from.
    #[doc(alias = "LocationOfOrigin")]
    pub fn origin(&self, name: &str) -> Option<&Path> {
        self.entries.get(name)?.origin.as_deref()
    }

    /// Iterates over the entries in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), &entry.value))
    }

    /// Iterates over the names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn shared_origin(&self, name: &str) -> Option<Arc<Path>> {
        self.entries.get(name)?.origin.clone()
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry<T>> {
        self.entries.values_mut()
    }

    pub(super) fn set_origin(&mut self, origin: &Arc<Path>) {
        for entry in self.entries.values_mut() {
            entry.origin = Some(Arc::clone(origin));
        }
    }

    /// Adds the entries of another file whose names are unused. Entries of the same name are not merged.
    pub(super) fn add_missing(&mut self, later: Self) {
        let end = self.entries.values().map(|entry| entry.position.saturating_add(1)).max().unwrap_or_default();
        for (name, entry) in later.entries {
            let position = entry.position.saturating_add(end);
            self.entries.entry(name).or_insert(Entry { position, ..entry });
        }
    }
}

/// Reads the list of an object.
pub(super) fn read_entries<T: EntryValue>(parent: &mut Fields) -> Result<Entries<T>, Problem> {
    let (list, key) = T::NAMES;
    let mut entries = BTreeMap::new();
    for (position, (path, item)) in parent.list(list)?.into_iter().enumerate() {
        let mut fields = Fields::new(path, item)?;
        let name = fields.text("name")?.unwrap_or_default();
        // From here on, the path has the name, which is clearer than a position.
        let path = parent.path_of(&format!("{list}[{name:?}]"));
        let mut fields = Fields::new(path.clone(), Value::Object(fields.rest()))?;
        let value = T::read(fields.path_of(key), fields.value(key))?;
        let entry = Entry { value, origin: None, position, rest: fields.rest() };
        if entries.insert(name, entry).is_some() {
            return Err(Problem::new(path, "is defined twice"));
        }
    }
    Ok(Entries { entries })
}

/// Returns the list in the order of the file.
pub(super) fn write_entries<T: EntryValue>(entries: &Entries<T>) -> Vec<Value> {
    let (_, key) = T::NAMES;
    let mut entries: Vec<_> = entries.entries.iter().collect();
    entries.sort_by_key(|(_, entry)| entry.position);
    let item = |(name, entry): (&String, &Entry<T>)| {
        ObjectBuilder::new(&entry.rest).always("name", name.as_str()).always(key, entry.value.write()).done().into()
    };
    entries.into_iter().map(item).collect()
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

/// Compares names and values; origins are ignored.
impl<T: PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: fmt::Debug> fmt::Debug for Entries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<String>, T> FromIterator<(N, T)> for Entries<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(items: I) -> Self {
        let mut entries = Self::default();
        for (name, value) in items {
            entries.insert(name, value);
        }
        entries
    }
}
