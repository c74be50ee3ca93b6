//! Which slot a key has: a hash table with chains, of numbers only.
//!
//! Keys come and go here as often as they are processed, mostly a few at a time. Putting one in and taking one out is a
//! handful of plain loads and stores; tables that look at many places at once pay for that when one has just been written.

/// Slots by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The first slot of each chain; as many as a power of two, or none.
    heads: Vec<u32>,
    /// By slot.
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

    /// The slot with that hash which is the one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = *self.heads.get(self.chain(hash))?;
        while let Some(link) = self.links.get(place as usize) {
            if link.hash == hash && is_it(place) {
                return Some(place);
            }
            place = link.next;
        }
        None
    }

    /// Puts in a slot that is not in.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        if self.len >= self.heads.len() {
            self.grow();
        }
        let chain = self.chain(hash);
        let link = Link { hash, next: std::mem::replace(&mut self.heads[chain], place) };
        match self.links.get_mut(place as usize) {
            Some(old) => *old = link,
            None => self.links.resize(place as usize + 1, link),
        }
        self.len += 1;
    }

    /// Takes out a slot that is in.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        let Link { hash, next } = self.links[place as usize];
        let chain = self.chain(hash);
        let mut before = self.heads[chain];
        if before == place {
            self.heads[chain] = next;
        } else {
            while self.links[before as usize].next != place {
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

    /// Doubles the chains.
    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.heads.len()).max(FEWEST);
        let old = std::mem::replace(&mut self.heads, vec![NONE; size]);
        for mut place in old {
            while place != NONE {
                let chain = self.chain(self.links[place as usize].hash);
                let link = &mut self.links[place as usize];
                place = std::mem::replace(&mut link.next, std::mem::replace(&mut self.heads[chain], place));
            }
        }
    }
}

/// The end of a chain: there is no room for so many slots.
const NONE: u32 = u32::MAX;
const FEWEST: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_table_has_nothing() {
        assert!(Table::default().is_empty());
        assert_eq!(Table::default().find(0, |_| true), None);
    }

    proptest! {
        /// Few hashes, so that chains are long, and many that share their last bits.
        #[test]
        fn a_table_holds_what_was_put_in_and_not_taken_out(
            steps in prop::collection::vec((0u32..40, 0u64..6, any::<bool>()), 0..300),
        ) {
            let mut table = Table::default();
            let mut model = BTreeMap::new();
            for (place, hash, far) in steps {
                let hash = if far { hash << 32 } else { hash };
                if model.remove(&place).is_some() {
                    table.remove(place);
                } else {
                    table.insert(hash, place);
                    model.insert(place, hash);
                }
                prop_assert_eq!(table.is_empty(), model.is_empty());
                for place in 0..40 {
                    for hash in (0..6).flat_map(|hash| [hash, hash << 32]) {
                        let found = table.find(hash, |other| other == place);
                        prop_assert_eq!(found, model.get(&place).filter(|had| **had == hash).map(|_| place));
                    }
                }
            }
        }
    }
}
