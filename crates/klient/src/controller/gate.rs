//! The gate of a sharded controller's queue: only keys of slots that this replica works on pass.
//!
//! A controller without shards has no gate, and pays for one load of a pointer per key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use klient_core::{ObjectKey, Resource};

use super::permit::Permit;
use crate::{
    informer::Lister,
    shard::{Board, ShardKey, Slot, Turn},
};

/// The gate of a queue, if its controller is sharded.
#[derive(Default)]
pub(super) struct Gate {
    rule: OnceLock<Rule>,
}

struct Rule {
    board: Arc<Board>,
    slot_of: Box<dyn SlotOf>,
    /// Whether the cache has only objects of this replica.
    is_narrowed: bool,
}

/// The admission of a key to its turn. The key's slot is in use until it is dropped.
pub(super) struct Admission {
    turn: Option<Turn>,
}

/// A function from keys to slots.
trait SlotOf: Send + Sync {
    /// Returns the slot of a key, or none if the key may belong to any replica.
    fn slot_of(&self, key: &ObjectKey) -> Option<Slot>;

    /// Forgets a key of an object that was deleted.
    fn forget_deleted(&self, key: &ObjectKey);
}

impl Gate {
    /// Lets only keys of open slots pass from now on.
    pub(super) fn set<K: Resource>(
        &self,
        board: Arc<Board>,
        key: Arc<ShardKey<K>>,
        lister: Lister<K>,
        is_narrowed: bool,
    ) {
        let slots = Slots { key, lister, board: Arc::clone(&board), is_narrowed, computed: Mutex::default() };
        let slot_of = Box::new(slots);
        // The gate of a controller is set once, when its manager begins to run it.
        let _ = self.rule.set(Rule { board, slot_of, is_narrowed });
    }

    /// Returns whether a key may be queued.
    pub(super) fn is_open(&self, key: &ObjectKey) -> bool {
        self.rule.get().is_none_or(|rule| {
            let open = rule.slot_of.slot_of(key).is_some_and(|slot| rule.board.is_open(slot));
            if !open {
                rule.slot_of.forget_deleted(key);
            }
            open
        })
    }

    /// Returns the slot of a key that another replica is responsible for, if it is known.
    pub(super) fn closed_slot(&self, key: &ObjectKey) -> Option<Slot> {
        let rule = self.rule.get()?;
        rule.slot_of.slot_of(key).filter(|slot| !rule.board.is_open(*slot))
    }

    /// Returns whether this replica does not work on a key now.
    pub(super) fn is_closed(&self, key: &ObjectKey) -> bool {
        self.rule.get().is_some_and(|rule| rule.slot_of.slot_of(key).is_none_or(|slot| !rule.board.is_open(slot)))
    }

    /// Begins the turn of a key. Returns `None` if the key belongs to another replica.
    pub(super) fn admit(&self, key: &ObjectKey) -> Option<Admission> {
        match self.rule.get() {
            None => Some(Admission { turn: None }),
            Some(rule) => {
                let slot = rule.slot_of.slot_of(key)?;
                let turn = rule.board.begin(slot)?;
                // An object that left the slot before the turn counted is about to leave a narrowed cache, and would look deleted.
                let has_left = rule.is_narrowed && rule.slot_of.slot_of(key) != Some(slot);
                (!has_left).then_some(Admission { turn: Some(turn) })
            }
        }
    }

    /// Notes that the turn of a key has succeeded.
    pub(super) fn succeeded(&self, key: &ObjectKey) {
        if let Some(rule) = self.rule.get() {
            rule.slot_of.forget_deleted(key);
        }
    }
}

impl Admission {
    /// Returns the permit of the turn.
    pub(super) fn permit(&self, permit: &Permit) -> Permit {
        match &self.turn {
            None => permit.clone(),
            Some(turn) => permit.clone().on_slot(turn.permit()),
        }
    }
}

/// The slots of a controller's keys.
struct Slots<K: Resource> {
    key: Arc<ShardKey<K>>,
    lister: Lister<K>,
    board: Arc<Board>,
    /// Whether the cache has only objects of this replica, so that a key without an object may belong to any replica.
    is_narrowed: bool,
    /// The slots that were computed from objects: a deleted object still has the slot of its last state.
    computed: Mutex<HashMap<ObjectKey, Slot, foldhash::fast::RandomState>>,
}

impl<K: Resource> Slots<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Slot, foldhash::fast::RandomState>> {
        self.computed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> SlotOf for Slots<K> {
    fn slot_of(&self, key: &ObjectKey) -> Option<Slot> {
        if let Some(slot) = self.key.slot_of_key(key) {
            return Some(slot);
        }
        if self.is_narrowed {
            return self.lister.get(key).map(|object| self.key.slot_of(&object));
        }
        Some(match self.lister.get(key) {
            Some(object) => {
                let slot = self.key.slot_of(&object);
                let before = self.lock().insert(key.clone(), slot);
                if let Some(before) = before.filter(|before| *before != slot) {
                    self.board.key_changed(key, before, slot);
                }
                slot
            }
            None => self.lock().get(key).copied().unwrap_or_else(|| Slot::of(key)),
        })
    }

    fn forget_deleted(&self, key: &ObjectKey) {
        if self.key.slot_of_key(key).is_none() && self.lister.get(key).is_none() {
            self.lock().remove(key);
        }
    }
}
