//! Who waits for a key, and who of them keeps the time.
//!
//! What must hold: while keys are ready and somebody waits, somebody was woken who will look. While keys are delayed and
//! somebody waits, one of those waits for the earliest of them, or was woken and will. A waiter that is woken leaves the
//! line; one that goes away without having looked passes the wake-up on.

use std::{collections::VecDeque, task::Waker};

/// Waiters in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    line: VecDeque<(u64, Waker)>,
    last: u64,
    /// Wakes at the earliest deadline, for all.
    timekeeper: Option<u64>,
}

impl Waiters {
    /// Puts a waiter in the line, or keeps its place there and changes its waker.
    pub(super) fn join(&mut self, id: &mut Option<u64>, waker: &Waker) {
        let place = id.and_then(|id| self.line.iter_mut().find(|(other, _)| *other == id));
        match (place, &id) {
            (Some((_, old)), _) => old.clone_from(waker),
            // It was woken, and found nothing.
            (None, Some(id)) => self.line.push_back((*id, waker.clone())),
            (None, None) => {
                self.last += 1;
                *id = Some(self.last);
                self.line.push_back((self.last, waker.clone()));
            }
        }
    }

    /// Makes that waiter keep the time, unless another one does.
    pub(super) fn keep_time(&mut self, id: u64) -> bool {
        *self.timekeeper.get_or_insert(id) == id
    }

    /// Takes a waiter out; says whether it kept the time, so that another one has to.
    pub(super) fn leave(&mut self, id: u64) -> bool {
        if let Some(place) = self.line.iter().position(|(other, _)| *other == id) {
            self.line.remove(place);
        }
        let kept_time = self.timekeeper == Some(id);
        if kept_time {
            self.timekeeper = None;
        }
        kept_time
    }

    /// Whoever is first in line, if there is a key to look for.
    pub(super) fn next_if(&mut self, is_ready: bool) -> Option<Waker> {
        if is_ready { self.line.pop_front().map(|(_, waker)| waker) } else { None }
    }

    /// Whoever has to look at the time: the timekeeper, or the first in line, who is it from now on.
    pub(super) fn look_at_time(&mut self) -> Option<Waker> {
        match self.timekeeper {
            // If it is not in line, it was woken already, and will look.
            Some(keeper) => self.line.iter().find(|(id, _)| *id == keeper).map(|(_, waker)| waker.clone()),
            None => {
                let (id, waker) = self.line.front()?;
                self.timekeeper = Some(*id);
                Some(waker.clone())
            }
        }
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Waker> {
        self.line.drain(..).map(|(_, waker)| waker)
    }
}
