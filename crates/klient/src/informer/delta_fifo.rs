//! The queue between reflector and store: what happened to each key, in order. Step 4 of an object's way.
//!
//! Each key is queued once, with everything that happened to it since it was last taken. The consumer takes one key, or all
//! of them as one batch, which is how a replace reaches the store in one step. There is one consumer; whatever it has taken
//! is in the known objects before it takes more, so that what vanished is found out when a replace is taken, not before.
//! In client-go: `DeltaFIFO`.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    hash::BuildHasher as _,
    task::{Context, Poll, Waker},
};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use klient_core::{ObjectKey, ResourceVersion};

use super::store::{Keyed, ThreadSafeStore};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// How many changes a queue holds before producers should wait.
const CAPACITY: usize = 4096;

/// One thing that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta<T> {
    /// It was made, or came to match the selectors.
    Added(T),
    /// It was changed.
    Updated(T),
    /// It is gone.
    Deleted(Tombstone<T>),
    /// It was in a new list: perhaps new, perhaps changed, perhaps as before.
    Replaced(T),
    /// Nothing happened: it is shown again, because somebody asked for that from time to time.
    Sync(T),
}

/// What is left of an object that is gone.
#[doc(alias = "DeletedFinalStateUnknown")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tombstone<T> {
    /// Its final state, as the server told it with the deletion.
    Final(T),
    /// The last state that was seen: the deletion itself happened while nobody was watching.
    LastKnown(T),
}

impl<T> Tombstone<T> {
    /// The last state there is.
    pub fn object(&self) -> &T {
        match self {
            Self::Final(object) | Self::LastKnown(object) => object,
        }
    }

    /// The last state there is.
    pub fn into_object(self) -> T {
        match self {
            Self::Final(object) | Self::LastKnown(object) => object,
        }
    }
}

impl<T> Delta<T> {
    /// The object that it happened to.
    pub fn object(&self) -> &T {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted(tombstone) => tombstone.object(),
        }
    }
}

/// What happened to one key, in order; never empty.
#[derive(Clone, Debug)]
pub struct Deltas<T> {
    key: ObjectKey,
    // Nearly always there is one: it needs no allocation.
    first: Delta<T>,
    rest: Vec<Delta<T>>,
}

impl<T> Deltas<T> {
    /// The key.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// What happened, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Delta<T>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The last thing that happened.
    pub fn newest(&self) -> &Delta<T> {
        self.rest.last().unwrap_or(&self.first)
    }

    fn newest_mut(&mut self) -> &mut Delta<T> {
        self.rest.last_mut().unwrap_or(&mut self.first)
    }
}

impl<T> IntoIterator for Deltas<T> {
    type Item = Delta<T>;
    type IntoIter = std::iter::Chain<std::iter::Once<Delta<T>>, std::vec::IntoIter<Delta<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.rest)
    }
}

/// Everything that was queued.
#[derive(Debug)]
pub struct DeltaBatch<T> {
    /// By key, in the order in which keys were queued.
    pub deltas: Vec<Deltas<T>>,
    /// The version that the known objects are at after this, if the queue was told.
    pub version: Option<ResourceVersion>,
    /// Whether the first list is part of this.
    pub in_initial_list: bool,
    /// Whether a replace is part of this: afterwards, the known objects are exactly a list of the server.
    pub replaced: bool,
}

/// The queue. A handle; clones would be of no use, as there is one consumer.
///
/// ```
/// use klient::informer::{Delta, DeltaFifo, ThreadSafeStore};
/// use klient::ObjectKey;
///
/// let known = ThreadSafeStore::new();
/// let fifo = DeltaFifo::with_known_objects(known.clone());
/// let object = |name: &str, value: i32| (ObjectKey::cluster(name), value);
/// known.insert(object("old", 1));
///
/// fifo.replace([object("a", 1)], "7".into());
/// fifo.update(object("a", 2));
/// let batch = fifo.try_pop_batch().unwrap();
/// assert_eq!(batch.deltas.len(), 2, "a, and the tombstone of what is not in the list");
/// assert!(matches!(batch.deltas[0].newest(), Delta::Updated((_, 2))));
/// assert!(matches!(batch.deltas[1].newest(), Delta::Deleted(tombstone) if tombstone.object().1 == 1));
/// ```
#[doc(alias = "RealFIFO")]
pub struct DeltaFifo<T> {
    state: Mutex<State<T>>,
    known: Option<ThreadSafeStore<T>>,
    capacity: usize,
}

struct State<T> {
    /// Keys in the order in which they were queued.
    queue: VecDeque<Deltas<T>>,
    /// Where each key is: positions in the queue, counted from when the queue was made.
    positions: HashTable<u64>,
    /// How many keys were taken from the front.
    taken: u64,
    hasher: RandomState,
    /// How many deltas are queued.
    len: usize,
    version: Option<ResourceVersion>,
    /// A replace is queued: known objects that are not queued have vanished.
    replacing: bool,
    /// A resync is queued: known objects that are not queued are shown again.
    resyncing: bool,
    /// Something was put in.
    populated: bool,
    /// The first list is queued, and no batch has taken it.
    initial: bool,
    /// How many keys of the first list are still queued.
    initial_left: usize,
    closed: bool,
    consumer: Option<Waker>,
    producers: Vec<Waker>,
}

