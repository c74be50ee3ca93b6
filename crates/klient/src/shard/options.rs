//! The timings of a group.

use std::{fmt, sync::Arc, time::Duration};

use super::mutant::Mutant;
use crate::{Error, ErrorKind, election::Clock, metrics::Registry, retry::random};

/// The options of a group of replicas. The default timings of Leases are those of leader election.
///
/// All replicas of a group should use the same lease duration. If they differ, the longer one counts.
///
/// ```
/// use std::time::Duration;
/// use klient::shard::ShardOptions;
///
/// let options = ShardOptions::default().settle(Duration::from_secs(30)).weight(2);
/// assert_eq!(options.lease_duration, Duration::from_secs(15));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ShardOptions {
    /// How long a replica is silent before others take its keys: 15 s by default.
    pub lease_duration: Duration,
    /// How long a replica begins reconciles without renewing its Lease: 10 s by default.
    pub renew_deadline: Duration,
    /// The time between two renewals: 2 s by default.
    pub retry_period: Duration,
    /// How long a new replica waits for its share, so that replicas that start together cause one move: 10 s by default.
    pub settle: Duration,
    /// How long reconciles may go on whose keys move to another replica: 10 s by default. Then they are dropped.
    pub drain: Duration,
    /// How long a replica that shuts down waits until other replicas have taken its keys: 20 s by default.
    pub leave: Duration,
    /// How long a replica waits until its caches show the writes of the replica that had the keys before: 10 s by default.
    pub catch_up: Duration,
    /// The share of this replica, relative to that of others: 1 by default. A replica of weight 0 gets no keys.
    pub weight: u32,
    /// The registry for metrics; the global registry by default.
    pub registry: Option<Registry>,
    pub(super) random: Arc<dyn Fn() -> f64 + Send + Sync>,
    pub(super) clock: Clock,
    /// A rule that is broken on purpose, so that tests can show that they notice.
    pub(super) mutant: Option<Mutant>,
}

impl ShardOptions {
    /// Sets how long a replica is silent before others take its keys.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long a replica begins reconciles without renewing its Lease.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the time between two renewals.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Sets how long a new replica waits for its share.
    #[must_use]
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }

    /// Sets how long reconciles may go on whose keys move to another replica.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Sets how long a replica that shuts down waits until other replicas have taken its keys.
    #[must_use]
    pub fn leave(mut self, limit: Duration) -> Self {
        self.leave = limit;
        self
    }

    /// Sets how long a replica waits until its caches show the writes of the replica that had the keys before.
    #[must_use]
    pub fn catch_up(mut self, limit: Duration) -> Self {
        self.catch_up = limit;
        self
    }

    /// Sets the share of this replica, relative to that of others.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the registry for metrics.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Checks that the timings leave room for each other.
    pub(super) fn check(&self) -> Result<(), Error> {
        let problem = if self.retry_period.is_zero() {
            "the retry period must not be zero"
        } else if self.renew_deadline < self.retry_period.saturating_mul(2) {
            "the renew deadline must be at least two retry periods"
        } else if self.last_moment().saturating_mul(8) > self.lease_duration.saturating_mul(7) {
            "the renew deadline must be at most three quarters of the lease duration"
        } else if self.lease_duration.subsec_nanos() != 0 {
            "the lease duration must be whole seconds"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Config, format!("invalid options of shards: {problem}")))
    }

    /// Returns how long after a renewal was sent work may still run: half-way between the renew deadline and the end of the lease.
    pub(super) fn last_moment(&self) -> Duration {
        if self.breaks(Mutant::WorkUntilTheEnd) {
            return self.lease_duration;
        }
        self.renew_deadline + self.lease_duration.saturating_sub(self.renew_deadline) / 2
    }

    /// Returns the timeout of one request: a second request fits before the deadline.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// Returns the time until the next attempt after a failure, with jitter.
    pub(super) fn pause(&self) -> Duration {
        self.retry_period.div_f64(2.0 + 2.0 * (self.random)())
    }

    pub(super) fn breaks(&self, rule: Mutant) -> bool {
        self.mutant == Some(rule)
    }
}

impl Default for ShardOptions {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            settle: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            leave: Duration::from_secs(20),
            catch_up: Duration::from_secs(10),
            weight: 1,
            registry: None,
            random: Arc::new(random),
            clock: Clock::default(),
            mutant: None,
        }
    }
}

impl fmt::Debug for ShardOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardOptions")
            .field("lease_duration", &self.lease_duration)
            .field("renew_deadline", &self.renew_deadline)
            .field("retry_period", &self.retry_period)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}
