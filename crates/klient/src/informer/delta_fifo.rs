//! The fifo between reflector and store: the deltas that wait to be applied. Step 4 of an object's way.
//!
//! A plain value without a lock: inside an informer the reflector owns it. Deltas are queued in the order in which the server
//! sent them, and consecutive deltas of one key that say the same thing are folded into one. [`pop_batch`](DeltaFifo::pop_batch)
//! takes everything in the server's order, which is how a replace reaches the store in one step; [`pop`](DeltaFifo::pop) takes
//! one key with all of its deltas. The consumer must apply what it has taken to the known objects before it takes more: only
//! then does a replace find out which objects vanished. Several threads share a fifo through a
//! [`DeltaQueue`](super::DeltaQueue). In client-go: `DeltaFIFO` and `RealFIFO`.

use std::{collections::VecDeque, fmt, hash::BuildHasher as _};

use foldhash::quality::RandomState;
use hashbrown::{HashSet, HashTable};
use klient_core::{ObjectKey, ResourceVersion};

use super::store::{Keyed, ThreadSafeStore};

/// Tables and queues larger than this are not kept for reuse after a batch.
const RETAINED: usize = 4096;

/// One change of an object, from the reflector to the store.
///
/// Handlers receive an [`Event`](super::Event) instead, which has the old state and the new one: only the store knows both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta<T> {
    /// The object was created, or began to match the selectors.
    Added(T),
    /// The object was changed.
    Updated(T),
    /// The object was deleted, or no longer matches the selectors.
    Deleted(Tombstone<T>),
    /// The object is part of a new list. It may be new, changed or unchanged.
    Replaced(T),
    /// The object did not change and is sent again because of a resync.
    Sync(T),
}

/// The last state of a deleted object.
#[doc(alias = "DeletedFinalStateUnknown")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tombstone<T> {
    /// The final state, as the server sent it with the deletion.
    Final(T),
    /// The last state that was seen. The object was deleted while no watch was open, so its final state is unknown.
    LastKnown(T),
}

impl<T> Tombstone<T> {
    /// Returns the last state of the object.
    pub fn object(&self) -> &T {
        match self {
            Self::Final(object) | Self::LastKnown(object) => object,
        }
    }

    /// Returns the last state of the object.
    pub fn into_object(self) -> T {
        match self {
            Self::Final(object) | Self::LastKnown(object) => object,
        }
    }
}

impl<T> Delta<T> {
    /// Returns the object that the change is about.
    pub fn object(&self) -> &T {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted(tombstone) => tombstone.object(),
        }
    }
}

/// The deltas of one key, oldest first; never empty.
#[derive(Clone, Debug)]
pub struct Deltas<T> {
    key: ObjectKey,
    // Nearly always there is one, which needs no allocation.
    first: Delta<T>,
    rest: Vec<Delta<T>>,
}

impl<T> Deltas<T> {
    /// Returns the key that all of the deltas are about.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Iterates over the deltas, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Delta<T>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Returns the newest delta.
    pub fn newest(&self) -> &Delta<T> {
        self.rest.last().unwrap_or(&self.first)
    }
}

impl<T> IntoIterator for Deltas<T> {
    type Item = Delta<T>;
    type IntoIter = std::iter::Chain<std::iter::Once<Delta<T>>, std::vec::IntoIter<Delta<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.rest)
    }
}

/// Everything that was queued in a [`DeltaFifo`].
#[derive(Debug)]
pub struct DeltaBatch<T> {
    /// The deltas in the server's order. The tombstones of a replace stand before the objects of its list.
    pub deltas: Vec<Delta<T>>,
    /// The resource version of the known objects after this batch, if the fifo received one.
    pub version: Option<ResourceVersion>,
    /// Whether the first list is part of this batch.
    pub in_initial_list: bool,
    /// Whether a replace is part of this batch. Afterwards, the known objects are exactly one list of the server.
    pub replaced: bool,
}

