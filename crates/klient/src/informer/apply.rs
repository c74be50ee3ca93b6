//! From deltas to the store and to events: one batch in one step. Part of step 5 of an object's way.
//!
//! A delta has the new state of an object; the store has the old one. Both together are the event that handlers receive.

use klient_core::Resource;
use klient_proto::RawObject;

use super::{
    delta_fifo::{Delta, DeltaBatch, Tombstone},
    handler::Event,
    object::CachedObject,
    reflector::ReflectorStore,
    store::{StoreWriter, ThreadSafeStore},
};
use crate::Error;

/// The result of a batch.
pub(super) struct Applied<K> {
    /// The events in the order of the batch.
    pub(super) events: Vec<Event<K>>,
    /// The wire size of the objects that were stored, in bytes.
    pub(super) bytes_added: usize,
    /// The wire size of the objects that were replaced or deleted, in bytes.
    pub(super) bytes_removed: usize,
}

impl<K: Resource> ThreadSafeStore<CachedObject<K>> {
    /// Applies a batch, which readers see completely or not at all, and returns the events.
    pub(super) fn apply_batch(&self, batch: DeltaBatch<CachedObject<K>>) -> Applied<K> {
        let events = Vec::with_capacity(batch.deltas.len());
        let mut applied = Applied { events, bytes_added: 0, bytes_removed: 0 };
        self.write(|store| {
            for delta in batch.deltas {
                match delta {
                    Delta::Replaced(object) => applied.insert(store, object, batch.in_initial_list),
                    Delta::Added(object) | Delta::Updated(object) => {
                        // The store already has this state or a later one.
                        let late = store.get(object.key()).is_some_and(|known| !known.is_older_than(&object));
                        if !late {
                            applied.insert(store, object, false);
                        }
                    }
                    Delta::Deleted(tombstone) => applied.remove(store, tombstone),
                    Delta::Sync(object) => applied.events.push(Event::Updated { old: object.clone(), new: object }),
                }
            }
            if let Some(version) = batch.version {
                store.set_resource_version(version);
            }
        });
        applied
    }
}

impl<K: Resource> Applied<K> {
    fn insert(&mut self, store: &mut StoreWriter<CachedObject<K>>, object: CachedObject<K>, in_initial_list: bool) {
        self.bytes_added += object.wire_len();
        let Some(old) = store.insert(object.clone()) else {
            self.events.push(Event::Added { object, in_initial_list });
            return;
        };
        self.bytes_removed += old.wire_len();
        if !old.is_unchanged_in(&object) {
            self.events.push(Event::Updated { old, new: object });
        }
    }

    fn remove(&mut self, store: &mut StoreWriter<CachedObject<K>>, tombstone: Tombstone<CachedObject<K>>) {
        let object = tombstone.object();
        let late = matches!(tombstone, Tombstone::Final(_))
            && store.get(object.key()).is_some_and(|known| known.is_newer_than(object));
        if late {
            return;
        }
        if let Some(old) = store.remove(object.key()) {
            self.bytes_removed += old.wire_len();
            self.events.push(Event::Deleted(tombstone));
        }
    }
}

/// A reflector can fill a store directly, without handlers.
impl<K: Resource> ReflectorStore for ThreadSafeStore<CachedObject<K>> {
    type Object = CachedObject<K>;

    fn ingest(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        Ok(CachedObject::from_wire(object))
    }

    fn ingest_listed(&mut self, object: RawObject) -> Result<CachedObject<K>, Error> {
        let arrived = CachedObject::from_wire(object);
        let known = self.get(arrived.key()).filter(|known| arrived.is_known_as(known));
        Ok(known.unwrap_or(arrived))
    }

    fn known_objects(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn apply(&mut self, batch: DeltaBatch<CachedObject<K>>) {
        self.apply_batch(batch);
    }
}
