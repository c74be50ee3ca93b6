//! Slots: the unit in which replicas share the keys of a controller.
//!
//! Every key belongs to one of 256 slots, by a hash that every replica computes alike. The hash is FNV-1a, whose high bits hardly
//! depend on the last bytes of a text, followed by a mixing step: names that differ in their last digit spread over all slots.

use std::fmt;

use klient_core::ObjectKey;

/// One of the 256 parts into which keys are divided.
///
/// ```
/// use klient::{ObjectKey, shard::Slot};
///
/// let slot = Slot::of(&ObjectKey::namespaced("shop", "web"));
/// assert_eq!(slot, Slot::of(&ObjectKey::namespaced("shop", "web")));
/// assert!(slot.index() < Slot::COUNT);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// The number of slots. It is the same for every group, and never changes.
    pub const COUNT: usize = 256;

    /// Returns the slot of an object, by its namespace and name.
    pub fn of(key: &ObjectKey) -> Self {
        let hash = match key.namespace() {
            Some(namespace) => fnv1a(fnv1a(fnv1a(OFFSET, namespace.as_bytes()), b"/"), key.name().as_bytes()),
            None => fnv1a(OFFSET, key.name().as_bytes()),
        };
        Self::of_hash(hash)
    }

    /// Returns the slot of a text: a namespace, or the value of a label.
    pub fn of_text(text: &str) -> Self {
        Self::of_hash(fnv1a(OFFSET, text.as_bytes()))
    }

    /// Returns the slot of a UID. It is the top byte of the hash by which API servers select objects, so that some slots are some ranges
    /// of that hash.
    pub fn of_uid(uid: &str) -> Self {
        Self(fnv1a(OFFSET, uid.as_bytes()).to_be_bytes()[0])
    }

    /// Returns the number of the slot, from 0 to 255.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn numbered(number: u8) -> Self {
        Self(number)
    }

    /// Returns all slots.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    fn of_hash(hash: u64) -> Self {
        Self(mix(hash).to_be_bytes()[0])
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the weight of a member for a slot in rendezvous hashing: the member with the highest one is preferred.
pub(super) fn affinity(slot: Slot, member: &str) -> u64 {
    mix(fnv1a(fnv1a(OFFSET, member.as_bytes()), &[slot.0]))
}

/// Returns a checksum of a text, to notice edits by hand.
pub(super) fn checksum(text: &str) -> u64 {
    mix(fnv1a(OFFSET, text.as_bytes()))
}

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// Spreads every bit of the input over all bits of the output.
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(slots: impl Iterator<Item = Slot>) -> Vec<usize> {
        let mut counts = vec![0; Slot::COUNT];
        slots.for_each(|slot| counts[slot.index()] += 1);
        counts
    }

    #[test]
    fn slots_of_numbered_names_are_even() {
        // Without the mixing step, all of these names fall into a few slots.
        for prefix in ["tenant-", "pod-", "a"] {
            let counts = counts((0..10_000).map(|number| Slot::of_text(&format!("{prefix}{number}"))));
            let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*low >= 15 && *high <= 70, "{prefix}: {low} to {high}, expected about 39");
        }
    }

    #[test]
    fn slot_of_a_key_is_that_of_its_text() {
        assert_eq!(Slot::of(&ObjectKey::namespaced("shop", "web")), Slot::of_text("shop/web"));
        assert_eq!(Slot::of(&ObjectKey::cluster("node-7")), Slot::of_text("node-7"));
    }

    #[test]
    fn slot_of_a_uid_is_the_top_byte_of_the_servers_hash() {
        // The published values of 64-bit FNV-1a: 0xcbf29ce484222325, 0xaf63dc4c8601ec8c and 0x85944171f73967e8.
        let slots = ["", "a", "foobar"].map(|uid| Slot::of_uid(uid).index());
        assert_eq!(slots, [0xcb, 0xaf, 0x85]);
    }

    #[test]
    fn slots_of_uids_are_even() {
        let mut state = 7;
        let mut random = || {
            state = mix(state + 1);
            state
        };
        let uids = (0..10_000).map(|_| {
            let (high, low) = (random(), random());
            let [a, b, c] = [high >> 32, high >> 16 & 0xffff, low >> 48 & 0xfff];
            format!("{a:08x}-{b:04x}-4{c:03x}-8{:03x}-{:012x}", high & 0xfff, low & 0xffff_ffff_ffff)
        });
        let counts = counts(uids.map(|uid| Slot::of_uid(&uid)));
        let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*low >= 15 && *high <= 70, "{low} to {high}, expected about 39");
    }

    #[test]
    fn slots_stay_the_same_in_all_versions() {
        // Replicas of different versions of klient share keys: these numbers must never change.
        let slots = ["", "a", "shop/web", "tenant-9"].map(|text| Slot::of_text(text).index());
        assert_eq!(slots, [245, 2, 188, 130]);
    }
}
