//! Leader election: of several processes, one works at a time.
//!
//! The Lease has client-go's format and default timings. The differences: leadership is a value that expires by the clock,
//! before another process can lead; work that is still running by then is dropped; and the lease is released only after
//! the work has ended, while it is renewed until then. In client-go: `tools/leaderelection`.

mod candidate;
mod clock;
mod leader_changes;
mod leadership;
mod lease_lock;
mod lock;
mod options;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{sync::watch, time::sleep};

use self::{candidate::Candidate, clock::Moment};
pub(crate) use self::{clock::Clock, leadership::Term};
pub use self::{
    leader_changes::LeaderChanges,
    leadership::{FencingToken, Leadership},
    lease_lock::LeaseLock,
    lock::{LeaderLock, LeaderRecord, VersionedRecord},
    options::ElectionOptions,
};
use crate::{
    Error, ErrorKind,
    metrics::{Counter, Gauge, Registry},
};

/// A candidate in a leader election.
///
/// ```no_run
/// use klient::{Client, election::{ElectionOptions, LeaderElector, LeaseLock}};
///
/// # async fn control() {}
/// # async fn run() -> Result<(), klient::Error> {
/// let lock = LeaseLock::new(Client::infer()?, "shop", "website-controller");
/// let elector = LeaderElector::new(lock, "pod-7", ElectionOptions::default())?;
/// elector
///     .run(async |leadership| {
///         tokio::select! {
///             () = control() => {}
///             () = leadership.ended() => {} // Finish the current work.
///         }
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct LeaderElector<L> {
    lock: L,
    identity: String,
    options: ElectionOptions,
    observed: Observed,
}

/// The state of an election as this process last observed it.
struct Observed {
    leader: watch::Sender<Option<String>>,
    /// When the lease was last acquired or renewed, while this process leads.
    renewed: Mutex<Option<Moment>>,
    is_leader: Gauge,
    slow_path: Counter,
}

impl<L: LeaderLock> LeaderElector<L> {
    /// Creates a candidate. Each candidate needs a unique identity, such as the name of its pod.
    ///
    /// # Errors
    ///
    /// Returns a [`Config`](ErrorKind::Config) error if the identity is empty, or unless lease duration > renew deadline >
    /// 1.2 retry periods.
    #[doc(alias = "NewLeaderElector")]
    pub fn new(lock: L, identity: impl Into<String>, options: ElectionOptions) -> Result<Self, Error> {
        let identity = identity.into();
        options.check(&identity)?;
        let registry = options.registry.clone().unwrap_or_else(|| Registry::global().clone());
        let name = lock.name();
        let labels = &[("name", name.as_str())];
        let observed = Observed {
            leader: watch::Sender::new(None),
            renewed: Mutex::default(),
            is_leader: registry.gauge("leader_election_master_status", "1 if this process is the leader.", labels),
            slow_path: registry.counter(
                "leader_election_slowpath_total",
                "Renewals that had to read the lease before they could write it.",
                labels,
            ),
        };
        observed.is_leader.set(0);
        Ok(Self { lock, identity, options, observed })
    }

    /// Waits until this process leads, and then runs `work`; see [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// Returns an error if leadership was lost before `work` ended. The process should exit then, so that it can be
    /// restarted.
    pub async fn run<T, F>(&self, work: impl FnOnce(Leadership) -> F) -> Result<T, Error>
    where
        F: Future<Output = T>,
    {
        match self.run_until(std::future::pending(), work).await? {
            Some(output) => Ok(output),
            None => Err(Error::new(ErrorKind::Canceled, "leader election stopped without a shutdown request")),
        }
    }

