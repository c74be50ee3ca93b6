//! The timings of an election.

use std::{fmt, sync::Arc, time::Duration};

use super::clock::Clock;
use crate::{Error, ErrorKind, metrics::Registry, retry::random};

/// The options of a leader election. The default timings are client-go's.
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
    /// How long other candidates wait after they last saw the lease renewed: 15 s by default.
    pub lease_duration: Duration,
    /// How long a leader goes on without renewing its lease: 10 s by default. Then its leadership ends.
    pub renew_deadline: Duration,
    /// The time between two renewals, and the longest time between two attempts of a candidate: 2 s by default.
    pub retry_period: Duration,
    /// Whether the lease is released when the work has ended, so that another candidate can lead at once.
    pub release: bool,
    /// The registry for metrics; the global registry by default.
    pub registry: Option<Registry>,
    pub(super) random: Arc<dyn Fn() -> f64 + Send + Sync>,
    pub(super) clock: Clock,
}

impl ElectionOptions {
    /// Sets how long other candidates wait after they last saw the lease renewed.
    #[doc(alias = "LeaseDuration")]
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long a leader goes on without renewing its lease.
    #[doc(alias = "RenewDeadline")]
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the time between two renewals.
    #[doc(alias = "RetryPeriod")]
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Lets the lease expire when the work has ended, instead of releasing it.
    #[doc(alias = "ReleaseOnCancel")]
    #[must_use]
    pub fn keep_lease(mut self) -> Self {
        self.release = false;
        self
    }

    /// Sets the registry for metrics.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Checks that the timings leave room for each other.
    pub(super) fn check(&self, identity: &str) -> Result<(), Error> {
        let problem = if identity.is_empty() {
            "the identity must not be empty"
        } else if self.retry_period.is_zero() {
            "the retry period must not be zero"
        } else if self.renew_deadline.as_secs_f64() <= self.retry_period.as_secs_f64() * JITTER {
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

    /// Returns the time until a candidate's next attempt: at most the retry period, with jitter so that candidates spread out.
    pub(super) fn pause(&self) -> Duration {
        self.retry_period.div_f64(1.0 + JITTER * (self.random)())
    }

    /// Returns the timeout of one request: a second request fits before the deadline.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// Returns how long after a renewal began its work may still run: half-way between the renew deadline and the end of the
    /// lease.
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
            clock: Clock::default(),
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
