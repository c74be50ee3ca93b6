//! Leader election: of several processes, one works.
//!
//! The lease is client-go's, and so are its times. What is different: leadership is a value that ends by the clock, before
//! another process can lead; work that has not ended by then is dropped; and the lease is given back only after the work has
//! ended, while it is renewed until then. In client-go: `tools/leaderelection`.

mod leadership;
mod lease_lock;
mod lock;
mod options;
mod seat;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use self::{leadership::Term, seat::Seat};
pub use self::{
    leadership::{FencingToken, Leadership},
    lease_lock::LeaseLock,
    lock::{Held, LeaderLock, LeaderRecord},
    options::ElectionOptions,
};
use crate::{
    Error, ErrorKind,
    metrics::{Counter, Gauge, Registry},
};

/// A candidate.
///
/// ```no_run
/// use klient::Client;
/// use klient::election::{ElectionOptions, LeaderElector, LeaseLock};
///
/// # async fn control() {}
/// # async fn run() -> Result<(), klient::Error> {
/// let lock = LeaseLock::new(Client::infer()?, "shop", "website-controller");
/// let elector = LeaderElector::new(lock, "pod-7", ElectionOptions::default())?;
/// elector
///     .run(async |leadership| {
///         tokio::select! {
///             () = control() => {}
///             () = leadership.ended() => {} // Finish what has begun.
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
    shared: Shared,
}

/// What others may want to know of a candidate.
struct Shared {
    leader: Mutex<Option<String>>,
    /// When our lease runs out, while we lead.
    expires: Mutex<Option<Instant>>,
    leads: Gauge,
    slow_path: Counter,
}

impl<L: LeaderLock> LeaderElector<L> {
    /// A candidate of that identity, which no other one may have: such as the name of a pod.
    ///
    /// # Errors
    ///
    /// If there is no identity, or unless lease duration > renew deadline > 1.2 retry periods.
    pub fn new(lock: L, identity: impl Into<String>, options: ElectionOptions) -> Result<Self, Error> {
        let identity = identity.into();
        options.check(&identity)?;
        let registry = options.registry.clone().unwrap_or_else(|| Registry::global().clone());
        let name = lock.name();
        let labels = &[("name", name.as_str())];
        let shared = Shared {
            leader: Mutex::default(),
            expires: Mutex::default(),
            leads: registry.gauge("leader_election_master_status", "1 if this process leads.", labels),
            slow_path: registry.counter(
                "leader_election_slowpath_total",
                "How often a leader had to read the lease before it could renew it.",
                labels,
            ),
        };
        shared.leads.set(0);
        Ok(Self { lock, identity, options, shared })
    }

    /// Waits until this process leads, and then does the work; see [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// If leadership was lost before the work ended.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(Leadership) -> T) -> Result<T, Error> {
        match self.run_until(std::future::pending(), work).await? {
            Some(output) => Ok(output),
            None => Err(Error::new(ErrorKind::Canceled, "nobody asked for the end")),
        }
    }

    /// Waits until this process leads, and then does the work until it ends or leadership is lost.
    ///
    /// When `signal` is ready, candidates give up and leaders are told to stop: leadership
    /// [ends](Leadership::ended), the work goes on to its own end with the lease renewed, and then the lease is given back.
    /// Gives nothing if this process never led.
    ///
    /// If leadership is lost, the work has until half-way between the renew deadline and the end of the lease, and is
    /// dropped then. It is not polled after that moment, not even if the process was stopped in between.
    ///
    /// # Errors
    ///
    /// If leadership was lost before the work ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work and leaves the lease to run out.
    pub async fn run_until<T>(
        &self,
        signal: impl Future<Output = ()>,
        work: impl AsyncFnOnce(Leadership) -> T,
    ) -> Result<Option<T>, Error> {
        let mut signal = pin!(signal);
        let _leaving = Leaving(&self.shared);
        let mut seat = Seat::new(&self.lock, &self.identity, &self.options, &self.shared);
        let acquired = tokio::select! {
            biased;
            () = &mut signal => None,
            acquired = seat.acquire() => Some(acquired),
        };
        let Some((token, term)) = acquired else {
            // A request that was under way may have made us the leader.
            self.give_back(&mut seat).await;
            return Ok(None);
        };
        self.shared.leads.set(1);
        let (terms, receiver) = watch::channel(term);
        let mut work = pin!(guarded(work(Leadership::new(token, receiver.clone())), receiver));
        let lost = {
            let mut keeping = pin!(seat.keep(term, |term| {
                terms.send_modify(|old| *old = Term { ended: old.ended, ..term });
            }));
            let mut stopping = false;
            loop {
                // Renewals come first: after a pause of the process they know what the work does not.
                tokio::select! {
                    biased;
                    error = &mut keeping => break Err(error),
                    () = &mut signal, if !stopping => {
                        stopping = true;
                        terms.send_modify(|term| term.ended = true);
                    }
                    output = &mut work => break output.ok_or_else(too_late),
                }
            }
        };
        match lost {
            Ok(output) => {
                self.give_back(&mut seat).await;
                Ok(Some(output))
            }
            Err(error) => {
                terms.send_modify(|term| term.ended = true);
                let last_moment = terms.borrow().last_moment;
                // The work may end in an orderly way, as long as nobody else can lead.
                tokio::select! {
                    biased;
                    () = sleep_until(last_moment) => {}
                    _ = work => {}
                }
                Err(error.context("leadership was lost"))
            }
        }
    }

    async fn give_back(&self, seat: &mut Seat<'_, L>) {
        if self.options.release {
            seat.release().await;
        }
    }
}

impl<L> LeaderElector<L> {
    /// Who led when this candidate last looked.
    pub fn leader(&self) -> Option<String> {
        let leader = self.shared.leader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        leader.filter(|leader| !leader.is_empty())
    }

    /// Whether this process leads.
    pub fn is_leader(&self) -> bool {
        self.shared.expires.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// For health checks: fails if this process still believes to lead so long after its lease ran out.
    ///
    /// # Errors
    ///
    /// Then. Whoever sees it should restart the process.
    #[doc(alias = "HealthzAdaptor")]
    pub fn check(&self, tolerance: Duration) -> Result<(), Error> {
        let expires = *self.shared.expires.lock().unwrap_or_else(PoisonError::into_inner);
        match expires {
            Some(expires) if Instant::now() > expires + tolerance => {
                Err(Error::new(ErrorKind::Timeout, "the lease ran out, and the leader has not noticed"))
            }
            _ => Ok(()),
        }
    }
}

impl Shared {
    fn see(&self, leader: &str) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some(leader.to_owned());
    }

    fn lead_until(&self, expires: Option<Instant>) {
        *self.expires.lock().unwrap_or_else(PoisonError::into_inner) = expires;
    }
}

/// Notes that the election is over for us, however it ends.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leads.set(0);
        self.0.lead_until(None);
    }
}

/// Does work, but never touches it after its last moment; nothing is its outcome then.
async fn guarded<F: Future>(work: F, terms: watch::Receiver<Term>) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if Instant::now() >= terms.borrow().last_moment {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "the lease ran out while nothing could run")
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
