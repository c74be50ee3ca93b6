//! One candidate's view of the lock: when to try, when it leads, and when it must not lead any more.
//!
//! Invariants, so that two processes never lead at once:
//!
//! - Other candidates' leases are judged by how long this process has seen no change, never by the times written in them.
//! - A lease that was deleted counts as unchanged: its leader may not know yet.
//! - This process's own term counts from when the renewing request was sent: other candidates see that change later. The
//!   clock counts time in which the machine is suspended, if the platform has such a clock.
//! - A write without a response may still reach the server. A candidate that gives up makes sure that it cannot.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use super::{
    ElectionOptions, FencingToken, LeaderLock, LeaderRecord, Observed, VersionedRecord, clock::Moment, leadership::Term,
};
use crate::{Error, ErrorKind};

/// A candidate, while it waits, leads or releases its lease.
pub(super) struct Candidate<'a, L> {
    lock: &'a L,
    identity: &'a str,
    options: &'a ElectionOptions,
    observed: &'a Observed,
    last: Option<LastChange>,
    /// A write of this candidate that may have been stored without `last` showing it, or may still be.
    pending: Option<PendingWrite>,
}

/// A write without a response.
struct PendingWrite {
    /// The version of the record that it replaces, or `None` if it creates the record.
    over: Option<String>,
}

/// The last change of the record, and when this process noticed it.
struct LastChange {
    lease: VersionedRecord,
    at: Instant,
}

/// The outcome of an attempt to acquire or renew the lease.
enum Attempt {
    /// This process leads, since the request was sent at this time.
    Leads(Moment),
    /// Another candidate's lease has not expired.
    HeldByOther,
}

impl<'a, L: LeaderLock> Candidate<'a, L> {
    pub(super) fn new(lock: &'a L, identity: &'a str, options: &'a ElectionOptions, observed: &'a Observed) -> Self {
        Self { lock, identity, options, observed, last: None, pending: None }
    }

    /// Waits until this process leads.
    pub(super) async fn acquire(&mut self) -> (FencingToken, Term) {
        loop {
            let attempt = timeout(self.options.request_timeout(), self.attempt()).await;
            match attempt.unwrap_or_else(|_| Err(timed_out())) {
                Ok(Attempt::Leads(since)) => match self.token() {
                    Ok(token) => {
                        info!(lock = self.lock.name(), identity = self.identity, %token, "acquired lease");
                        return (token, self.term(since));
                    }
                    Err(error) => warn!(lock = self.lock.name(), %error, "cannot lead with this lock, retrying"),
                },
                Ok(Attempt::HeldByOther) => {}
                Err(error) => warn!(lock = self.lock.name(), %error, "failed to acquire lease, retrying"),
            }
            let pause = self.options.pause();
            // The lease cannot be acquired before it expires, and should be acquired as soon as it does.
            let left = self.last.as_ref().map(LastChange::time_left).filter(|left| !left.is_zero());
            sleep(left.map_or(pause, |left| left.min(pause))).await;
        }
    }

    /// Renews the lease until that fails. Calls `renewed` after each renewal, and returns the reason of the failure.
    pub(super) async fn renew(&mut self, mut term: Term, renewed: impl Fn(Term)) -> Error {
        let clock = &self.options.clock;
        loop {
            sleep(self.options.retry_period.min(term.until_deadline(clock))).await;
            let left = term.until_deadline(clock);
            if left.is_zero() {
                return Error::new(ErrorKind::Timeout, "lease was not renewed before the renew deadline");
            }
            let limit = left.min(self.options.request_timeout());
            match timeout(limit, self.attempt()).await.unwrap_or_else(|_| Err(timed_out())) {
                Ok(Attempt::Leads(since)) if !term.until_deadline(clock).is_zero() => {
                    term = self.term(since);
                    renewed(term);
                }
                // A response after the deadline does not count.
                Ok(Attempt::Leads(_)) => {}
                Ok(Attempt::HeldByOther) => {
                    return Error::new(ErrorKind::Conflict, "another candidate holds the lease");
                }
                Err(error) => warn!(lock = self.lock.name(), %error, "failed to renew lease, retrying"),
            }
        }
    }

    /// Releases the lease, if this process holds it or may hold it. Otherwise makes no request. A lease that cannot be released
    /// expires by itself.
    pub(super) async fn release(&mut self) {
        let holds = self.last.as_ref().is_some_and(|last| last.lease.record.holder == self.identity);
        if !holds && self.pending.is_none() {
            return;
        }
        if self.pending.is_some() {
            // A write may have succeeded without a response: only the server knows who holds the lease.
            self.last = None;
        }
        match timeout(self.options.request_timeout(), self.try_release()).await.unwrap_or_else(|_| Err(timed_out())) {
            Ok(()) => debug!(lock = self.lock.name(), "released lease"),
            Err(error) => warn!(lock = self.lock.name(), %error, "failed to release lease, it has to expire"),
        }
    }

