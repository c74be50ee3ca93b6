//! How long everything takes.

use std::{fmt, sync::Arc, time::Duration};

use crate::{Error, ErrorKind, metrics::Registry, retry::random};

/// The times of an election. Those that are not set are client-go's.
///
/// ```
/// use std::time::Duration;
/// use klient::election::ElectionOptions;
///
/// let options = ElectionOptions::default().lease_duration(Duration::from_secs(30)).renew_deadline(Duration::from_secs(20));
/// assert_eq!(options.retry_period, Duration::from_secs(2));
/// ```
#[doc(alias = "LeaderElectionConfig")]
#[derive(Clone)]
#[non_exhaustive]
pub struct ElectionOptions {
    /// How long others wait after the last sign of a leader: 15 s.
    pub lease_duration: Duration,
    /// How long a leader goes on without having renewed: 10 s. Then its work is told to stop.
    pub renew_deadline: Duration,
    /// How often a leader renews, and the longest time between two looks of a candidate: 2 s.
    pub retry_period: Duration,
    /// Whether the lease is given back when the work has ended, so that another one can begin at once.
    pub release: bool,
    /// Where metrics are kept; the global registry unless this is set.
    pub registry: Option<Registry>,
    pub(super) random: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl ElectionOptions {
    /// Sets how long others wait after the last sign of a leader.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long a leader goes on without having renewed.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets how often a leader renews.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Leaves the lease to run out when the work has ended.
    #[must_use]
    pub fn keep_lease(mut self) -> Self {
        self.release = false;
        self
    }

    /// Sets where metrics are kept.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Fails if the times do not leave room for each other.
    pub(super) fn check(&self, identity: &str) -> Result<(), Error> {
        let problem = if identity.is_empty() {
            "a candidate needs an identity"
        } else if self.retry_period.is_zero() {
            "the retry period must not be zero"
        } else if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            "the renew deadline must be longer than 1.2 retry periods"
        } else if self.lease_duration <= self.renew_deadline {
            "the lease duration must be longer than the renew deadline"
        } else if self.lease_duration.subsec_nanos() != 0 {
            "the lease duration must be whole seconds"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Config, problem))
    }

    /// When a candidate looks again: never later than the retry period, and not all candidates at once.
    pub(super) fn pause(&self) -> Duration {
        self.retry_period.div_f64(1.0 + JITTER * (self.random)())
    }

    /// How long one request may take: a second one fits before the deadline.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// How long after a renewal began work may still run at all: half-way between its deadline and what others wait.
    pub(super) fn last_moment(&self) -> Duration {
        self.renew_deadline + (self.lease_duration - self.renew_deadline) / 2
    }
}

impl Default for ElectionOptions {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release: true,
            registry: None,
            random: Arc::new(random),
        }
    }
}

impl fmt::Debug for ElectionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionOptions")
            .field("lease_duration", &self.lease_duration)
            .field("renew_deadline", &self.renew_deadline)
            .field("retry_period", &self.retry_period)
            .field("release", &self.release)
            .finish_non_exhaustive()
    }
}

const JITTER: f64 = 1.2;
