//! How long a key waits before another try.
//!
//! The queue counts the failures of each key and forgets them; a limiter turns a count into a delay. So most limiters have no
//! state, and none can leak. In client-go: `util/workqueue/default_rate_limiters.go`.

use std::{fmt, sync::Mutex, sync::PoisonError, time::Duration};

use tokio::time::Instant;

/// Says how long a key waits before another try.
///
/// ```
/// use std::time::Duration;
/// use klient::workqueue::{ExponentialBackoff, MaxOf, RateLimiter, TokenBucket};
///
/// /// System keys never wait for long.
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
    /// How long `key` waits which has failed so many times before this one.
    ///
    /// It is called once for each failure, so that it may count them.
    #[doc(alias = "When")]
    fn delay(&self, key: &T, failures: u32) -> Duration;
}

/// Twice as long with every failure of the key, from 5 ms up to 1000 s.
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

/// One delay for the first failures of a key, another one for all further ones.
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

/// So many tries per second in all, whatever their keys, and so many at once after a pause.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use klient::workqueue::{RateLimiter, TokenBucket};
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
    /// Below zero when tries were promised that are still to come.
    tokens: f64,
    at: Option<Instant>,
}

/// The longest delay of several limiters.
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

/// The delays of another limiter, but none that is longer than this.
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
    /// From `base` up to `max`.
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
        // Nothing is as long as what no number can hold, except nothing doubled.
        let longest = if self.base.is_zero() { Duration::ZERO } else { self.max };
        delay.unwrap_or(longest).min(self.max)
    }
}

impl FastSlow {
    /// `fast` for the first `fast_attempts` failures, then `slow`.
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
    /// `per_second` tries in the long run, `burst` at once. A rate that is no positive number is the lowest one.
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
    /// Of none: no delay.
    pub const fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// And of this one.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }

    /// What controllers use: exponential per key, and ten tries per second in all after the first hundred.
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
        // Each is asked, since each may count.
        self.limiters.iter().map(|limiter| limiter.delay(key, failures)).max().unwrap_or_default()
    }
}

impl<L> MaxWait<L> {
    /// `inner`, up to `max`.
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

/// One in three years: less makes delays that no clock can hold.
const LOWEST_RATE: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(limiter: &impl RateLimiter<&'static str>, failures: &[u32]) -> Vec<u128> {
        failures.iter().map(|failures| limiter.delay(&"web", *failures).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_out_its_burst_and_then_its_rate() {
        let bucket = TokenBucket::new(2.0, 3);
        assert_eq!(millis(&bucket, &[0; 5]), [0, 0, 0, 500, 1000]);
        // What was promised is made up for first.
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(millis(&bucket, &[0; 2]), [0, 500]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_never_holds_more_than_its_burst() {
        let bucket = TokenBucket::new(100.0, 2);
        assert_eq!(millis(&bucket, &[0]), [0]);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(millis(&bucket, &[0; 4]), [0, 0, 10, 20]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_limiter_of_several_is_asked_each_time() {
        let limiter =
            MaxOf::new().and(FastSlow::new(Duration::from_secs(9), Duration::ZERO, 2)).and(TokenBucket::new(1.0, 1));
        assert_eq!(millis(&limiter, &[0, 1, 2]), [9000, 9000, 2000]);
    }

    #[tokio::test(start_paused = true)]
    async fn controllers_wait_longer_per_key_and_never_try_too_often_in_all() {
        let limiter = MaxOf::controller();
        assert_eq!(millis(&limiter, &[0, 1, 8]), [5, 10, 1280]);
        for _ in 3..100 {
            limiter.delay(&"other", 0);
        }
        assert_eq!(millis(&limiter, &[0, 0, 8]), [100, 200, 1280]);
    }

    proptest! {
        #[test]
        fn an_exponential_delay_never_overflows_shrinks_or_passes_its_limit(base: u64, max: u64, failures: u32) {
            let (base, max) = (Duration::from_nanos(base), Duration::from_nanos(max));
            let backoff = ExponentialBackoff::new(base, max);
            let (now, then) = (backoff.delay(&(), failures), backoff.delay(&(), failures.saturating_add(1)));
            prop_assert!(now <= then && then <= max);
        }

        #[test]
        fn no_rate_makes_a_bucket_panic(rate: f64, burst: u32) {
            let bucket = TokenBucket::new(rate, burst);
            for _ in 0..3 {
                bucket.take();
            }
        }
    }
}
