//! Owners and dependents, by UID.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::ObjectId;

/// The owners and dependents of all objects.
#[derive(Default)]
pub(super) struct Ownership {
    ids: HashMap<String, ObjectId, RandomState>,
    owners: HashMap<ObjectId, Vec<String>, RandomState>,
    dependents: HashMap<String, HashSet<ObjectId>, RandomState>,
}

impl Ownership {
    /// Records an object and its owners.
    pub(super) fn set(&mut self, id: ObjectId, uid: &str, owners: Vec<String>) {
        // Most changes are of objects that are known.
        if self.ids.get(uid) != Some(&id) {
            self.ids.insert(uid.to_owned(), id.clone());
        }
        if self.owners.get(&id).map_or(&[][..], Vec::as_slice) == owners {
            return;
        }
        self.forget_owners(&id);
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(id.clone());
        }
        if !owners.is_empty() {
            self.owners.insert(id, owners);
        }
    }

    /// Removes an object, and returns its owners.
    pub(super) fn remove(&mut self, id: &ObjectId, uid: &str) -> Vec<ObjectId> {
        if self.ids.get(uid) == Some(id) {
            self.ids.remove(uid);
        }
        let owners = self.forget_owners(id);
        owners.iter().filter_map(|owner| self.ids.get(owner).cloned()).collect()
    }

    /// Returns the object with a UID.
    pub(super) fn place_of(&self, uid: &str) -> Option<ObjectId> {
        self.ids.get(uid).cloned()
    }

    /// Returns the dependents of an object, in a fixed order.
    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectId> {
        let mut found: Vec<ObjectId> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        found.sort();
        found
    }

    fn forget_owners(&mut self, id: &ObjectId) -> Vec<String> {
        let owners = self.owners.remove(id).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(id);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }
}
