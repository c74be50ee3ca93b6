//! Narrowed caches: an informer that stores only the objects of some slots, which change while it runs.
//!
//! A controller whose keys are shared among replicas says which slots it wants. The reflector reads the whole state of these slots, and
//! says which ones the cache has. Invariants:
//!
//! - A slot counts as listed only after a read of the whole state that began when the slot was wanted, and only when the store has
//!   the result. A slot that was wanted, dropped and wanted again is read again.
//! - That read is of the most recent state, so that it shows everything that the last owner of the slot wrote.
//! - An object is not dropped while work on its slot may read it.
#![cfg_attr(not(feature = "client"), allow(dead_code, reason = "only replicas that share keys narrow caches"))]

use std::fmt;

use klient_core::ObjectKey;
use tokio::sync::watch;

/// A division of objects into slots.
pub(crate) trait Division<T>: Send + Sync {
    /// Returns the slot of an object.
    fn slot_of(&self, object: &T) -> u8;

    /// Returns the slot of a key, if the key alone decides: then no object ever changes its slot.
    fn slot_of_key(&self, key: &ObjectKey) -> Option<u8>;

    /// Returns whether work on a slot may be reading its objects.
    fn is_in_use(&self, slot: u8) -> bool;

    /// Notes that a stored object has left the slots of the cache.
    fn left(&self, key: &ObjectKey, from: u8, to: u8);

    /// Returns the text by which servers can select the objects of these slots. Servers may ignore it.
    fn selector(&self, slots: &SlotSet) -> Option<String>;
}

/// The slots that a cache should have and those that it has: shared between the owner of the slots and a reflector.
pub(crate) struct Narrow<T> {
    pub(super) division: Box<dyn Division<T>>,
    wanted: watch::Sender<Wanted>,
    listed: watch::Sender<Listed>,
}

/// The slots that a cache should have.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) slots: SlotSet,
    /// The number of changes so far.
    pub(crate) generation: u64,
    /// The generation in which each slot was last added.
    since: Box<[u64; SlotSet::SLOTS]>,
}

/// The slots that a cache has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) slots: SlotSet,
    /// The generation of the wanted slots when the last read of the whole state began.
    pub(crate) generation: u64,
}

impl<T> Narrow<T> {
    /// Creates a value that wants no slots.
    pub(crate) fn new(division: impl Division<T> + 'static) -> Self {
        let wanted = Wanted { slots: SlotSet::default(), generation: 0, since: Box::new([0; SlotSet::SLOTS]) };
        let listed = watch::Sender::new(Listed::default());
        Self { division: Box::new(division), wanted: watch::Sender::new(wanted), listed }
    }

    /// Sets the slots that the cache should have.
    pub(crate) fn want(&self, slots: SlotSet) {
        self.wanted.send_if_modified(|wanted| {
            if wanted.slots == slots {
                return false;
            }
            wanted.generation += 1;
            for slot in slots.iter().filter(|slot| !wanted.slots.has(*slot)) {
                wanted.since[usize::from(slot)] = wanted.generation;
            }
            wanted.slots = slots;
            true
        });
    }

    /// Returns how many of these slots are wanted and not listed.
    pub(crate) fn unlisted(&self, slots: &SlotSet) -> usize {
        let (wanted, listed) = (self.wanted.borrow(), *self.listed.borrow());
        slots.iter().filter(|slot| wanted.slots.has(*slot) && !wanted.is_listed(*slot, &listed)).count()
    }

    /// Waits until the cache has the objects of these slots, as far as they are still wanted. There is no time limit.
    pub(crate) async fn wait_until_listed(&self, slots: &SlotSet) {
        let (mut wanted, mut listed) = (self.wanted.subscribe(), self.listed.subscribe());
        loop {
            wanted.borrow_and_update();
            listed.borrow_and_update();
            if self.unlisted(slots) == 0 {
                return;
            }
            tokio::select! {
                _ = wanted.changed() => {}
                _ = listed.changed() => {}
            }
        }
    }

