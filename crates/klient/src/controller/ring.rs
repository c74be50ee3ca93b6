//! A bounded set of values in the order of their age, with chains: each value can name an older one that it follows.
//!
//! Adding and removing take constant time. The chain of a key is the list of its values from the oldest to the newest.

/// No slot.
const NONE: u32 = u32::MAX;

/// A bounded set of values, ordered by age.
pub(super) struct Ring<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    length: usize,
    limit: usize,
}

struct Slot<T> {
    value: Option<T>,
    /// The neighbours by age.
    older: u32,
    newer: u32,
    /// The next value of the same chain.
    next: u32,
}

impl<T> Ring<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE, length: 0, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_full(&self) -> bool {
        self.length >= self.limit
    }

    /// Returns the slot of the oldest value.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds a value as the newest one, and as the successor of `after` in its chain. Returns its slot.
    pub(super) fn push(&mut self, value: T, after: Option<u32>) -> u32 {
        let slot = Slot { value: Some(value), older: self.newest, newer: NONE, next: NONE };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        match self.slots.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = id,
            None => self.oldest = id,
        }
        if let Some(before) = after.and_then(|after| self.slots.get_mut(after as usize)) {
            before.next = id;
        }
        self.newest = id;
        self.length += 1;
        id
    }

    /// Removes a value, which must be the first of its chain. Returns it, and the slot of the next value of the chain.
    pub(super) fn remove(&mut self, id: u32) -> Option<(T, Option<u32>)> {
        let slot = self.slots.get_mut(id as usize)?;
        let value = slot.value.take()?;
        let (older, newer, next) = (slot.older, slot.newer, slot.next);
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.free.push(id);
        self.length -= 1;
        Some((value, (next != NONE).then_some(next)))
    }

    /// Returns the values of a chain from this slot on, the oldest first.
    pub(super) fn chain(&self, first: u32) -> impl Iterator<Item = &T> {
        let mut at = first;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.next;
            slot.value.as_ref()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_keeps_ages_and_chains_after_removals() {
        let mut ring = Ring::new(4);
        let first = ring.push("a1", None);
        let other = ring.push("b1", None);
        let second = ring.push("a2", Some(first));
        ring.push("a3", Some(second));
        assert!(ring.is_full());
        assert_eq!(ring.chain(first).copied().collect::<Vec<_>>(), ["a1", "a2", "a3"]);
        assert_eq!(ring.remove(first), Some(("a1", Some(second))));
        assert_eq!(ring.remove(first), None);
        assert_eq!(ring.oldest(), Some(other));
        assert_eq!(ring.chain(second).copied().collect::<Vec<_>>(), ["a2", "a3"]);
        ring.push("b2", Some(other));
        assert_eq!(ring.chain(other).copied().collect::<Vec<_>>(), ["b1", "b2"]);
    }
}