impl<T: Keyed> DeltaFifo<T> {
    /// A queue that knows no objects but those queued.
    pub fn new() -> Self {
        let state = State {
            queue: VecDeque::new(),
            positions: HashTable::new(),
            taken: 0,
            hasher: RandomState::default(),
            len: 0,
            version: None,
            replacing: false,
            resyncing: false,
            populated: false,
            initial: false,
            initial_left: 0,
            closed: false,
            consumer: None,
            producers: Vec::new(),
        };
        Self { state: Mutex::new(state), known: None, capacity: CAPACITY }
    }

    /// A queue that finds in a store what was known before: what a replace leaves out, and what a resync shows.
    pub fn with_known_objects(known: ThreadSafeStore<T>) -> Self {
        Self { known: Some(known), ..Self::new() }
    }

    /// Sets how many changes it holds before [`is_full`](Self::is_full) says so. A replace counts as one.
    #[must_use]
    pub fn capacity(mut self, deltas: usize) -> Self {
        self.capacity = deltas.max(1);
        self
    }

    /// An object was made.
    pub fn add(&self, object: T) {
        self.put(Delta::Added(object));
    }

    /// An object was changed.
    pub fn update(&self, object: T) {
        self.put(Delta::Updated(object));
    }

    /// An object is gone; this is its final state. Of no effect if nobody has heard of the object.
    pub fn delete(&self, object: T) {
        let key = object.key().clone();
        let known = self.known.as_ref().is_none_or(|known| known.get(&key).is_some());
        let mut state = self.lock();
        state.populated = true;
        if known || state.position(&key).is_some() {
            state.push(Delta::Deleted(Tombstone::Final(object)));
        }
        state.wake_consumer();
    }

