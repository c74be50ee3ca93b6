//! One candidate's view of the lock: when to try, when it leads, and when it must not any more.
//!
//! What must hold, so that two never lead at once:
//!
//! - Others' leases are judged by how long this process has seen no change, never by times that are written in them.
//! - A lease that vanishes is as good as unchanged: whoever wrote it may not know.
//! - Our own term counts from when the request was sent that renewed it: whoever sees that change sees it later.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{debug, info, warn};

use super::{ElectionOptions, FencingToken, Held, LeaderLock, LeaderRecord, Shared, leadership::Term};
use crate::{Error, ErrorKind};

/// A place in the election.
pub(super) struct Seat<'a, L> {
    lock: &'a L,
    identity: &'a str,
    options: &'a ElectionOptions,
    shared: &'a Shared,
    seen: Option<Seen>,
}

/// The last change of the record, and when it was noticed.
struct Seen {
    held: Held,
    at: Instant,
}

/// What came of a try.
enum Tried {
    /// We lead, and have done so since the request was sent at this time.
    Leads(Instant),
    /// Another one does.
    Waits,
}

impl<'a, L: LeaderLock> Seat<'a, L> {
    pub(super) fn new(lock: &'a L, identity: &'a str, options: &'a ElectionOptions, shared: &'a Shared) -> Self {
        Self { lock, identity, options, shared, seen: None }
    }

    /// Waits until we lead.
    pub(super) async fn acquire(&mut self) -> (FencingToken, Term) {
        loop {
            let outcome = timeout(self.options.request_timeout(), self.attempt()).await;
            match outcome.unwrap_or_else(|_| Err(too_slow())) {
                Ok(Tried::Leads(since)) => {
                    info!(lock = self.lock.name(), identity = self.identity, "leads");
                    return (self.token(), self.term(since));
                }
                Ok(Tried::Waits) => {}
                Err(error) => warn!(lock = self.lock.name(), %error, "cannot try to lead"),
            }
            let next = Instant::now() + self.options.pause();
            // Nobody has to wait longer than the lease lasts, nor is there anything to find before.
            let expiry = self.seen.as_ref().map(Seen::expires).filter(|expiry| *expiry > Instant::now());
            sleep_until(expiry.map_or(next, |expiry| expiry.min(next))).await;
        }
    }

    /// Renews until that fails; says why. Each renewal is passed on.
    pub(super) async fn keep(&mut self, mut term: Term, renewed: impl Fn(Term)) -> Error {
        loop {
            let next = Instant::now() + self.options.retry_period;
            sleep_until(next.min(term.deadline)).await;
            if Instant::now() >= term.deadline {
                return Error::new(ErrorKind::Timeout, "the lease could not be renewed in time");
            }
            let limit = term.deadline.min(Instant::now() + self.options.request_timeout());
            match timeout_at(limit, self.attempt()).await.unwrap_or_else(|_| Err(too_slow())) {
                // An answer that comes too late is no answer.
                Ok(Tried::Leads(since)) if Instant::now() < term.deadline => {
                    term = self.term(since);
                    renewed(term);
                }
                Ok(Tried::Leads(_)) => {}
                Ok(Tried::Waits) => return Error::new(ErrorKind::Conflict, "another candidate holds the lease"),
                Err(error) => warn!(lock = self.lock.name(), %error, "cannot renew the lease"),
            }
        }
    }

    /// Gives the lease back, if we have it. What is left of it would run out by itself.
    pub(super) async fn release(&mut self) {
        let giving = async {
            for _ in 0..RELEASES {
                let held = match self.seen.take() {
                    Some(seen) => Some(seen.held),
                    None => self.lock.get().await?,
                };
                let Some(held) = held.filter(|held| held.record.holder == self.identity) else { return Ok(()) };
                let now = Timestamp::now();
                let record = LeaderRecord {
                    holder: String::new(),
                    lease_duration: Duration::from_secs(1),
                    acquired: now,
                    renewed: now,
                    ..held.record
                };
                match self.lock.update(&held.version, &record).await {
                    Err(error) if error.is_conflict() => {}
                    outcome => return outcome.map(drop),
                }
            }
            Err(Error::new(ErrorKind::Conflict, "the lease changed each time"))
        };
        match timeout(self.options.request_timeout(), giving).await.unwrap_or_else(|_| Err(too_slow())) {
            Ok(()) => debug!(lock = self.lock.name(), "gave the lease back"),
            Err(error) => warn!(lock = self.lock.name(), %error, "cannot give the lease back"),
        }
    }

    /// Tries once to lead, or to go on leading.
    async fn attempt(&mut self) -> Result<Tried, Error> {
        let mine = self.seen.as_ref().filter(|seen| seen.held.record.holder == self.identity);
        if let Some(Seen { held, .. }) = mine {
            let held = held.clone();
            let since = Instant::now();
            match self.lock.update(&held.version, &self.record(Some(&held.record))).await {
                Ok(held) => {
                    self.see(held);
                    return Ok(Tried::Leads(since));
                }
                Err(error) => debug!(lock = self.lock.name(), %error, "reads the lease first"),
            }
            self.shared.slow_path.increment();
        }
        let old = match self.lock.get().await? {
            Some(held) => {
                self.see(held.clone());
                Some(held)
            }
            None => None,
        };
        let holder = self.seen.as_ref().map(|seen| seen.held.record.holder.as_str()).unwrap_or_default();
        let is_free = holder.is_empty() || holder == self.identity;
        if !is_free && self.seen.as_ref().is_some_and(|seen| seen.expires() > Instant::now()) {
            return Ok(Tried::Waits);
        }
        let since = Instant::now();
        let held = match &old {
            Some(held) => self.lock.update(&held.version, &self.record(Some(&held.record))).await?,
            None => self.lock.create(&self.record(self.seen.as_ref().map(|seen| &seen.held.record))).await?,
        };
        self.see(held);
        Ok(Tried::Leads(since))
    }

    /// Notes what the record is; the time counts only if it has changed.
    fn see(&mut self, held: Held) {
        if self.seen.as_ref().is_some_and(|seen| seen.held == held) {
            return;
        }
        let before = self.seen.as_ref().map(|seen| seen.held.record.holder.as_str());
        if before != Some(held.record.holder.as_str()) {
            info!(lock = self.lock.name(), leader = held.record.holder, "the leader changed");
            self.shared.see(&held.record.holder);
        }
        self.seen = Some(Seen { held, at: Instant::now() });
    }

    /// What we write over that record.
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

    fn token(&self) -> FencingToken {
        let held = self.seen.as_ref().map(|seen| &seen.held);
        FencingToken {
            transitions: held.map_or(0, |held| held.record.transitions),
            version: held.map(|held| held.version.clone()).unwrap_or_default(),
        }
    }

    fn term(&self, since: Instant) -> Term {
        let deadline = since + self.options.renew_deadline;
        self.shared.lead_until(Some(since + self.options.lease_duration));
        Term { deadline, last_moment: since + self.options.last_moment(), ended: false }
    }
}

impl Seen {
    /// When whoever wrote it cannot lead any more.
    fn expires(&self) -> Instant {
        self.at + self.held.record.lease_duration
    }
}

fn too_slow() -> Error {
    Error::new(ErrorKind::Timeout, "the request took too long")
}

/// How often giving back is tried while the lease changes.
const RELEASES: usize = 4;
