//! A hash table of which a copy costs nothing: the ground under the store's snapshots.
//!
//! A tree of 16-way nodes by the bits of the hash, with small leaves. Copies share nodes; a change copies only the nodes
//! on its way that somebody else holds too, so that many changes between two copies cost little more than in a plain table.

use std::{iter, slice, sync::Arc};

const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;
/// A leaf with more entries than this becomes a node. An index value with up to this many objects is one slice.
const LEAF: usize = 32;

/// Entries by their hash. Whoever uses it says how to tell entries of equal hash apart.
pub(super) struct Trie<E> {
    root: Node<E>,
    len: usize,
}

enum Node<E> {
    Empty,
    Leaf(Arc<[Slot<E>]>),
    Inner(Arc<[Node<E>; WIDTH]>),
}

#[derive(Clone)]
struct Slot<E> {
    hash: u64,
    entry: E,
}

impl<E> Default for Trie<E> {
    fn default() -> Self {
        Self { root: Node::Empty, len: 0 }
    }
}

impl<E> Clone for Trie<E> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

impl<E> Clone for Node<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Leaf(slots) => Self::Leaf(Arc::clone(slots)),
            Self::Inner(children) => Self::Inner(Arc::clone(children)),
        }
    }
}

impl<E> Trie<E> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn find(&self, hash: u64, matches: impl Fn(&E) -> bool) -> Option<&E> {
        let mut node = &self.root;
        let mut bits = hash;
        loop {
            match node {
                Node::Empty => return None,
                Node::Inner(children) => {
                    node = &children[bits as usize % WIDTH];
                    bits >>= BITS;
                }
                Node::Leaf(slots) => {
                    let found = slots.iter().find(|slot| slot.hash == hash && matches(&slot.entry))?;
                    return Some(&found.entry);
                }
            }
        }
    }

    pub(super) fn iter(&self) -> Iter<'_, E> {
        let mut iter = Iter { nodes: Vec::new(), leaf: [].iter() };
        iter.enter(&self.root);
        iter
    }
}

impl<E: Clone> Trie<E> {
    /// Puts an entry in, in the place of the one that matches; gives that back.
    pub(super) fn insert(&mut self, hash: u64, entry: E, matches: impl Fn(&E) -> bool) -> Option<E> {
        let replaced = self.root.insert(0, Slot { hash, entry }, matches);
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// The entry that matches, to be changed in place; not in a way that changes what it matches.
    pub(super) fn find_mut(&mut self, hash: u64, matches: impl Fn(&E) -> bool) -> Option<&mut E> {
        let mut node = &mut self.root;
        let mut bits = hash;
        loop {
            match node {
                Node::Empty => return None,
                Node::Inner(children) => {
                    node = &mut Arc::make_mut(children)[bits as usize % WIDTH];
                    bits >>= BITS;
                }
                Node::Leaf(slots) => {
                    let position = slots.iter().position(|slot| slot.hash == hash && matches(&slot.entry))?;
                    return Some(&mut Arc::make_mut(slots)[position].entry);
                }
            }
        }
    }

    /// Takes the entry out that matches.
    pub(super) fn remove(&mut self, hash: u64, matches: impl Fn(&E) -> bool) -> Option<E> {
        let removed = self.root.remove(0, hash, matches)?;
        self.len -= 1;
        Some(removed)
    }
}

/// Which child an entry belongs to, in a node of this depth; nothing, where the hash has no more bits.
fn child_of(hash: u64, depth: u32) -> Option<usize> {
    Some(hash.checked_shr(depth * BITS)? as usize % WIDTH)
}

impl<E: Clone> Node<E> {
    fn insert(&mut self, depth: u32, slot: Slot<E>, matches: impl Fn(&E) -> bool) -> Option<E> {
        match self {
            Self::Empty => {
                *self = Self::Leaf(Arc::new([slot]));
                None
            }
            Self::Inner(children) => {
                let child = child_of(slot.hash, depth)?;
                Arc::make_mut(children)[child].insert(depth + 1, slot, matches)
            }
            Self::Leaf(slots) => {
                let same = |old: &Slot<E>| old.hash == slot.hash && matches(&old.entry);
                if let Some(position) = slots.iter().position(same) {
                    let old = &mut Arc::make_mut(slots)[position];
                    return Some(std::mem::replace(old, slot).entry);
                }
                if slots.len() < LEAF || child_of(slot.hash, depth).is_none() {
                    *slots = slots.iter().cloned().chain(iter::once(slot)).collect();
                    return None;
                }
                let mut parts: [Vec<Slot<E>>; WIDTH] = Default::default();
                for slot in slots.iter().cloned().chain(iter::once(slot)) {
                    parts[child_of(slot.hash, depth).unwrap_or_default()].push(slot);
                }
                *self = Self::Inner(Arc::new(parts.map(Self::leaf)));
                None
            }
        }
    }