    /// Waits until this process leads, and then runs `work` until it ends or leadership is lost.
    ///
    /// When `signal` is ready, a candidate stops waiting. A leader is told to stop: its leadership
    /// [ends](Leadership::ended), `work` runs to its own end while the lease is renewed, and then the lease is released.
    /// Returns `None` if this process never led.
    ///
    /// If leadership is lost, `work` may run until half-way between the renew deadline and the end of the lease. Then it is
    /// dropped. It is not polled after that moment, even if the process was suspended in between; about suspended
    /// machines, see [`Leadership`].
    ///
    /// # Errors
    ///
    /// Returns an error if leadership was lost before `work` ended. The process should exit then, so that it can be
    /// restarted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`. The lease is not released, so that it has to expire.
    pub async fn run_until<T, F>(
        &self,
        signal: impl Future<Output = ()>,
        work: impl FnOnce(Leadership) -> F,
    ) -> Result<Option<T>, Error>
    where
        F: Future<Output = T>,
    {
        let mut signal = pin!(signal);
        let _reset = ResetOnDrop(&self.observed);
        let mut candidate = Candidate::new(&self.lock, &self.identity, &self.options, &self.observed);
        let acquired = tokio::select! {
            biased;
            () = &mut signal => None,
            acquired = candidate.acquire() => Some(acquired),
        };
        let Some((token, term)) = acquired else {
            self.release(&mut candidate).await;
            return Ok(None);
        };
        self.observed.is_leader.set(1);
        let (terms, receiver) = watch::channel(term);
        let clock = &self.options.clock;
        let leadership = Leadership::new(token, receiver.clone(), clock.clone());
        let mut work = pin!(guarded(work(leadership), receiver, clock));
        let output = {
            let mut renewing = pin!(candidate.renew(term, |term| {
                terms.send_modify(|old| *old = Term { ended: old.ended, ..term });
            }));
            let mut stopping = false;
            loop {
                // Renewals are polled first: after the process was suspended, they notice an expired lease before the work runs.
                tokio::select! {
                    biased;
                    error = &mut renewing => break Err(error),
                    () = &mut signal, if !stopping => {
                        stopping = true;
                        terms.send_modify(|term| term.ended = true);
                    }
                    output = &mut work => break output.ok_or_else(expired_while_suspended),
                }
            }
        };
        match output {
            Ok(output) => {
                self.release(&mut candidate).await;
                Ok(Some(output))
            }
            Err(error) => {
                terms.send_modify(|term| term.ended = true);
                let left = terms.borrow().until_last_moment(clock);
                // The work may finish in an orderly way as long as no other process can lead.
                tokio::select! {
                    biased;
                    () = sleep(left) => {}
                    _ = work => {}
                }
                Err(error.context(format!("leadership of {} was lost", self.lock.name())))
            }
        }
    }

    async fn release(&self, candidate: &mut Candidate<'_, L>) {
        if self.options.release {
            candidate.release().await;
        }
    }
}

impl<L> LeaderElector<L> {
    /// Returns the identity of the leader, as this candidate last observed it.
    #[doc(alias = "GetLeader")]
    pub fn leader(&self) -> Option<String> {
        self.observed.leader.borrow().clone()
    }

    /// Returns a stream of leaders: the current one first, and then each new one.
    ///
    /// ```no_run
    /// use klient::election::{LeaderElector, LeaseLock};
    ///
    /// # async fn log(elector: &LeaderElector<LeaseLock>) {
    /// let mut leaders = elector.leader_changes();
    /// while let Some(leader) = leaders.next().await {
    ///     println!("leader: {}", leader.as_deref().unwrap_or("none"));
    /// }
    /// # }
    /// ```
    #[doc(alias = "OnNewLeader")]
    pub fn leader_changes(&self) -> LeaderChanges {
        LeaderChanges::new(self.observed.leader.subscribe())
    }

    /// Returns whether this process leads.
    #[doc(alias = "IsLeader")]
    pub fn is_leader(&self) -> bool {
        self.observed.renewed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Checks the health of a leader: its lease must not have expired more than `tolerance` ago.
    ///
    /// # Errors
    ///
    /// Returns an error if the lease expired and this process has not noticed. The process should be restarted.
    #[doc(alias = "HealthzAdaptor")]
    pub fn check(&self, tolerance: Duration) -> Result<(), Error> {
        let renewed = *self.observed.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.options.lease_duration.saturating_add(tolerance);
        match renewed {
            Some(renewed) if self.options.clock.since(renewed) > limit => Err(Error::new(
                ErrorKind::Timeout,
                "lease expired, and the leader has not noticed: restart the process",
            )),
            _ => Ok(()),
        }
    }
}

impl Observed {
    /// Notes who holds the lease; an empty holder means that it was released.
    fn set_leader(&self, holder: &str) {
        let leader = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
        self.leader.send_if_modified(|known| {
            let changed = *known != leader;
            *known = leader;
            changed
        });
    }

    fn set_renewed(&self, renewed: Option<Moment>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }
}

/// Notes that this process does not lead, however an election ends.
struct ResetOnDrop<'a>(&'a Observed);

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_leader.set(0);
        self.0.set_renewed(None);
    }
}

/// Runs work, but never polls it after the last moment of its term. Returns `None` then.
async fn guarded<F: Future>(work: F, terms: watch::Receiver<Term>, clock: &Clock) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if terms.borrow().until_last_moment(clock).is_zero() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

fn expired_while_suspended() -> Error {
    Error::new(ErrorKind::Timeout, "lease expired while the process or its machine was suspended")
}

impl<L: LeaderLock> fmt::Debug for LeaderElector<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("lock", &self.lock.name())
            .field("identity", &self.identity)
            .field("leader", &self.leader())
            .finish_non_exhaustive()
    }
}