    async fn try_release(&mut self) -> Result<(), Error> {
        for _ in 0..RELEASE_ATTEMPTS {
            let lease = match self.last.take() {
                Some(last) => Some(last.lease),
                None => self.lock.get().await?,
            };
            let version = lease.as_ref().map(|lease| lease.version.as_str());
            let is_mine = lease.as_ref().is_some_and(|lease| lease.record.holder == self.identity);
            // The server may still receive a write that was canceled. It is rejected once the version has changed. The lease
            // was free or had expired when that write was sent, and has not changed since.
            let may_become_mine = self.pending.as_ref().is_some_and(|pending| pending.over.as_deref() == version);
            if !is_mine && !may_become_mine {
                return Ok(());
            }
            let now = Timestamp::now();
            let record = LeaderRecord {
                holder: String::new(),
                lease_duration: Duration::from_secs(1),
                acquired: now,
                renewed: now,
                transitions: lease.as_ref().map_or(0, |lease| lease.record.transitions),
            };
            let written = match version {
                Some(version) => self.lock.update(version, &record).await,
                None => self.lock.create(&record).await,
            };
            match written {
                Ok(_) => {
                    self.observed.set_leader("");
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Conflict, format!("lease changed during each of {RELEASE_ATTEMPTS} attempts")))
    }

    /// Tries once to acquire or renew the lease.
    async fn attempt(&mut self) -> Result<Attempt, Error> {
        let mine = self.last.as_ref().filter(|last| last.lease.record.holder == self.identity);
        if let Some(LastChange { lease, .. }) = mine {
            let lease = lease.clone();
            let since = self.options.clock.now();
            match self.write(Some(&lease)).await {
                Ok(()) => return Ok(Attempt::Leads(since)),
                Err(error) => debug!(lock = self.lock.name(), %error, "failed to renew lease, reading it"),
            }
            self.observed.slow_path.increment();
        }
        let current = self.lock.get().await?;
        if let Some(lease) = &current {
            self.observe(lease.clone());
        }
        let holder = self.last.as_ref().map(|last| last.lease.record.holder.as_str()).unwrap_or_default();
        let is_free = holder.is_empty() || holder == self.identity;
        if !is_free && self.last.as_ref().is_some_and(|last| !last.time_left().is_zero()) {
            return Ok(Attempt::HeldByOther);
        }
        let since = self.options.clock.now();
        self.write(current.as_ref()).await?;
        Ok(Attempt::Leads(since))
    }

    /// Writes this candidate as the holder over the given record, or into a new one.
    async fn write(&mut self, current: Option<&VersionedRecord>) -> Result<(), Error> {
        // Until a response says otherwise: this future may be dropped at the await.
        self.pending = Some(PendingWrite { over: current.map(|lease| lease.version.clone()) });
        let written = match current {
            Some(lease) => self.lock.update(&lease.version, &self.record(Some(&lease.record))).await,
            None => self.lock.create(&self.record(self.last.as_ref().map(|last| &last.lease.record))).await,
        };
        match written {
            Ok(lease) => {
                self.observe(lease);
                self.pending = None;
                Ok(())
            }
            Err(error) => {
                // After any other error the server has refused, and nothing was written.
                let outcome_unknown =
                    [ErrorKind::Timeout, ErrorKind::Unavailable, ErrorKind::Transport, ErrorKind::Decode];
                if !outcome_unknown.contains(&error.kind()) {
                    self.pending = None;
                }
                Err(error)
            }
        }
    }

    /// Notes the record. The time counts only if the record has changed.
    fn observe(&mut self, lease: VersionedRecord) {
        if self.last.as_ref().is_some_and(|last| last.lease == lease) {
            return;
        }
        let before = self.last.as_ref().map(|last| last.lease.record.holder.as_str());
        if before != Some(lease.record.holder.as_str()) {
            info!(lock = self.lock.name(), leader = lease.record.holder, "leader changed");
            self.observed.set_leader(&lease.record.holder);
        }
        self.last = Some(LastChange { lease, at: Instant::now() });
    }

    /// Returns the record that this candidate writes over `old`.
    fn record(&self, old: Option<&LeaderRecord>) -> LeaderRecord {
        let now = Timestamp::now();
        let is_mine = old.is_some_and(|old| old.holder == self.identity);
        let transitions = old.map_or(0, |old| old.transitions.saturating_add(i32::from(!is_mine)));
        LeaderRecord {
            holder: self.identity.to_owned(),
            lease_duration: self.options.lease_duration,
            acquired: old.filter(|_| is_mine).map_or(now, |old| old.acquired),
            renewed: now,
            transitions,
        }
    }

    fn token(&self) -> Result<FencingToken, Error> {
        let version = self.last.as_ref().map(|last| last.lease.version.as_str()).unwrap_or_default();
        version.parse().map(FencingToken::new).map_err(|_| {
            let what =
                format!("the record of the lock has version {version:?}: expected a number that every write raises");
            Error::new(ErrorKind::Decode, what)
        })
    }

    fn term(&self, since: Moment) -> Term {
        self.observed.set_renewed(Some(since));
        let (deadline, last_moment) = (self.options.renew_deadline, self.options.last_moment());
        Term { since, deadline, last_moment, ended: false }
    }
}

impl LastChange {
    /// Returns the time after which the holder cannot lead any more.
    fn time_left(&self) -> Duration {
        self.lease.record.lease_duration.saturating_sub(self.at.elapsed())
    }
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "request for the lease timed out")
}

/// The number of attempts to release a lease that keeps changing.
const RELEASE_ATTEMPTS: usize = 4;
