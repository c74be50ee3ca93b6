//! Who owns what, by uid.

use std::collections::{HashMap, HashSet};

use super::Place;

/// Who owns what.
#[derive(Default)]
pub(super) struct Ownership {
    places: HashMap<String, Place>,
    owners: HashMap<Place, Vec<String>>,
    dependents: HashMap<String, HashSet<Place>>,
}

impl Ownership {
    /// Takes note of an object and its owners.
    pub(super) fn set(&mut self, place: Place, uid: &str, owners: Vec<String>) {
        self.places.insert(uid.to_owned(), place.clone());
        if self.owners.get(&place).map_or(&[][..], Vec::as_slice) == owners {
            return;
        }
        self.forget_owners(&place);
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(place.clone());
        }
        if !owners.is_empty() {
            self.owners.insert(place, owners);
        }
    }

    /// Forgets an object; returns where its owners are.
    pub(super) fn remove(&mut self, place: &Place, uid: &str) -> Vec<Place> {
        if self.places.get(uid) == Some(place) {
            self.places.remove(uid);
        }
        let owners = self.forget_owners(place);
        owners.iter().filter_map(|owner| self.places.get(owner).cloned()).collect()
    }

    /// Where an object is.
    pub(super) fn place_of(&self, uid: &str) -> Option<Place> {
        self.places.get(uid).cloned()
    }

    /// Where an object's dependents are, in a fixed order.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        let mut found: Vec<Place> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        found.sort();
        found
    }

    fn forget_owners(&mut self, place: &Place) -> Vec<String> {
        let owners = self.owners.remove(place).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }
}
