//! Leadership as a value, which work checks before it acts.
//!
//! Invariant: leadership ends by the clock, at the renew deadline, even if no task ran to announce it.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep_until},
};

/// The leadership of this process, until it ends. Clones refer to the same leadership.
///
/// Work should stop when [`ended`](Self::ended) is ready. Work that does not stop is dropped before another process can lead.
///
/// ```no_run
/// # async fn sync_one() {}
/// async fn work(leadership: klient::election::Leadership) {
///     while leadership.is_valid() {
///         sync_one().await;
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Leadership {
    token: Arc<FencingToken>,
    term: watch::Receiver<Term>,
}

/// A token that identifies a leadership. Each leadership has a higher one than all before it.
///
/// A system that stores the highest token it has seen can reject late writes of former leaders.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencingToken {
    /// How often the leader has changed.
    pub transitions: i32,
    /// The version of the lease when this leadership began.
    pub version: String,
}

/// The time for which a leadership is certain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) deadline: Instant,
    /// The time after which work must not run.
    pub(super) last_moment: Instant,
    /// Whether work was told to stop.
    pub(super) ended: bool,
}

impl Leadership {
    pub(super) fn new(token: FencingToken, term: watch::Receiver<Term>) -> Self {
        Self { token: Arc::new(token), term }
    }

    /// Returns whether this process leads.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how long this process leads if the lease is not renewed again. Zero after leadership has ended.
    pub fn remaining(&self) -> Duration {
        let term = *self.term.borrow();
        let left = term.deadline.saturating_duration_since(Instant::now());
        if term.ended { Duration::ZERO } else { left }
    }

    /// Waits until work has to stop: leadership was lost, or the process shuts down.
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

    /// Returns whether work may still run, if only to finish: true until shortly before another process can lead.
    pub fn may_run(&self) -> bool {
        Instant::now() < self.term.borrow().last_moment
    }

    /// Returns the token of this leadership.
    pub fn token(&self) -> &FencingToken {
        &self.token
    }
}
