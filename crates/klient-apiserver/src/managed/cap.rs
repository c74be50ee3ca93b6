//! The limit on the number of entries for updates.

use std::collections::HashMap;

use klient_core::fields::ManagedSet;

use super::entries::{Identity, Managed};

/// Merges the oldest entries of updates, version by version, until at most ten are left.
pub(super) fn cap(managed: &mut Managed) {
    let mut updaters: Vec<(String, String)> = managed
        .sets
        .iter()
        .filter(|(_, set)| !set.applied)
        .map(|(identifier, _)| (managed.times.get(identifier).cloned().unwrap_or_default(), identifier.clone()))
        .collect();
    if updaters.len() <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut count = updaters.len();
    let mut first_of_version: HashMap<String, String> = HashMap::new();
    for (time, identifier) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(set) = managed.sets.get(&identifier).cloned() else { continue };
        let bucket = Identity::update(BUCKET, &set.version, "").identifier();
        let Some(first) = first_of_version.get(&set.version) else {
            first_of_version.insert(set.version.clone(), identifier);
            continue;
        };
        if !managed.sets.contains_key(&bucket)
            && let Some(first) = managed.sets.remove(first)
        {
            managed.sets.insert(bucket.clone(), first);
        }
        let before = managed.sets.remove(&bucket).map(|before| before.set).unwrap_or_default();
        managed.sets.remove(&identifier);
        let merged = ManagedSet { set: set.set.union(&before), version: set.version, applied: false };
        managed.sets.insert(bucket.clone(), merged);
        if time.is_empty() {
            managed.times.remove(&bucket);
        } else {
            managed.times.insert(bucket, time);
        }
        count -= 1;
    }
}

/// The number of entries for updates that an object can have.
const MAX_UPDATERS: usize = 10;
/// The manager of merged entries.
const BUCKET: &str = "ancient-changes";
