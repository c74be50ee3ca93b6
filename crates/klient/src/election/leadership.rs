//! Leadership as a value, which work checks before it acts.
//!
//! Invariant: leadership ends by the clock, at the renew deadline, even if no task ran to announce it.

use std::fmt;

use tokio::{
    sync::watch,
    time::{Duration, sleep},
};

use super::clock::{Clock, Moment};

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
///
/// # Suspended processes and machines
///
/// While a process is stopped, or its machine is suspended or its virtual machine paused, the lease expires and another
/// process can lead. Every check here counts that time: a stopped process everywhere, a suspended machine on Linux and
/// Android (`CLOCK_BOOTTIME`). On other systems, and if a hypervisor hides a pause from its guest, leadership appears
/// to last for as long as the pause too long, until the next renewal fails.
///
/// No check covers what is between the check and its effect: a request that was sent just before the pause may reach
/// its receiver after it. Where that matters, the receiver has to compare [`token`](Self::token)s.
#[derive(Clone, Debug)]
pub struct Leadership {
    token: FencingToken,
    term: watch::Receiver<Term>,
    clock: Clock,
}

/// A number that identifies a leadership. Each leadership has a higher one than all before it.
///
/// A system that stores the highest token it has seen can reject late writes of former leaders.
///
/// The number is the version that the lock's record got when the lease was acquired. In a Lease, that is the
/// `resourceVersion`, which the server raises with every write: also if the same identity acquires the lease again, and
/// if the Lease was deleted in between. Only a server that was restored from a backup repeats versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number, to be sent to and compared by other systems.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time for which a leadership is certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// When the request was sent that acquired or renewed the lease.
    pub(crate) since: Moment,
    /// How long this process leads, from that moment.
    pub(crate) deadline: Duration,
    /// How long work may run, from that moment.
    pub(crate) last_moment: Duration,
    /// Whether work was told to stop.
    pub(crate) ended: bool,
}

impl Term {
    /// Returns how long this process leads if the lease is not renewed again.
    pub(crate) fn until_deadline(&self, clock: &Clock) -> Duration {
        self.deadline.saturating_sub(clock.since(self.since))
    }

    /// Returns how long work may run if the lease is not renewed again.
    pub(crate) fn until_last_moment(&self, clock: &Clock) -> Duration {
        self.last_moment.saturating_sub(clock.since(self.since))
    }
}

impl Leadership {
    pub(super) fn new(token: FencingToken, term: watch::Receiver<Term>, clock: Clock) -> Self {
        Self { token, term, clock }
    }

    /// Returns whether this process leads.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how long this process leads if the lease is not renewed again. Zero after leadership has ended.
    pub fn remaining(&self) -> Duration {
        let term = *self.term.borrow();
        if term.ended { Duration::ZERO } else { term.until_deadline(&self.clock) }
    }

    /// Waits until work has to stop: leadership was lost, or the process shuts down.
    pub async fn ended(&self) {
        let mut changes = self.term.clone();
        loop {
            let term = *changes.borrow_and_update();
            let left = term.until_deadline(&self.clock);
            if term.ended || left.is_zero() {
                return;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep(left) => {}
            }
        }
    }

    /// Returns whether work may still run, if only to finish: true until shortly before another process can lead.
    pub fn may_run(&self) -> bool {
        !self.term.borrow().until_last_moment(&self.clock).is_zero()
    }

    /// Returns the token of this leadership.
    pub fn token(&self) -> FencingToken {
        self.token
    }
}