/// A queue of deltas with one consumer.
///
/// ```
/// use klient::{ObjectKey, informer::{Delta, DeltaFifo, ThreadSafeStore}};
///
/// let known = ThreadSafeStore::new();
/// let mut fifo = DeltaFifo::with_known_objects(known.clone());
/// let object = |name: &str, value: i32| (ObjectKey::cluster(name), value);
/// known.insert(object("old", 1));
///
/// fifo.replace([object("a", 1)], "7".into());
/// fifo.update(object("a", 2));
/// let batch = fifo.pop_batch().unwrap();
/// assert!(matches!(&batch.deltas[0], Delta::Deleted(tombstone) if tombstone.object().1 == 1), "not in the list");
/// assert!(matches!(batch.deltas[1], Delta::Replaced((_, 1))));
/// assert!(matches!(batch.deltas[2], Delta::Updated((_, 2))));
/// ```
#[doc(alias = "DeltaFIFO")]
#[doc(alias = "RealFIFO")]
pub struct DeltaFifo<T> {
    /// Deltas in the order in which they were queued; `None` where [`pop`](Self::pop) took one from the middle.
    queue: VecDeque<Option<Queued<T>>>,
    /// The position of each key's newest delta. Positions count from the creation of the fifo.
    newest: HashTable<u64>,
    /// The position of the front of the queue.
    front: u64,
    hasher: RandomState,
    known: Option<ThreadSafeStore<T>>,
    version: Option<ResourceVersion>,
    /// The position of the first object of a replace whose tombstones are not queued yet.
    replaced_at: Option<u64>,
    /// Whether known objects that are not queued are to be sent again.
    resyncing: bool,
    /// Whether anything was ever queued.
    populated: bool,
    /// Whether the first list is queued and no batch has taken it.
    initial: bool,
    /// The number of keys of the first list that are still queued.
    initial_left: usize,
    /// The number of changes that are queued, where a replace counts as one.
    changes: usize,
}

struct Queued<T> {
    delta: Delta<T>,
    /// The position of the next delta of the same key.
    next: Option<u64>,
}

