//! Rate limiters: how long a key waits before it is retried.
//!
//! The queue counts the failures of each key and forgets them; a limiter turns a count into a delay. So most limiters have no
//! state, and none of them can leak memory. In client-go: `util/workqueue/default_rate_limiters.go`.

use std::{fmt, sync::Mutex, sync::PoisonError, time::Duration};

use tokio::time::Instant;

/// A policy for how long a key waits before it is retried.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{ExponentialBackoff, RateLimiter};
///
/// /// Retries system keys after one second at the latest.
/// struct SystemFirst(ExponentialBackoff);
///
/// impl RateLimiter<String> for SystemFirst {
///     fn delay(&self, key: &String, failures: u32) -> Duration {
///         let limit = if key.starts_with("kube-system/") { Duration::from_secs(1) } else { Duration::MAX };
///         self.0.delay(key, failures).min(limit)
///     }
/// }
///
/// let limiter = SystemFirst(ExponentialBackoff::default());
/// assert_eq!(limiter.delay(&"shop/web".to_owned(), 3), Duration::from_millis(40));
/// assert_eq!(limiter.delay(&"kube-system/dns".to_owned(), 30), Duration::from_secs(1));
/// ```
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send + Sync {
    /// Returns how long `key` waits. `failures` is the number of its failures before this one.
    ///
    /// It is called once for each failure, so that a limiter may count them.
    #[doc(alias = "When")]
    fn delay(&self, key: &T, failures: u32) -> Duration;
}

/// A limiter that doubles the delay with every failure of a key: by default from 5 ms up to 1000 s.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{ExponentialBackoff, RateLimiter};
///
/// let backoff = ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(1000));
/// let delays = [0, 1, 2, 17, 18, 4000].map(|failures| backoff.delay(&"web", failures).as_millis());
/// assert_eq!(delays, [5, 10, 20, 655_360, 1_000_000, 1_000_000]);
/// ```
#[doc(alias = "ItemExponentialFailureRateLimiter")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBackoff {
    base: Duration,
    max: Duration,
}

/// A limiter with one delay for the first failures of a key, and another one for all further failures.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{FastSlow, RateLimiter};
///
/// let limiter = FastSlow::new(Duration::from_millis(10), Duration::from_secs(60), 3);
/// assert_eq!([0, 2, 3].map(|failures| limiter.delay(&"web", failures).as_millis()), [10, 10, 60_000]);
/// ```
#[doc(alias = "ItemFastSlowRateLimiter")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
}

/// A limiter of the total retries per second, of all keys together, that allows bursts.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use klient::workqueue::{TokenBucket, RateLimiter};
///
/// let bucket = TokenBucket::new(10.0, 2);
/// let delays = [(); 4].map(|()| bucket.delay(&"web", 0).as_millis());
/// assert_eq!(delays, [0, 0, 100, 200]);
/// # }
/// ```
#[doc(alias = "BucketRateLimiter")]
pub struct TokenBucket {
    per_second: f64,
    burst: f64,
    level: Mutex<Level>,
}

struct Level {
    /// Negative while retries are reserved that are still to come.
    tokens: f64,
    at: Option<Instant>,
}

/// A limiter that returns the longest delay of several limiters.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{ExponentialBackoff, FastSlow, MaxOf, RateLimiter};
///
/// let limiter = MaxOf::new()
///     .and(ExponentialBackoff::default())
///     .and(FastSlow::new(Duration::from_millis(15), Duration::from_millis(30), 1));
/// assert_eq!([0, 1, 3].map(|failures| limiter.delay(&"web", failures).as_millis()), [15, 30, 40]);
/// ```
#[doc(alias = "MaxOfRateLimiter")]
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

/// A limiter that caps the delays of another limiter.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{ExponentialBackoff, MaxWait, RateLimiter};
///
/// let limiter = MaxWait::new(ExponentialBackoff::default(), Duration::from_secs(60));
/// assert_eq!(limiter.delay(&"web", 100), Duration::from_secs(60));
/// ```
#[doc(alias = "WithMaxWaitRateLimiter")]
#[derive(Clone, Copy, Debug)]
pub struct MaxWait<L> {
    inner: L,
    max: Duration,
}

impl ExponentialBackoff {
    /// Creates a limiter with delays from `base` up to `max`.
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl Default for ExponentialBackoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<T> RateLimiter<T> for ExponentialBackoff {
    fn delay(&self, _key: &T, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures);
        let delay = factor.and_then(|factor| self.base.checked_mul(factor));
        // A factor that overflows means the longest delay, except for a delay of zero.
        let longest = if self.base.is_zero() { Duration::ZERO } else { self.max };
        delay.unwrap_or(longest).min(self.max)
    }
}

impl FastSlow {
    /// Creates a limiter that returns `fast` for the first `fast_attempts` failures, then `slow`.
    pub const fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts }
    }
}

