//! A hash table with copies in constant time, which the store's snapshots are built on.
//!
//! A tree of 16-way nodes by the bits of the hash, with small leaves. Copies share nodes. A change copies only those nodes on its
//! path that another copy shares, so that many changes between two copies cost little more than in a plain table.

use std::{iter, slice, sync::Arc};

const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;
/// A leaf with more entries than this becomes a node. An index value with up to this many objects is a single slice.
const LEAF: usize = 32;

/// A table of entries by hash. Callers pass a function that tells entries with equal hashes apart.
pub(super) struct Trie<E> {
    root: Node<E>,
    len: usize,
}

enum Node<E> {
    Empty,
    Leaf(Arc<[Hashed<E>]>),
    Inner(Arc<[Node<E>; WIDTH]>),
}

/// An entry with its hash.
#[derive(Clone)]
struct Hashed<E> {
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
            Self::Leaf(entries) => Self::Leaf(Arc::clone(entries)),
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
                Node::Leaf(entries) => {
                    let found = entries.iter().find(|hashed| hashed.hash == hash && matches(&hashed.entry))?;
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
    /// Stores an entry. Returns the matching entry that it replaces, if any.
    pub(super) fn insert(&mut self, hash: u64, entry: E, matches: impl Fn(&E) -> bool) -> Option<E> {
        let replaced = self.root.insert(0, Hashed { hash, entry }, matches);
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Returns the matching entry for writing. The caller must not change its hash or what it matches.
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
                Node::Leaf(entries) => {
                    let position = entries.iter().position(|hashed| hashed.hash == hash && matches(&hashed.entry))?;
                    return Some(&mut Arc::make_mut(entries)[position].entry);
                }
            }
        }
    }

    /// Removes the matching entry, and returns it.
    pub(super) fn remove(&mut self, hash: u64, matches: impl Fn(&E) -> bool) -> Option<E> {
        let removed = self.root.remove(0, hash, matches)?;
        self.len -= 1;
        Some(removed)
    }
}

/// Returns the child for a hash in a node of this depth, or `None` if the hash has no more bits.
fn child_of(hash: u64, depth: u32) -> Option<usize> {
    Some(hash.checked_shr(depth * BITS)? as usize % WIDTH)
}

impl<E: Clone> Node<E> {
    fn insert(&mut self, depth: u32, hashed: Hashed<E>, matches: impl Fn(&E) -> bool) -> Option<E> {
        match self {
            Self::Empty => {
                *self = Self::Leaf(Arc::new([hashed]));
                None
            }
            Self::Inner(children) => {
                let child = child_of(hashed.hash, depth)?;
                Arc::make_mut(children)[child].insert(depth + 1, hashed, matches)
            }
            Self::Leaf(entries) => {
                let same = |old: &Hashed<E>| old.hash == hashed.hash && matches(&old.entry);
                if let Some(position) = entries.iter().position(same) {
                    let old = &mut Arc::make_mut(entries)[position];
                    return Some(std::mem::replace(old, hashed).entry);
                }
                if entries.len() < LEAF || child_of(hashed.hash, depth).is_none() {
                    *entries = entries.iter().cloned().chain(iter::once(hashed)).collect();
                    return None;
                }
                let mut parts: [Vec<Hashed<E>>; WIDTH] = Default::default();
                for hashed in entries.iter().cloned().chain(iter::once(hashed)) {
                    parts[child_of(hashed.hash, depth).unwrap_or_default()].push(hashed);
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
            Self::Leaf(entries) => {
                let position = entries.iter().position(|hashed| hashed.hash == hash && matches(&hashed.entry))?;
                let removed = entries[position].entry.clone();
                let (before, after) = (&entries[..position], &entries[position + 1..]);
                *self = Self::leaf(before.iter().chain(after).cloned().collect());
                Some(removed)
            }
        }
    }

    fn leaf(entries: Vec<Hashed<E>>) -> Self {
        if entries.is_empty() { Self::Empty } else { Self::Leaf(entries.into()) }
    }
}

/// An iterator over the entries, in no particular order.
pub(super) struct Iter<'a, E> {
    nodes: Vec<slice::Iter<'a, Node<E>>>,
    leaf: slice::Iter<'a, Hashed<E>>,
}

impl<'a, E> Iter<'a, E> {
    fn enter(&mut self, node: &'a Node<E>) {
        match node {
            Node::Empty => {}
            Node::Leaf(entries) => self.leaf = entries.iter(),
            Node::Inner(children) => self.nodes.push(children.iter()),
        }
    }
}

impl<'a, E> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        loop {
            if let Some(hashed) = self.leaf.next() {
                return Some(&hashed.entry);
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

    /// Returns one of few hashes if `colliding`, so that equal hashes occur at every depth.
    fn hash_of(key: u16, colliding: bool) -> u64 {
        let key = u64::from(if colliding { key % 3 } else { key });
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    proptest! {
        #[test]
        fn trie_is_a_map_and_copies_do_not_change(steps in steps(), colliding: bool) {
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
