//! The named stanzas of a kubeconfig, each with the file that it came from.
//!
//! Names are unique. A stanza keeps its place in its file, so that a change of one does not move the others.

use std::{
    collections::{BTreeMap, btree_map::Entry as Slot},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    fields::{Fields, Making},
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
    // Its place in the list it was read from; the last for new ones.
    position: usize,
    // Fields beside the name and the value.
    rest: Map<String, Value>,
}

/// What a named stanza can hold.
pub(super) trait Stanza: Clone + PartialEq {
    /// The name of the list, and of the value in each of its items.
    const NAMES: (&'static str, &'static str);

    fn read(path: String, value: Value) -> Result<Self, Problem>;

    fn write(&self) -> Value;

    /// The files that it names, by field. The fields are part of what a relative path is compared by.
    fn paths(&mut self) -> Vec<(&'static str, &mut PathBuf)> {
        Vec::new()
    }
}

impl<T> Entries<T> {
    /// The one of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    /// The one of that name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.get_mut(name).map(|entry| &mut entry.value)
    }

    /// Adds one, or replaces the one of that name, which keeps its file; gives the old one back.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        match self.entries.entry(name.into()) {
            Slot::Occupied(mut slot) => Some(std::mem::replace(&mut slot.get_mut().value, value)),
            Slot::Vacant(slot) => {
                slot.insert(Entry { value, origin: None, position: usize::MAX, rest: Map::new() });
                None
            }
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.entries.remove(name).map(|entry| entry.value)
    }

    /// Whether there is one of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The file that one was read from.
    #[doc(alias = "LocationOfOrigin")]
    pub fn origin(&self, name: &str) -> Option<&Path> {
        self.entries.get(name)?.origin.as_deref()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), &entry.value))
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
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

    /// Adds those of another file whose names are still free. Whole: nothing of a namesake is mixed in.
    pub(super) fn add_missing(&mut self, later: Self) {
        let end = self.entries.values().map(|entry| entry.position.saturating_add(1)).max().unwrap_or_default();
        for (name, entry) in later.entries {
            let position = entry.position.saturating_add(end);
            self.entries.entry(name).or_insert(Entry { position, ..entry });
        }
    }
}

/// Reads the list out of an object.
pub(super) fn read_entries<T: Stanza>(parent: &mut Fields) -> Result<Entries<T>, Problem> {
    let (list, key) = T::NAMES;
    let mut entries = BTreeMap::new();
    for (position, (path, item)) in parent.list(list)?.into_iter().enumerate() {
        let mut fields = Fields::new(path, item)?;
        let name = fields.text("name")?.unwrap_or_default();
        // From here on by name, which says more than a position.
        let path = parent.path_of(&format!("{list}[{name:?}]"));
        let mut fields = Fields::new(path.clone(), Value::Object(fields.rest()))?;
        let value = T::read(fields.path_of(key), fields.value(key))?;
        let entry = Entry { value, origin: None, position, rest: fields.rest() };
        if entries.insert(name, entry).is_some() {
            return Err(Problem::new(path, "is given twice"));
        }
    }
    Ok(Entries { entries })
}

/// The list, in the order of the file.
pub(super) fn write_entries<T: Stanza>(entries: &Entries<T>) -> Vec<Value> {
    let (_, key) = T::NAMES;
    let mut entries: Vec<_> = entries.entries.iter().collect();
    entries.sort_by_key(|(_, entry)| entry.position);
    let item = |(name, entry): (&String, &Entry<T>)| {
        Making::new(&entry.rest).always("name", name.as_str()).always(key, entry.value.write()).done().into()
    };
    entries.into_iter().map(item).collect()
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

/// By names and values; where they came from does not matter.
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
