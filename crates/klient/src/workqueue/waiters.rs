//! The waiters for a key.
//!
//! Invariant: while a key is ready and waiters exist, at least one of them was woken and will look. While keys are delayed,
//! every waiter looks again at the earliest deadline, or was woken and will look: a waiter may exist without being polled,
//! so that no waiter can keep the time for others. A waiter that is woken for a key leaves the line. A waiter that is dropped
//! before it looked passes the wake-up on.

use std::{collections::VecDeque, num::NonZeroU64, task::Waker};

/// Waiters in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    line: VecDeque<(Id, Waker)>,
    last: Option<Id>,
}

/// The identity of a waiter.
pub(super) type Id = NonZeroU64;

impl Waiters {
    /// Adds a waiter to the line, or updates the waker of one that is in the line.
    pub(super) fn join(&mut self, id: &mut Option<Id>, waker: &Waker) {
        let known = id.and_then(|id| self.line.iter_mut().find(|(other, _)| *other == id));
        match (known, &id) {
            (Some((_, old)), _) => old.clone_from(waker),
            // The waiter was woken, and found no key.
            (None, Some(id)) => self.line.push_back((*id, waker.clone())),
            (None, None) => {
                let new = self.last.map_or(Id::MIN, |last| last.saturating_add(1));
                (self.last, *id) = (Some(new), Some(new));
                self.line.push_back((new, waker.clone()));
            }
        }
    }

    /// Removes a waiter, if it was ever added.
    #[inline]
    pub(super) fn leave(&mut self, id: &mut Option<Id>) {
        if let Some(id) = id.take() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: Id) {
        if let Some(index) = self.line.iter().position(|(other, _)| *other == id) {
            self.line.remove(index);
        }
    }

    /// Removes the first waiter and returns its waker: a key is ready for it.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|(_, waker)| waker)
    }

    /// Returns the wakers of all waiters, which stay in the line: they have to see an earlier deadline.
    pub(super) fn all_wakers(&self) -> Vec<Waker> {
        self.line.iter().map(|(_, waker)| waker.clone()).collect()
    }

    /// Removes all waiters and returns their wakers.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Waker> {
        self.line.drain(..).map(|(_, waker)| waker)
    }
}