impl<T> RateLimiter<T> for FastSlow {
    fn delay(&self, _key: &T, failures: u32) -> Duration {
        if failures < self.fast_attempts { self.fast } else { self.slow }
    }
}

impl TokenBucket {
    /// Creates a limiter that allows `per_second` retries in the long run, and `burst` at once. A rate that is not positive
    /// counts as the lowest rate.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        let per_second = if per_second > LOWEST_RATE { per_second } else { LOWEST_RATE };
        Self { per_second, burst, level: Mutex::new(Level { tokens: burst, at: None }) }
    }

    fn take(&self) -> Duration {
        let now = Instant::now();
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = level.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        level.at = Some(now);
        level.tokens = (level.tokens + passed.as_secs_f64() * self.per_second).min(self.burst) - 1.0;
        let missing = (-level.tokens).max(0.0);
        Duration::try_from_secs_f64(missing / self.per_second).unwrap_or(Duration::MAX)
    }
}

impl<T> RateLimiter<T> for TokenBucket {
    fn delay(&self, _key: &T, _failures: u32) -> Duration {
        self.take()
    }
}

impl<T> MaxOf<T> {
    /// Creates a limiter without members, which returns no delay.
    pub const fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// Adds a limiter.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }

    /// Creates the default limiter of controllers: exponential per key, and ten retries per second in total after a burst of 100.
    #[doc(alias = "DefaultTypedControllerRateLimiter")]
    pub fn controller() -> Self {
        Self::new().and(ExponentialBackoff::default()).and(TokenBucket::new(10.0, 100))
    }
}

impl<T> Default for MaxOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn delay(&self, key: &T, failures: u32) -> Duration {
        // All limiters are called, since each may count.
        self.limiters.iter().map(|limiter| limiter.delay(key, failures)).max().unwrap_or_default()
    }
}

impl<L> MaxWait<L> {
    /// Creates a limiter that returns the delays of `inner`, up to `max`.
    pub const fn new(inner: L, max: Duration) -> Self {
        Self { inner, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for MaxWait<L> {
    fn delay(&self, key: &T, failures: u32) -> Duration {
        self.inner.delay(key, failures).min(self.max)
    }
}

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket").field("per_second", &self.per_second).field("burst", &self.burst).finish()
    }
}

impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish()
    }
}

/// One retry in three years: lower rates make delays that do not fit into an `Instant`.
const LOWEST_RATE: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(limiter: &impl RateLimiter<&'static str>, failures: &[u32]) -> Vec<u128> {
        failures.iter().map(|failures| limiter.delay(&"web", *failures).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn token_bucket_allows_burst_and_then_rate() {
        let bucket = TokenBucket::new(2.0, 3);
        assert_eq!(millis(&bucket, &[0; 5]), [0, 0, 0, 500, 1000]);
        // Reserved retries are paid for first.
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(millis(&bucket, &[0; 2]), [0, 500]);
    }

    #[tokio::test(start_paused = true)]
    async fn token_bucket_never_exceeds_burst() {
        let bucket = TokenBucket::new(100.0, 2);
        assert_eq!(millis(&bucket, &[0]), [0]);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(millis(&bucket, &[0; 4]), [0, 0, 10, 20]);
    }

    #[tokio::test(start_paused = true)]
    async fn max_of_calls_every_limiter_each_time() {
        let limiter =
            MaxOf::new().and(FastSlow::new(Duration::from_secs(9), Duration::ZERO, 2)).and(TokenBucket::new(1.0, 1));
        assert_eq!(millis(&limiter, &[0, 1, 2]), [9000, 9000, 2000]);
    }

    #[tokio::test(start_paused = true)]
    async fn controller_limiter_limits_per_key_and_in_total() {
        let limiter = MaxOf::controller();
        assert_eq!(millis(&limiter, &[0, 1, 8]), [5, 10, 1280]);
        for _ in 3..100 {
            limiter.delay(&"other", 0);
        }
        assert_eq!(millis(&limiter, &[0, 0, 8]), [100, 200, 1280]);
    }

    proptest! {
        #[test]
        fn exponential_delay_never_shrinks_or_exceeds_max(base: u64, max: u64, failures: u32) {
            let (base, max) = (Duration::from_nanos(base), Duration::from_nanos(max));
            let backoff = ExponentialBackoff::new(base, max);
            let (now, then) = (backoff.delay(&(), failures), backoff.delay(&(), failures.saturating_add(1)));
            prop_assert!(now <= then && then <= max);
        }

        #[test]
        fn token_bucket_never_panics(rate: f64, burst: u32) {
            let bucket = TokenBucket::new(rate, burst);
            for _ in 0..3 {
                bucket.take();
            }
        }
    }
}
