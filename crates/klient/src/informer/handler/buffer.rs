//! What one handler has still to be told.
//!
//! Events wait in order. When more wait than a handler should be behind, what happens to an object is folded into what waits for
//! it already: from then on at most two events per object wait, so that memory is bounded by the number of objects and not by how
//! long the handler takes. Folding leaves out states, never the last one: the handler sees each object added before it is
//! changed, changed before it is gone.

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

/// How many events may wait before they are folded.
const BOUND: usize = 4096;

/// What waits for a handler.
pub(in crate::informer) enum Item<K> {
    Event(Event<K>),
    /// Everything of the first list was given.
    Synced,
}

pub(in crate::informer) struct Buffer<K> {
    state: Mutex<State<K>>,
    bound: usize,
}

struct State<K> {
    /// `None` where an event was folded away.
    queue: VecDeque<Option<Item<K>>>,
    holes: usize,
    /// How many of those that wait are no events.
    marks: usize,
    /// How many were taken from the front.
    taken: usize,
    /// Where the newest event of each key waits, counted as `taken` is; while events are folded.
    newest: Option<HashMap<ObjectKey, usize, RandomState>>,
    waker: Option<Waker>,
    closed: bool,
}

impl<K: Resource> Buffer<K> {
    pub(super) fn new() -> Self {
        Self::bounded(BOUND)
    }

    fn bounded(bound: usize) -> Self {
        Self { state: Mutex::new(State::new()), bound }
    }

    /// Adds events, in order.
    pub(in crate::informer) fn extend(&self, events: impl Iterator<Item = Event<K>>) {
        let mut state = self.lock();
        for event in events {
            state.push(event, self.bound);
        }
        state.wake();
    }

    pub(in crate::informer) fn synced(&self) {
        let mut state = self.lock();
        state.queue.push_back(Some(Item::Synced));
        state.marks += 1;
        state.wake();
    }

    /// The next thing; `None` once closed and empty.
    pub(in crate::informer) async fn next(&self) -> Option<Item<K>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub(in crate::informer) fn poll_next(&self, context: &std::task::Context<'_>) -> Poll<Option<Item<K>>> {
        let mut state = self.lock();
        if let Some(item) = state.pop(self.bound) {
            return Poll::Ready(Some(item));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// How many events wait.
    pub(in crate::informer) fn len(&self) -> usize {
        let state = self.lock();
        state.queue.len() - state.holes - state.marks
    }

    /// Takes nothing more in.
    pub(in crate::informer) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake();
    }

    /// Takes nothing more in, and forgets what waits.
    pub(in crate::informer) fn abandon(&self) {
        let mut state = self.lock();
        *state = State { closed: true, waker: state.waker.take(), ..State::new() };
        state.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> State<K> {
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
        let forgotten = |newest: &HashMap<_, _, _>| newest.len() > 2 * self.queue.len() + bound;
        if self.holes > bound || self.newest.as_ref().is_none_or(forgotten) {
            self.index();
        }
        let position = self.taken + self.queue.len();
        let newest = self.newest.get_or_insert_default();
        let Some(at) = newest.get(event.key()).copied().filter(|at| *at >= self.taken) else {
            newest.insert(event.key().clone(), position);
            self.queue.push_back(Some(Item::Event(event)));
            return;
        };
        let slot = &mut self.queue[at - self.taken];
        let before = slot.is_none();
        let rest = fold(slot, event);
        match (before, slot.is_none()) {
            (false, true) => self.holes += 1,
            (true, false) => self.holes -= 1,
            _ => {}
        }
        if let Some(event) = rest {
            newest.insert(event.key().clone(), position);
            self.queue.push_back(Some(Item::Event(event)));
        }
    }

    /// Leaves the holes out, and notes where each key's newest event is.
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
                // What was needed for a long queue is not kept for a short one.
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

/// Folds an event into the one that waits for the same object, or into the place where one waited; gives it back where both
/// must be told.
fn fold<K: Resource>(slot: &mut Option<Item<K>>, event: Event<K>) -> Option<Event<K>> {
    let Some(Item::Event(waiting)) = slot.take() else {
        *slot = Some(Item::Event(event));
        return None;
    };
    let folded = match (waiting, event) {
        (Event::Added { in_initial_list, .. }, Event::Updated { new, .. }) => {
            Event::Added { object: new, in_initial_list }
        }
        // The handler has never heard of it.
        (Event::Added { .. }, Event::Deleted(_)) => return None,
        (Event::Updated { old, .. }, Event::Updated { new, .. }) => Event::Updated { old, new },
        (Event::Updated { .. } | Event::Deleted(_), Event::Deleted(tombstone)) => Event::Deleted(tombstone),
        (waiting, event) => {
            *slot = Some(Item::Event(waiting));
            return Some(event);
        }
    };
    *slot = Some(Item::Event(folded));
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

    /// Takes one in; fails unless it follows from what the handler knows.
    fn hear(known: &mut BTreeMap<ObjectKey, u32>, item: Item<ConfigMap>, synced: &mut usize) {
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
        fn folding_leaves_out_states_and_nothing_else(steps in steps(), bound in 1usize..20) {
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
                        buffer.synced();
                    }
                    Step::Take => {
                        if let Some(item) = take(&buffer) {
                            hear(&mut known, item, &mut synced);
                        }
                    }
                }
                prop_assert!(buffer.len() <= bound + 2 * 8, "{} events wait", buffer.len());
            }
            while let Some(item) = take(&buffer) {
                hear(&mut known, item, &mut synced);
            }
            let expected: Vec<_> = there.values().map(|object| object.resource_version().as_str().to_owned()).collect();
            prop_assert_eq!(known.values().map(u32::to_string).collect::<Vec<_>>(), expected);
            prop_assert_eq!(synced, marks);
            prop_assert_eq!(buffer.len(), 0);
        }
    }
}