    /// These are all objects that there are, at a version.
    pub fn replace(&self, objects: impl IntoIterator<Item = T>, version: ResourceVersion) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let before = state.queue.len();
        let mut listed = vec![false; before];
        for object in objects {
            if let Some(seen) = state.push(Delta::Replaced(object)).and_then(|position| listed.get_mut(position)) {
                *seen = true;
            }
        }
        // What was queued and is not in the list has vanished as well.
        for (position, _) in listed.iter().enumerate().filter(|(_, listed)| !**listed) {
            let deltas = &state.queue[position];
            if !matches!(deltas.newest(), Delta::Deleted(_)) {
                let tombstone = Delta::Deleted(Tombstone::LastKnown(deltas.newest().object().clone()));
                state.push(tombstone);
            }
        }
        state.replacing = true;
        state.version = Some(version);
        if !state.populated {
            state.populated = true;
            state.initial = true;
            state.initial_left = state.queue.len();
        }
        // One replace is one change, whatever its size.
        state.len = state.len.min(self.capacity.saturating_sub(1));
        state.wake_consumer();
    }

    /// Everything up to a version is queued.
    pub fn bookmark(&self, version: ResourceVersion) {
        let mut state = self.lock();
        state.version = Some(version);
        state.wake_consumer();
    }

    /// Shows all known objects again to which nothing else happens.
    pub fn resync(&self) {
        let mut state = self.lock();
        state.resyncing = true;
        state.wake_consumer();
    }

    /// Takes the key that has waited longest, with all that happened to it. `None` when closed and empty.
    ///
    /// A replace that is taken key by key passes through states that no server had; see [`pop_batch`](Self::pop_batch).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn pop(&self) -> Option<Deltas<T>> {
        poll_fn(|context| self.poll(context, State::pop_front)).await
    }

    /// Takes everything that is queued. `None` when closed and empty.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn pop_batch(&self) -> Option<DeltaBatch<T>> {
        poll_fn(|context| self.poll(context, State::take)).await
    }

    /// Takes everything that is queued, if anything is.
    pub fn try_pop_batch(&self) -> Option<DeltaBatch<T>> {
        let mut state = self.lock();
        state.expand(self.known.as_ref());
        state.take()
    }

    /// Whether the first list was taken out entirely, or something else came before it.
    pub fn has_synced(&self) -> bool {
        let state = self.lock();
        state.populated && state.initial_left == 0
    }

    /// How many keys are queued.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether producers should wait.
    pub fn is_full(&self) -> bool {
        self.lock().len >= self.capacity
    }

    /// Waits until there is room, or the queue is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ready(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.closed || state.len < self.capacity {
                return Poll::Ready(());
            }
            state.producers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes nothing in any more. What is queued can still be taken.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake_consumer();
        state.wake_producers();
    }

    fn put(&self, delta: Delta<T>) {
        let mut state = self.lock();
        state.populated = true;
        state.push(delta);
        state.wake_consumer();
    }

    fn poll<R>(&self, context: &mut Context<'_>, take: impl FnOnce(&mut State<T>) -> Option<R>) -> Poll<Option<R>> {
        let mut state = self.lock();
        state.expand(self.known.as_ref());
        if let Some(taken) = take(&mut state) {
            return Poll::Ready(Some(taken));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.consumer = Some(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Keyed> State<T> {
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.version.is_none() && !self.replacing && !self.resyncing
    }

    fn position(&self, key: &ObjectKey) -> Option<usize> {
        self.position_by(self.hasher.hash_one(key), key)
    }

    fn position_by(&self, hash: u64, key: &ObjectKey) -> Option<usize> {
        let is_key = |position: &u64| self.at(*position).is_some_and(|deltas| deltas.key == *key);
        self.positions.find(hash, is_key).map(|position| self.index_of(*position))
    }

    fn index_of(&self, position: u64) -> usize {
        usize::try_from(position - self.taken).unwrap_or(usize::MAX)
    }

    fn at(&self, position: u64) -> Option<&Deltas<T>> {
        self.queue.get(self.index_of(position))
    }

    /// Adds to what happened to a key; says where in the queue, if the key was there.
    fn push(&mut self, delta: Delta<T>) -> Option<usize> {
        if self.closed {
            return None;
        }
        let key = delta.object().key();
        let hash = self.hasher.hash_one(key);
        if let Some(position) = self.position_by(hash, key) {
            let deltas = &mut self.queue[position];
            match (deltas.newest_mut(), delta) {
                // Two deletions in a row are one, and the state that the server told is the better one.
                (Delta::Deleted(old), Delta::Deleted(new)) => {
                    if matches!(old, Tombstone::LastKnown(_)) {
                        *old = new;
                    }
                }
                (_, Delta::Sync(_)) => {}
                (_, delta) => {
                    deltas.rest.push(delta);
                    self.len += 1;
                }
            }
            return Some(position);
        }
        let key = key.clone();
        let position = self.taken + self.queue.len() as u64;
        self.queue.push_back(Deltas { key, first: delta, rest: Vec::new() });
        let Self { queue, positions, taken, hasher, .. } = self;
        positions.insert_unique(hash, position, |position| {
            let index = usize::try_from(*position - *taken).unwrap_or(usize::MAX);
            queue.get(index).map_or(0, |deltas| hasher.hash_one(&deltas.key))
        });
        self.len += 1;
        None
    }

    /// Queues what a replace has let vanish and what a resync shows, now that the known objects are what was taken.
    fn expand(&mut self, known: Option<&ThreadSafeStore<T>>) {
        let (replacing, resyncing) = (std::mem::take(&mut self.replacing), std::mem::take(&mut self.resyncing));
        let Some(known) = known.filter(|_| replacing || resyncing) else { return };
        let closed = std::mem::take(&mut self.closed);
        let before = self.queue.len();
        for object in &known.list() {
            if self.position(object.key()).is_some() {
                continue;
            }
            self.push(match replacing {
                true => Delta::Deleted(Tombstone::LastKnown(object.clone())),
                false => Delta::Sync(object.clone()),
            });
        }
        self.closed = closed;
        if self.initial_left > 0 {
            self.initial_left += self.queue.len() - before;
        }
        // For `take`: the batch that it makes now is the one with the replace in it.
        self.replacing = replacing;
    }

    fn pop_front(&mut self) -> Option<Deltas<T>> {
        self.replacing = false;
        let Some(deltas) = self.queue.pop_front() else {
            self.version = None;
            return None;
        };
        let hash = self.hasher.hash_one(&deltas.key);
        if let Ok(entry) = self.positions.find_entry(hash, |position| *position == self.taken) {
            entry.remove();
        }
        self.taken += 1;
        self.len = self.len.saturating_sub(1 + deltas.rest.len());
        self.initial_left = self.initial_left.saturating_sub(1);
        self.wake_producers();
        Some(deltas)
    }

    fn take(&mut self) -> Option<DeltaBatch<T>> {
        let replaced = std::mem::take(&mut self.replacing);
        let version = self.version.take();
        if self.queue.is_empty() && version.is_none() && !replaced {
            return None;
        }
        let in_initial_list = std::mem::take(&mut self.initial);
        self.taken += self.queue.len() as u64;
        self.len = 0;
        self.initial_left = 0;
        // A table that once held a whole list is not kept for the sake of single events.
        if self.positions.capacity() > CAPACITY {
            self.positions = HashTable::new();
        } else {
            self.positions.clear();
        }
        self.wake_producers();
        let deltas = std::mem::take(&mut self.queue).into();
        Some(DeltaBatch { deltas, version, in_initial_list, replaced })
    }

    fn wake_consumer(&mut self) {
        if let Some(waker) = self.consumer.take() {
            waker.wake();
        }
    }

    fn wake_producers(&mut self) {
        for waker in self.producers.drain(..) {
            waker.wake();
        }
    }
}

impl<T: Keyed> Default for DeltaFifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Keyed> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("DeltaFifo").field("keys", &state.queue.len()).field("closed", &state.closed).finish()
    }
}
