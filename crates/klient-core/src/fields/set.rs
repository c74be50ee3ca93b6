//! Sets of field paths.

use std::cmp::Ordering;

use super::element::{Path, PathElement};

/// A set of field paths, such as the fields that a field manager owns.
///
/// It is a tree. A path is in the set if its last element is a member of the node that the other elements lead to. A child
/// need not be a member: a manager can own `.spec.replicas` without owning `.spec`.
///
/// ```
/// use klient_core::fields::{FieldSet, PathElement};
///
/// let mut set = FieldSet::new();
/// set.insert(&[PathElement::field("spec"), PathElement::field("replicas")]);
/// assert!(!set.contains(&[PathElement::field("spec")]));
/// assert_eq!(set.to_string(), r#"{"f:spec":{"f:replicas":{}}}"#);
/// ```
#[doc(alias("fieldpath.Set", "FieldsV1"))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// The members of this node, sorted.
    pub(super) members: Vec<PathElement>,
    /// The nodes below this one, sorted by their path element.
    pub(super) children: Vec<(PathElement, FieldSet)>,
}

impl FieldSet {
    /// Returns an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a path. The empty path stands for the whole object, which is never in a set.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut node = self;
        for element in parents {
            node = node.descend(element);
        }
        node.insert_member(last.clone());
    }

    /// Returns whether a path is in the set.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let node = parents.iter().try_fold(self, |node, element| node.child(element));
        node.is_some_and(|node| node.has_member(last))
    }

    /// Returns whether no path is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, child)| child.is_empty())
    }

    /// Returns the number of paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, child)| child.len()).sum::<usize>()
    }

    /// Returns the paths of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut members = Vec::with_capacity(self.members.len().max(other.members.len()));
        zip(
            &self.members,
            &other.members,
            |member| member,
            |member| member,
            |left, right| {
                members.extend(left.or(right).cloned());
            },
        );
        let mut children = Vec::with_capacity(self.children.len().max(other.children.len()));
        zip(
            &self.children,
            &other.children,
            |child| &child.0,
            |child| &child.0,
            |left, right| {
                children.extend(match (left, right) {
                    (Some((element, left)), Some((_, right))) => Some((element.clone(), left.union(right))),
                    (left, right) => left.or(right).cloned(),
                });
            },
        );
        Self { members, children }
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::new();
        zip(
            &self.members,
            &other.members,
            |member| member,
            |member| member,
            |left, right| {
                out.members.extend(left.filter(|_| right.is_some()).cloned());
            },
        );
        zip(
            &self.children,
            &other.children,
            |child| &child.0,
            |child| &child.0,
            |left, right| {
                if let (Some((element, left)), Some((_, right))) = (left, right) {
                    out.push_child(element, left.intersection(right));
                }
            },
        );
        out
    }

    /// Returns whether no path is in both sets.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.members.iter().all(|member| !other.has_member(member))
            && self
                .children
                .iter()
                .all(|(element, child)| other.child(element).is_none_or(|other| child.is_disjoint(other)))
    }

    /// Returns whether all paths are in the other set, too.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.members.iter().all(|member| other.has_member(member))
            && self.children.iter().all(|(element, child)| match other.child(element) {
                Some(other) => child.is_subset(other),
                None => child.is_empty(),
            })
    }

    /// Returns the paths that are not in the other set. A path below one of the other set's stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut out = Self { members: self.members_without(other), children: Vec::new() };
        zip(
            &self.children,
            &other.children,
            |child| &child.0,
            |child| &child.0,
            |left, right| match (left, right) {
                (Some((element, left)), Some((_, right))) => out.push_child(element, left.difference(right)),
                (left, _) => out.children.extend(left.cloned()),
            },
        );
        out
    }

    /// Returns the paths that are neither in the other set nor below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut out = Self { members: self.members_without(other), children: Vec::new() };
        zip(
            &self.children,
            &other.children,
            |child| &child.0,
            |child| &child.0,
            |left, right| {
                let Some((element, left)) = left else { return };
                if other.has_member(element) {
                    return;
                }
                match right {
                    Some((_, right)) => out.push_child(element, left.recursive_difference(right)),
                    None => out.children.push((element.clone(), left.clone())),
                }
            },
        );
        out
    }

    /// Returns the paths that have no other path of the set below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let is_leaf = |member: &&PathElement| self.child(member).is_none();
        Self {
            members: self.members.iter().filter(is_leaf).cloned().collect(),
            children: self.children.iter().map(|(element, child)| (element.clone(), child.leaves())).collect(),
        }
    }

    /// Returns all paths: the members of a node first, then those below it.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::with_capacity(self.len());
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Path, out: &mut Vec<Path>) {
        for member in &self.members {
            out.push(prefix.iter().chain([member]).cloned().collect());
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Returns whether an element is a member of this node.
    pub(super) fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// Returns the node below an element.
    pub(super) fn child(&self, element: &PathElement) -> Option<&Self> {
        let at = self.children.binary_search_by(|(known, _)| known.cmp(element)).ok()?;
        self.children.get(at).map(|(_, child)| child)
    }

    pub(super) fn insert_member(&mut self, element: PathElement) {
        if self.members.last().is_none_or(|last| *last < element) {
            self.members.push(element);
        } else if let Err(at) = self.members.binary_search(&element) {
            self.members.insert(at, element);
        }
    }

    /// Returns the node below an element, which is created if it is absent.
    pub(super) fn descend(&mut self, element: &PathElement) -> &mut Self {
        let at = match self.children.binary_search_by(|(known, _)| known.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (element.clone(), Self::new()));
                at
            }
        };
        &mut self.children[at].1
    }

    /// Adds a node below an element. Empty nodes are left out, because they would be read back as members.
    pub(super) fn insert_child(&mut self, element: PathElement, child: Self) {
        if child.is_empty() {
            return;
        }
        if self.children.last().is_none_or(|(last, _)| *last < element) {
            self.children.push((element, child));
            return;
        }
        match self.children.binary_search_by(|(known, _)| known.cmp(&element)) {
            Ok(at) => self.children[at].1 = self.children[at].1.union(&child),
            Err(at) => self.children.insert(at, (element, child)),
        }
    }

    fn push_child(&mut self, element: &PathElement, child: Self) {
        if !child.is_empty() {
            self.children.push((element.clone(), child));
        }
    }

    fn members_without(&self, other: &Self) -> Vec<PathElement> {
        let mut out = Vec::with_capacity(self.members.len());
        zip(
            &self.members,
            &other.members,
            |member| member,
            |member| member,
            |left, right| {
                out.extend(left.filter(|_| right.is_none()).cloned());
            },
        );
        out
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path);
        }
        set
    }
}

/// Walks two sorted slices at once, and visits each key with the items that have it.
fn zip<'a, L, R>(
    left: &'a [L],
    right: &'a [R],
    left_key: impl Fn(&'a L) -> &'a PathElement,
    right_key: impl Fn(&'a R) -> &'a PathElement,
    mut visit: impl FnMut(Option<&'a L>, Option<&'a R>),
) {
    let (mut i, mut j) = (0, 0);
    loop {
        match (left.get(i), right.get(j)) {
            (None, None) => return,
            (Some(item), None) => {
                visit(Some(item), None);
                i += 1;
            }
            (None, Some(item)) => {
                visit(None, Some(item));
                j += 1;
            }
            (Some(l), Some(r)) => match left_key(l).cmp(right_key(r)) {
                Ordering::Less => {
                    visit(Some(l), None);
                    i += 1;
                }
                Ordering::Greater => {
                    visit(None, Some(r));
                    j += 1;
                }
                Ordering::Equal => {
                    visit(Some(l), Some(r));
                    i += 1;
                    j += 1;
                }
            },
        }
    }
}
