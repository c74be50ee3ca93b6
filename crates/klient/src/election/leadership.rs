//! Leadership as a value: what work asks before it acts.
//!
//! What must hold: it ends by the clock, at the renew deadline, whether or not anybody got round to saying so.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep_until},
};

/// That this process leads, until it does not any more. Clones are the same leadership.
///
/// Work stops when [`ended`](Self::ended) is ready. Work that does not is dropped before another process can lead.
#[derive(Clone, Debug)]
pub struct Leadership {
    token: Arc<FencingToken>,
    term: watch::Receiver<Term>,
}

/// A number for each leadership, higher than those of all before it.
///
/// What is written with it can be refused by whoever has seen a higher one: a late write of a former leader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencingToken {
    /// How often another process has begun to lead.
    pub transitions: i32,
    /// The version of the lease with which this leadership began.
    pub version: String,
}

/// How long a leadership is sure to last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) deadline: Instant,
    /// Until when work may run at all.
    pub(super) last_moment: Instant,
    /// Whether it was told to stop.
    pub(super) ended: bool,
}

impl Leadership {
    pub(super) fn new(token: FencingToken, term: watch::Receiver<Term>) -> Self {
        Self { token: Arc::new(token), term }
    }

    /// Whether this process leads.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long this process leads at least, if nothing is renewed any more: zero when it is over.
    pub fn remaining(&self) -> Duration {
        let term = *self.term.borrow();
        let left = term.deadline.saturating_duration_since(Instant::now());
        if term.ended { Duration::ZERO } else { left }
    }

    /// Ready when work has to stop: leadership is lost, or the process shuts down.
    pub async fn ended(&self) {
        let mut changes = self.term.clone();
        loop {
            let term = *changes.borrow_and_update();
            if term.ended || Instant::now() >= term.deadline {
                return;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep_until(term.deadline) => {}
            }
        }
    }

    /// Whether work may run at all, to come to an end at least: until shortly before another process can lead.
    pub fn may_run(&self) -> bool {
        Instant::now() < self.term.borrow().last_moment
    }

    /// Tells this leadership from all others.
    pub fn token(&self) -> &FencingToken {
        &self.token
    }
}