impl<T: Keyed> DeltaFifo<T> {
    /// Creates a fifo that knows only the objects that are queued in it.
    pub fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            newest: HashTable::new(),
            front: 0,
            hasher: RandomState::default(),
            known: None,
            version: None,
            replaced_at: None,
            resyncing: false,
            populated: false,
            initial: false,
            initial_left: 0,
            changes: 0,
        }
    }

    /// Creates a fifo that reads a store to find the objects that a replace deletes and a resync sends again.
    #[doc(alias = "KnownObjects")]
    pub fn with_known_objects(known: ThreadSafeStore<T>) -> Self {
        Self { known: Some(known), ..Self::new() }
    }

    /// Queues the creation of an object.
    pub fn add(&mut self, object: T) {
        self.push(Delta::Added(object));
    }

    /// Queues a change of an object.
    pub fn update(&mut self, object: T) {
        self.push(Delta::Updated(object));
    }

    /// Queues the deletion of an object, given its final state. Has no effect if the object is neither queued nor known.
    pub fn delete(&mut self, object: T) {
        self.push(Delta::Deleted(Tombstone::Final(object)));
    }

    /// Queues one delta. Has no effect if it deletes an object that is neither queued nor known.
    pub fn push(&mut self, delta: Delta<T>) {
        self.populated = true;
        if matches!(delta, Delta::Deleted(_)) {
            let key = delta.object().key();
            let is_known = self.known.as_ref().is_none_or(|known| known.get(key).is_some());
            if !is_known && !self.is_queued(key) {
                return;
            }
        }
        self.enqueue(delta);
    }

    /// Queues a complete list of objects with its resource version. Objects that are not in the list are deleted.
    pub fn replace(&mut self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        let objects: Vec<T> = objects.into_iter().collect();
        let changes = self.changes + 1;
        if !self.queue.is_empty() {
            self.delete_unlisted(&objects);
        }
        self.replaced_at = Some(self.end());
        self.newest.reserve(objects.len(), |position| {
            let queued = self.queue.get(index(*position, self.front)).and_then(Option::as_ref);
            queued.map_or(0, |queued| self.hasher.hash_one(queued.delta.object().key()))
        });
        self.queue.reserve(objects.len());
        for object in objects {
            self.enqueue(Delta::Replaced(object));
        }
        self.version = Some(version);
        self.changes = changes;
        if !self.populated {
            self.populated = true;
            self.initial = true;
            self.initial_left = self.newest.len();
        }
    }

    /// Sets the resource version of the known objects once everything that is queued has been applied.
    pub fn bookmark(&mut self, version: ResourceVersion) {
        self.version = Some(version);
    }

    /// Queues all known objects that have no other delta, so that they are sent again.
    pub fn resync(&mut self) {
        self.resyncing = true;
    }

    /// Takes the key that has waited longest, with all of its deltas.
    ///
    /// Taking a replace key by key passes through states that the server never had; see [`pop_batch`](Self::pop_batch).
    pub fn pop(&mut self) -> Option<Deltas<T>> {
        self.queue_unlisted();
        let Some(Queued { delta: first, mut next }) = self.queue.pop_front().flatten() else {
            self.version = None;
            return None;
        };
        let key = first.object().key().clone();
        let mut newest = self.front;
        let mut rest = Vec::new();
        while let Some(position) = next {
            newest = position;
            // The front has left the queue, so positions are one further than the queue's indices.
            let queued = self.queue.get_mut(index(position, self.front + 1)).and_then(Option::take);
            next = queued.and_then(|Queued { delta, next }| {
                rest.push(delta);
                next
            });
        }
        if let Ok(entry) = self.newest.find_entry(self.hasher.hash_one(&key), |position| *position == newest) {
            entry.remove();
        }
        self.front += 1;
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.front += 1;
        }
        self.changes = self.changes.saturating_sub(1 + rest.len());
        self.initial_left = self.initial_left.saturating_sub(1);
        self.initial = self.initial && self.initial_left > 0;
        Some(Deltas { key, first, rest })
    }

    /// Takes everything that is queued, in the server's order, if there is anything.
    #[doc(alias = "PopBatch")]
    pub fn pop_batch(&mut self) -> Option<DeltaBatch<T>> {
        let (replaced_at, resyncing) = (self.replaced_at.take(), std::mem::take(&mut self.resyncing));
        let version = self.version.take();
        let not_queued = if replaced_at.is_some() || resyncing { self.not_queued() } else { Vec::new() };
        if self.queue.is_empty() && not_queued.is_empty() && version.is_none() && replaced_at.is_none() {
            return None;
        }
        let mut deltas = Vec::with_capacity(self.queue.len() + not_queued.len());
        let before_list = replaced_at.map_or(self.queue.len(), |position| index(position, self.front));
        let end = self.end();
        deltas.extend(self.queue.drain(..before_list).flatten().map(|queued| queued.delta));
        deltas.extend(not_queued.into_iter().map(|object| match replaced_at {
            Some(_) => Delta::Deleted(Tombstone::LastKnown(object)),
            None => Delta::Sync(object),
        }));
        deltas.extend(self.queue.drain(..).flatten().map(|queued| queued.delta));
        self.front = end;
        self.changes = 0;
        self.initial_left = 0;
        // Tables that once held a whole list are not kept for the sake of single events.
        if self.newest.capacity() > RETAINED {
            (self.queue, self.newest) = (VecDeque::new(), HashTable::new());
        } else {
            self.newest.clear();
        }
        let in_initial_list = std::mem::take(&mut self.initial);
        Some(DeltaBatch { deltas, version, in_initial_list, replaced: replaced_at.is_some() })
    }

    /// Returns whether the first list was taken completely, or another change was queued before any list.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        let has_tombstones = || self.known.as_ref().is_some_and(|known| !known.is_empty());
        let list_waits = self.initial && self.replaced_at.is_some() && has_tombstones();
        self.populated && self.initial_left == 0 && !list_waits
    }

    /// Returns the number of keys that are queued.
    pub fn len(&self) -> usize {
        self.newest.len()
    }

    /// Returns whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.version.is_none() && self.replaced_at.is_none() && !self.resyncing
    }

    /// Returns the number of changes that are queued. A replace counts as one change, whatever its size.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// The position behind the last queued delta.
    fn end(&self) -> u64 {
        self.front + self.queue.len() as u64
    }

    pub(super) fn is_queued(&self, key: &ObjectKey) -> bool {
        let is_key = |position: &u64| {
            let queued = self.queue.get(index(*position, self.front)).and_then(Option::as_ref);
            queued.is_some_and(|queued| queued.delta.object().key() == key)
        };
        self.newest.find(self.hasher.hash_one(key), is_key).is_some()
    }

    /// Appends a delta, unless the newest delta of its key says the same.
    fn enqueue(&mut self, delta: Delta<T>) {
        let end = self.end();
        let Self { queue, newest, front, hasher, .. } = self;
        let hash = hasher.hash_one(delta.object().key());
        let same_key = |position: &u64| {
            let queued = queue.get(index(*position, *front)).and_then(Option::as_ref);
            queued.is_some_and(|queued| queued.delta.object().key() == delta.object().key())
        };
        let known = newest.find(hash, same_key).copied();
        let before = known.and_then(|position| queue.get_mut(index(position, *front))?.as_mut());
        match (before, &delta) {
            (Some(Queued { delta: Delta::Deleted(old), .. }), Delta::Deleted(new)) => {
                // The final state is better than the last known one.
                if matches!(old, Tombstone::LastKnown(_)) {
                    *old = new.clone();
                }
                return;
            }
            (Some(_), Delta::Sync(_)) => return,
            (Some(before), _) => {
                before.next = Some(end);
                if let Some(position) = newest.find_mut(hash, |position| Some(*position) == known) {
                    *position = end;
                }
                queue.push_back(Some(Queued { delta, next: None }));
            }
            (None, _) => {
                queue.push_back(Some(Queued { delta, next: None }));
                newest.insert_unique(hash, end, |position| {
                    let queued = queue.get(index(*position, *front)).and_then(Option::as_ref);
                    queued.map_or(0, |queued| hasher.hash_one(queued.delta.object().key()))
                });
            }
        }
        self.changes += 1;
    }

    /// Deletes queued objects that a new list does not have.
    fn delete_unlisted(&mut self, objects: &[T]) {
        let listed: HashSet<&ObjectKey, RandomState> = objects.iter().map(Keyed::key).collect();
        let is_unlisted = |queued: &&Queued<T>| {
            let is_newest = queued.next.is_none() && !matches!(queued.delta, Delta::Deleted(_));
            is_newest && !listed.contains(queued.delta.object().key())
        };
        let unlisted = self.queue.iter().flatten().filter(is_unlisted);
        let unlisted: Vec<T> = unlisted.map(|queued| queued.delta.object().clone()).collect();
        for object in unlisted {
            self.enqueue(Delta::Deleted(Tombstone::LastKnown(object)));
        }
    }

    /// Queues what a replace deletes and what a resync sends again, for a consumer that takes key by key.
    fn queue_unlisted(&mut self) {
        let (replaced_at, resyncing) = (self.replaced_at.take(), std::mem::take(&mut self.resyncing));
        if replaced_at.is_none() && !resyncing {
            return;
        }
        let not_queued = self.not_queued();
        if self.initial {
            self.initial_left += not_queued.len();
        }
        for object in not_queued {
            self.enqueue(match replaced_at {
                Some(_) => Delta::Deleted(Tombstone::LastKnown(object)),
                None => Delta::Sync(object),
            });
        }
    }

    /// Returns the known objects that are not queued.
    fn not_queued(&self) -> Vec<T> {
        let Some(known) = &self.known else { return Vec::new() };
        known.list().iter().filter(|object| !self.is_queued(object.key())).cloned().collect()
    }
}

/// The index in the queue of a position, given the position of the queue's front.
fn index(position: u64, front: u64) -> usize {
    usize::try_from(position.wrapping_sub(front)).unwrap_or(usize::MAX)
}

impl<T: Keyed> Default for DeltaFifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo").field("keys", &self.newest.len()).field("changes", &self.changes).finish()
    }
}