    /// Returns whether the cache has, or will have, an object with this key. `is_cached` is for keys that do not decide.
    pub(crate) fn covers(&self, key: &ObjectKey, is_cached: impl FnOnce() -> bool) -> bool {
        match self.division.slot_of_key(key) {
            Some(slot) => self.wanted.borrow().slots.has(slot),
            None => is_cached(),
        }
    }

    pub(crate) fn wanted(&self) -> watch::Ref<'_, Wanted> {
        self.wanted.borrow()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(crate) fn set_listed(&self, listed: Listed) {
        self.listed.send_replace(listed);
    }
}

impl Wanted {
    /// Returns whether a slot was read since it was last added.
    fn is_listed(&self, slot: u8, listed: &Listed) -> bool {
        listed.slots.has(slot) && listed.generation >= self.since[usize::from(slot)]
    }

    /// Returns whether the whole state has to be read because of slots that were added.
    pub(crate) fn has_grown_since(&self, listed: &Listed) -> bool {
        self.slots.iter().any(|slot| !self.is_listed(slot, listed))
    }
}

impl<T> fmt::Debug for Narrow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Narrow").field("listed", &*self.listed.borrow()).finish_non_exhaustive()
    }
}

/// A set of slots.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; 4]);

impl SlotSet {
    /// The number of slots that there are.
    pub(crate) const SLOTS: usize = 256;

    pub(crate) fn insert(&mut self, slot: u8) {
        self.0[usize::from(slot >> 6)] |= 1 << (slot & 63);
    }

    pub(crate) fn has(&self, slot: u8) -> bool {
        self.0[usize::from(slot >> 6)] & (1 << (slot & 63)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        let set = *self;
        (0..=u8::MAX).filter(move |slot| set.has(*slot))
    }
}

impl FromIterator<u8> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u8>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, whose slots are their last bytes.
    struct Numbers;

    impl Division<u32> for Numbers {
        fn slot_of(&self, object: &u32) -> u8 {
            object.to_be_bytes()[3]
        }

        fn slot_of_key(&self, _key: &ObjectKey) -> Option<u8> {
            None
        }

        fn is_in_use(&self, _slot: u8) -> bool {
            false
        }

        fn left(&self, _key: &ObjectKey, _from: u8, _to: u8) {}

        fn selector(&self, _slots: &SlotSet) -> Option<String> {
            None
        }
    }

    fn set(slots: &[u8]) -> SlotSet {
        slots.iter().copied().collect()
    }

    #[test]
    fn slot_set_has_what_was_inserted() {
        let slots = set(&[0, 63, 64, 255]);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert_eq!((slots.len(), slots.has(1), slots.is_empty()), (4, false, false));
        assert_eq!((0..=255).collect::<SlotSet>().len(), 256);
    }

    #[test]
    fn slot_counts_as_listed_only_since_it_was_last_wanted() {
        let narrow: Narrow<u32> = Narrow::new(Numbers);
        narrow.want(set(&[1, 2]));
        let first = Listed { slots: set(&[1, 2]), generation: narrow.wanted().generation };
        assert_eq!(narrow.unlisted(&set(&[1, 2])), 2);
        // Slot 2 is dropped and wanted again while the read runs.
        narrow.want(set(&[1]));
        narrow.want(set(&[1, 2]));
        narrow.set_listed(first);
        assert_eq!((narrow.unlisted(&set(&[1])), narrow.unlisted(&set(&[2]))), (0, 1));
        assert!(narrow.wanted().has_grown_since(&first));
        let second = Listed { generation: narrow.wanted().generation, ..first };
        narrow.set_listed(second);
        assert_eq!(narrow.unlisted(&set(&[1, 2])), 0);
        assert!(!narrow.wanted().has_grown_since(&second));
        // A smaller set needs no read, and slots that are not wanted are not waited for.
        narrow.want(set(&[1]));
        assert!(!narrow.wanted().has_grown_since(&second));
        assert_eq!(narrow.unlisted(&set(&[1, 2, 3])), 0);
    }
}