    fn remove(&mut self, depth: u32, hash: u64, matches: impl Fn(&E) -> bool) -> Option<E> {
        match self {
            Self::Empty => None,
            Self::Inner(children) => {
                let child = child_of(hash, depth)?;
                let children = Arc::make_mut(children);
                let removed = children[child].remove(depth + 1, hash, matches)?;
                if children.iter().all(|child| matches!(child, Self::Empty)) {
                    *self = Self::Empty;
                }
                Some(removed)
            }
            Self::Leaf(slots) => {
                let position = slots.iter().position(|slot| slot.hash == hash && matches(&slot.entry))?;
                let removed = slots[position].entry.clone();
                let (before, after) = (&slots[..position], &slots[position + 1..]);
                *self = Self::leaf(before.iter().chain(after).cloned().collect());
                Some(removed)
            }
        }
    }

    fn leaf(slots: Vec<Slot<E>>) -> Self {
        if slots.is_empty() { Self::Empty } else { Self::Leaf(slots.into()) }
    }
}

/// The entries, in no particular order.
pub(super) struct Iter<'a, E> {
    nodes: Vec<slice::Iter<'a, Node<E>>>,
    leaf: slice::Iter<'a, Slot<E>>,
}

impl<'a, E> Iter<'a, E> {
    fn enter(&mut self, node: &'a Node<E>) {
        match node {
            Node::Empty => {}
            Node::Leaf(slots) => self.leaf = slots.iter(),
            Node::Inner(children) => self.nodes.push(children.iter()),
        }
    }
}

impl<'a, E> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        loop {
            if let Some(slot) = self.leaf.next() {
                return Some(&slot.entry);
            }
            let children = self.nodes.last_mut()?;
            match children.next() {
                Some(node) => self.enter(node),
                None => {
                    self.nodes.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u8),
        Remove(u16),
        Copy,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0u16..300, any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            3 => (0u16..300).prop_map(Step::Remove),
            1 => Just(Step::Copy),
        ];
        proptest::collection::vec(step, 0..600)
    }

    /// Few different hashes, so that equal ones are met at every depth.
    fn hash_of(key: u16, colliding: bool) -> u64 {
        let key = u64::from(if colliding { key % 3 } else { key });
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    proptest! {
        #[test]
        fn is_a_map_and_copies_stay_as_they_were(steps in steps(), colliding: bool) {
            let mut trie = Trie::default();
            let mut model = BTreeMap::new();
            let mut copies = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        let old = trie.insert(hash_of(key, colliding), (key, value), |(other, _)| *other == key);
                        prop_assert_eq!(old.map(|(_, value)| value), model.insert(key, value));
                    }
                    Step::Remove(key) => {
                        let old = trie.remove(hash_of(key, colliding), |(other, _)| *other == key);
                        prop_assert_eq!(old.map(|(_, value)| value), model.remove(&key));
                    }
                    Step::Copy => copies.push((trie.clone(), model.clone())),
                }
            }
            copies.push((trie, model));
            for (trie, model) in copies {
                prop_assert_eq!(trie.len(), model.len());
                prop_assert_eq!(&trie.iter().copied().collect::<BTreeMap<_, _>>(), &model);
                for key in 0..300 {
                    let found = trie.find(hash_of(key, colliding), |(other, _)| *other == key);
                    prop_assert_eq!(found.map(|(_, value)| value), model.get(&key));
                }
            }
        }
    }
}
