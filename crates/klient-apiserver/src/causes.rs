//! The causes of an invalid object, which are limited in number and in size.

use std::ops::Deref;

use klient_core::StatusCause;

/// The causes that were found, up to a limit.
///
/// The real server has no such limit: a small object can have billions of causes there, or causes of many gigabytes.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    list: Vec<StatusCause>,
    /// The size of the fields and messages.
    size: usize,
}

impl Causes {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new(), size: 0 }
    }

    /// Returns whether there are so many causes that no more are added.
    pub(crate) const fn is_full(&self) -> bool {
        self.list.len() >= MAX_CAUSES || self.size >= MAX_TEXT
    }

    /// Adds a cause, unless there are too many. Then the cause is not built, because its texts can be large.
    pub(crate) fn add(&mut self, cause: impl FnOnce() -> StatusCause) {
        self.insert(self.list.len(), cause);
    }

    /// Adds a cause before the one at an index, unless there are too many.
    pub(crate) fn insert(&mut self, index: usize, cause: impl FnOnce() -> StatusCause) {
        if !self.is_full() {
            let cause = cause();
            self.size += cause.field.len() + cause.message.len();
            self.list.insert(index, cause);
        }
    }

    /// Sorts the causes by their texts.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn into_vec(self) -> Vec<StatusCause> {
        self.list
    }
}

impl Deref for Causes {
    type Target = [StatusCause];

    fn deref(&self) -> &[StatusCause] {
        &self.list
    }
}

impl Extend<StatusCause> for Causes {
    /// Adds causes. The iterator is not read further once there are too many.
    fn extend<T: IntoIterator<Item = StatusCause>>(&mut self, causes: T) {
        let mut causes = causes.into_iter();
        while !self.is_full() {
            let Some(cause) = causes.next() else { return };
            self.add(|| cause);
        }
    }
}

impl FromIterator<StatusCause> for Causes {
    fn from_iter<T: IntoIterator<Item = StatusCause>>(causes: T) -> Self {
        let mut all = Self::new();
        all.extend(causes);
        all
    }
}

impl IntoIterator for Causes {
    type Item = StatusCause;
    type IntoIter = std::vec::IntoIter<StatusCause>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// The limit of the number of causes.
const MAX_CAUSES: usize = 4096;
/// The size of the fields and messages of causes after which no more are added.
pub(crate) const MAX_TEXT: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_limited_in_number_and_size() {
        let many = |length: usize| -> Causes {
            (0..10_000).map(|_| StatusCause::new("", "f".repeat(length), "m".repeat(length))).collect()
        };
        assert_eq!(many(1).len(), MAX_CAUSES);
        let large = many(1 << 20);
        assert_eq!(large.len(), 2);
        assert!(large.is_full());
    }
}
