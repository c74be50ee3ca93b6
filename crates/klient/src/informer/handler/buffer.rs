//! The events that wait for one handler.
//!
//! Events wait in order. When more than a fixed number wait, a new event is merged into the one that waits for the same object.
//! From then on at most two events per object wait, so that memory is bounded by the number of objects and not by the speed of
//! the handler. Merging leaves out intermediate states, never the last one: the handler sees each object added before it is
//! updated, and updated before it is deleted.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use klient_core::{ObjectKey, Resource};

use super::Event;

/// The number of events that may wait before they are merged.
const BOUND: usize = 4096;

/// An entry that waits for a handler.
pub(in crate::informer) enum Item<K> {
    Event(Event<K>),
    /// Marks the end of the first list.
    Synced,
}

/// A queue of events between the informer's task and the task of one handler.
pub(in crate::informer) struct Buffer<K> {
    pending: Mutex<Pending<K>>,
    bound: usize,
}

struct Pending<K> {
    /// `None` where an event was merged away.
    queue: VecDeque<Option<Item<K>>>,
    /// The number of `None` in the queue.
    holes: usize,
    /// The number of entries that are not events.
    marks: usize,
    /// The number of entries that were taken from the front.
    taken: usize,
    /// The position of each key's newest event, counted as `taken` is. Only while events are merged.
    newest: Option<HashMap<ObjectKey, usize, RandomState>>,
    waker: Option<Waker>,
    closed: bool,
}

impl<K: Resource> Buffer<K> {
    pub(super) fn new() -> Self {
        Self::bounded(BOUND)
    }

    fn bounded(bound: usize) -> Self {
        Self { pending: Mutex::new(Pending::new()), bound }
    }

    /// Appends events in order.
    pub(in crate::informer) fn extend(&self, events: impl Iterator<Item = Event<K>>) {
        let mut pending = self.lock();
        for event in events {
            pending.push(event, self.bound);
        }
        pending.wake();
    }

    /// Appends the mark for the end of the first list.
    pub(in crate::informer) fn push_synced(&self) {
        let mut pending = self.lock();
        pending.queue.push_back(Some(Item::Synced));
        pending.marks += 1;
        pending.wake();
    }

