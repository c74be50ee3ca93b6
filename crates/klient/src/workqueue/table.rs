//! A hash table from keys to slots, with chaining, that stores numbers only.
//!
//! Each processed key is inserted and removed once, and mostly few keys are in the table at a time. An insert or a remove is a
//! handful of plain loads and stores. Tables that probe several places at once are slower right after a write.

/// Slots by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The first slot of each chain. Its length is a power of two, or zero.
    heads: Vec<u32>,
    /// The links of the chains, by slot.
    links: Vec<Link>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u64,
    next: u32,
}

impl Table {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the slot with this hash for which `is_it` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut slot = *self.heads.get(self.chain(hash))?;
        while let Some(link) = self.links.get(slot as usize) {
            if link.hash == hash && is_it(slot) {
                return Some(slot);
            }
            slot = link.next;
        }
        None
    }

    /// Inserts a slot that is not in the table.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, slot: u32) {
        if self.len >= self.heads.len() {
            self.grow();
        }
        let chain = self.chain(hash);
        let link = Link { hash, next: std::mem::replace(&mut self.heads[chain], slot) };
        match self.links.get_mut(slot as usize) {
            Some(old) => *old = link,
            None => self.links.resize(slot as usize + 1, link),
        }
        self.len += 1;
    }

    /// Removes a slot that is in the table.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        let Link { hash, next } = self.links[slot as usize];
        let chain = self.chain(hash);
        let mut before = self.heads[chain];
        if before == slot {
            self.heads[chain] = next;
        } else {
            while self.links[before as usize].next != slot {
                before = self.links[before as usize].next;
            }
            self.links[before as usize].next = next;
        }
        self.len -= 1;
    }

    #[inline]
    fn chain(&self, hash: u64) -> usize {
        hash as usize & self.heads.len().wrapping_sub(1)
    }

    /// Doubles the number of chains.
    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.heads.len()).max(MIN_CHAINS);
        let old = std::mem::replace(&mut self.heads, vec![NONE; size]);
        for mut slot in old {
            while slot != NONE {
                let chain = self.chain(self.links[slot as usize].hash);
                let link = &mut self.links[slot as usize];
                slot = std::mem::replace(&mut link.next, std::mem::replace(&mut self.heads[chain], slot));
            }
        }
    }
}

/// The end of a chain. No slot has this number: that many do not fit into memory.
const NONE: u32 = u32::MAX;
const MIN_CHAINS: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn empty_table_finds_nothing() {
        assert!(Table::default().is_empty());
        assert_eq!(Table::default().find(0, |_| true), None);
    }

    proptest! {
        /// Few hashes make long chains, and many hashes share their last bits.
        #[test]
        fn table_matches_a_model(
            steps in prop::collection::vec((0u32..40, 0u64..6, any::<bool>()), 0..300),
        ) {
            let mut table = Table::default();
            let mut model = BTreeMap::new();
            for (slot, hash, far) in steps {
                let hash = if far { hash << 32 } else { hash };
                if model.remove(&slot).is_some() {
                    table.remove(slot);
                } else {
                    table.insert(hash, slot);
                    model.insert(slot, hash);
                }
                prop_assert_eq!(table.is_empty(), model.is_empty());
                for slot in 0..40 {
                    for hash in (0..6).flat_map(|hash| [hash, hash << 32]) {
                        let found = table.find(hash, |other| other == slot);
                        prop_assert_eq!(found, model.get(&slot).filter(|had| **had == hash).map(|_| slot));
                    }
                }
            }
        }
    }
}
