//! Caches of the replica's own slots: how a controller's informer is narrowed.

use std::sync::Arc;

use klient_core::{ObjectKey, Resource};

use super::{Board, ShardKey, Slot};
use crate::informer::{
    CachedObject,
    narrow::{Division, SlotSet},
};

/// The division of a controller's objects by their shard keys.
pub(crate) struct ByShardKey<K: Resource> {
    pub(crate) key: Arc<ShardKey<K>>,
    pub(crate) board: Arc<Board>,
}

impl<K: Resource> Division<CachedObject<K>> for ByShardKey<K> {
    fn slot_of(&self, object: &CachedObject<K>) -> u8 {
        self.key.slot_of(object).number()
    }

    fn slot_of_key(&self, key: &ObjectKey) -> Option<u8> {
        self.key.slot_of_key(key).map(Slot::number)
    }

    fn is_in_use(&self, slot: u8) -> bool {
        self.board.running(Slot::numbered(slot)) > 0
    }

    fn left(&self, key: &ObjectKey, from: u8, to: u8) {
        self.board.key_changed(key, Slot::numbered(from), Slot::numbered(to));
    }

    fn selector(&self, slots: &SlotSet) -> Option<String> {
        self.key.selector(slots)
    }
}