    /// Waits for the next entry. Returns `None` when the buffer is closed and empty.
    pub(in crate::informer) async fn next(&self) -> Option<Item<K>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub(in crate::informer) fn poll_next(&self, context: &std::task::Context<'_>) -> Poll<Option<Item<K>>> {
        let mut pending = self.lock();
        if let Some(item) = pending.pop(self.bound) {
            return Poll::Ready(Some(item));
        }
        if pending.closed {
            return Poll::Ready(None);
        }
        pending.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Returns the number of events that wait.
    pub(in crate::informer) fn len(&self) -> usize {
        let pending = self.lock();
        pending.queue.len() - pending.holes - pending.marks
    }

    /// Closes the buffer: later events are ignored.
    pub(in crate::informer) fn close(&self) {
        let mut pending = self.lock();
        pending.closed = true;
        pending.wake();
    }

    /// Closes the buffer, and drops the events that wait.
    pub(in crate::informer) fn abandon(&self) {
        let mut pending = self.lock();
        *pending = Pending { closed: true, waker: pending.waker.take(), ..Pending::new() };
        pending.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Pending<K>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Pending<K> {
    fn new() -> Self {
        Self { queue: VecDeque::new(), holes: 0, marks: 0, taken: 0, newest: None, waker: None, closed: false }
    }

    fn push(&mut self, event: Event<K>, bound: usize) {
        if self.closed {
            return;
        }
        if self.queue.len() < bound && self.newest.is_none() {
            self.queue.push_back(Some(Item::Event(event)));
            return;
        }
        let mostly_outdated = |newest: &HashMap<_, _, _>| newest.len() > 2 * self.queue.len() + bound;
        if self.holes > bound || self.newest.as_ref().is_none_or(mostly_outdated) {
            self.index();
        }
        let position = self.taken + self.queue.len();
        let newest = self.newest.get_or_insert_default();
        let Some(at) = newest.get(event.key()).copied().filter(|at| *at >= self.taken) else {
            newest.insert(event.key().clone(), position);
            self.queue.push_back(Some(Item::Event(event)));
            return;
        };
        let waiting = &mut self.queue[at - self.taken];
        let was_hole = waiting.is_none();
        let not_merged = merge(waiting, event);
        match (was_hole, waiting.is_none()) {
            (false, true) => self.holes += 1,
            (true, false) => self.holes -= 1,
            _ => {}
        }
        if let Some(event) = not_merged {
            newest.insert(event.key().clone(), position);
            self.queue.push_back(Some(Item::Event(event)));
        }
    }

    /// Removes the holes, and indexes the newest event of each key.
    fn index(&mut self) {
        self.queue.retain(Option::is_some);
        self.holes = 0;
        self.taken = 0;
        let mut newest = HashMap::default();
        for (position, item) in self.queue.iter().enumerate() {
            if let Some(Item::Event(event)) = item {
                newest.insert(event.key().clone(), position);
            }
        }
        self.newest = Some(newest);
    }

    fn pop(&mut self, bound: usize) -> Option<Item<K>> {
        loop {
            let Some(item) = self.queue.pop_front() else {
                // The memory of a long queue is not kept for a short one.
                if self.queue.capacity() > bound {
                    self.queue = VecDeque::new();
                }
                self.newest = None;
                return None;
            };
            self.taken += 1;
            let Some(item) = item else {
                self.holes -= 1;
                continue;
            };
            self.marks -= usize::from(matches!(item, Item::Synced));
            if self.queue.len() < bound / 2 {
                self.newest = None;
            } else if let (Some(newest), Item::Event(event)) = (&mut self.newest, &item)
                && newest.get(event.key()).is_some_and(|at| *at < self.taken)
            {
                newest.remove(event.key());
            }
            return Some(item);
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Merges an event into the entry of the same object, which may be a hole. Returns the event if the handler must receive both.
fn merge<K: Resource>(entry: &mut Option<Item<K>>, event: Event<K>) -> Option<Event<K>> {
    let Some(Item::Event(waiting)) = entry.take() else {
        *entry = Some(Item::Event(event));
        return None;
    };
    let merged = match (waiting, event) {
        (Event::Added { in_initial_list, .. }, Event::Updated { new, .. }) => {
            Event::Added { object: new, in_initial_list }
        }
        // The handler has never seen the object.
        (Event::Added { .. }, Event::Deleted(_)) => return None,
        (Event::Updated { old, .. }, Event::Updated { new, .. }) => Event::Updated { old, new },
        (Event::Updated { .. } | Event::Deleted(_), Event::Deleted(tombstone)) => Event::Deleted(tombstone),
        (waiting, event) => {
            *entry = Some(Item::Event(waiting));
            return Some(event);
        }
    };
    *entry = Some(Item::Event(merged));
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::ConfigMap;
    use proptest::prelude::*;

    use super::*;
    use crate::informer::{CachedObject, Tombstone};

    fn object(name: u8, version: u32) -> CachedObject<ConfigMap> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_string());
        map.metadata.resource_version = Some(version.to_string());
        CachedObject::from_object(map)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Change(u8),
        Delete(u8),
        Take,
        Sync,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0u8..8).prop_map(Step::Change),
            3 => (0u8..8).prop_map(Step::Delete),
            3 => Just(Step::Take),
            1 => Just(Step::Sync),
        ];
        proptest::collection::vec(step, 0..300)
    }

    fn take(buffer: &Buffer<ConfigMap>) -> Option<Item<ConfigMap>> {
        match buffer.poll_next(&std::task::Context::from_waker(Waker::noop())) {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }

    /// Handles one entry. Fails unless it follows from the states that the handler knows.
    fn receive(known: &mut BTreeMap<ObjectKey, u32>, item: Item<ConfigMap>, synced: &mut usize) {
        let version = |object: &CachedObject<ConfigMap>| object.resource_version().as_str().parse::<u32>().unwrap();
        let Item::Event(event) = item else {
            *synced += 1;
            return;
        };
        let key = event.key().clone();
        match &event {
            Event::Added { object, .. } => assert_eq!(known.insert(key, version(object)), None),
            Event::Updated { old, new } => assert_eq!(known.insert(key, version(new)), Some(version(old))),
            Event::Deleted(_) => assert!(known.remove(&key).is_some()),
        }
    }

    proptest! {
        #[test]
        fn buffer_merges_states_but_keeps_the_last(steps in steps(), bound in 1usize..20) {
            let buffer = Buffer::bounded(bound);
            let (mut there, mut known) = (BTreeMap::new(), BTreeMap::new());
            let (mut version, mut marks, mut synced) = (0, 0, 0);
            for step in steps {
                version += 1;
                match step {
                    Step::Change(name) => {
                        let new = object(name, version);
                        let event = match there.insert(name, new.clone()) {
                            None => Event::Added { object: new, in_initial_list: false },
                            Some(old) => Event::Updated { old, new },
                        };
                        buffer.extend([event].into_iter());
                    }
                    Step::Delete(name) => {
                        if let Some(old) = there.remove(&name) {
                            buffer.extend([Event::Deleted(Tombstone::Final(old))].into_iter());
                        }
                    }
                    Step::Sync => {
                        marks += 1;
                        buffer.push_synced();
                    }
                    Step::Take => {
                        if let Some(item) = take(&buffer) {
                            receive(&mut known, item, &mut synced);
                        }
                    }
                }
                prop_assert!(buffer.len() <= bound + 2 * 8, "{} events wait", buffer.len());
            }
            while let Some(item) = take(&buffer) {
                receive(&mut known, item, &mut synced);
            }
            let expected: Vec<_> = there.values().map(|object| object.resource_version().as_str().to_owned()).collect();
            prop_assert_eq!(known.values().map(u32::to_string).collect::<Vec<_>>(), expected);
            prop_assert_eq!(synced, marks);
            prop_assert_eq!(buffer.len(), 0);
        }
    }
}
