//! Who waits for a key.
//!
//! What must hold: while keys are ready and somebody waits, somebody was woken who will look. While keys are delayed, everybody
//! who waits looks again at the earliest of their deadlines, or was woken and will: a waiter may be there and not be polled, so
//! that none can keep the time for others. A waiter that is woken for a key leaves the line; one that goes away without having
//! looked passes the wake-up on.

use std::{collections::VecDeque, num::NonZeroU64, task::Waker};

/// Waiters in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    line: VecDeque<(Id, Waker)>,
    last: Option<Id>,
}

/// Tells waiters apart.
pub(super) type Id = NonZeroU64;

impl Waiters {
    /// Puts a waiter in the line, or keeps its place there and changes its waker.
    pub(super) fn join(&mut self, id: &mut Option<Id>, waker: &Waker) {
        let place = id.and_then(|id| self.line.iter_mut().find(|(other, _)| *other == id));
        match (place, &id) {
            (Some((_, old)), _) => old.clone_from(waker),
            // It was woken, and found nothing.
            (None, Some(id)) => self.line.push_back((*id, waker.clone())),
            (None, None) => {
                let new = self.last.map_or(Id::MIN, |last| last.saturating_add(1));
                (self.last, *id) = (Some(new), Some(new));
                self.line.push_back((new, waker.clone()));
            }
        }
    }

    /// Takes a waiter out, if it has ever been in.
    #[inline]
    pub(super) fn leave(&mut self, id: &mut Option<Id>) {
        if let Some(id) = id.take() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: Id) {
        if let Some(place) = self.line.iter().position(|(other, _)| *other == id) {
            self.line.remove(place);
        }
    }

    /// Whoever is first in line: there is a key to look for.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|(_, waker)| waker)
    }

    /// All of them, who stay in the line: there is an earlier deadline to wait for.
    pub(super) fn look_at_time(&self) -> Vec<Waker> {
        self.line.iter().map(|(_, waker)| waker.clone()).collect()
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Waker> {
        self.line.drain(..).map(|(_, waker)| waker)
    }
}
