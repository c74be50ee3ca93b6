//! An optional limit on the rate of requests. There is none by default: servers protect themselves with status 429,
//! which the client honors.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Error, ErrorKind};

/// A token bucket that fills at a constant rate. Each request takes one token.
///
/// Requests that find the bucket empty wait in order of arrival.
pub(in crate::client) struct Throttle {
    per_second: f64,
    burst: f64,
    state: Mutex<Bucket>,
}

struct Bucket {
    /// The number of tokens, negative if requests are waiting.
    tokens: f64,
    at: Instant,
}

impl Throttle {
    pub(in crate::client) fn new(per_second: f64, burst: u32) -> Result<Self, Error> {
        if !(per_second.is_finite() && per_second > 0.0 && burst > 0) {
            let what =
                format!("invalid rate limit of {per_second} per second with bursts of {burst}: it allows no requests");
            return Err(Error::new(ErrorKind::Config, what));
        }
        let burst = f64::from(burst);
        Ok(Self { per_second, burst, state: Mutex::new(Bucket { tokens: burst, at: Instant::now() }) })
    }

    /// Waits for a token and returns how long that took.
    ///
    /// # Cancel safety
    ///
    /// A token that is not used because the future is dropped is returned to the bucket.
    pub(in crate::client) async fn take(&self) -> Duration {
        let wait = self.reserve();
        if !wait.is_zero() {
            let unused = ReturnToken { throttle: self };
            tokio::time::sleep(wait).await;
            std::mem::forget(unused);
        }
        wait
    }

    fn reserve(&self) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let earned = now.duration_since(state.at).as_secs_f64() * self.per_second;
        state.tokens = (state.tokens + earned).min(self.burst) - 1.0;
        state.at = now;
        if state.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-state.tokens / self.per_second) }
    }
}

/// A guard that returns a token when it is dropped.
struct ReturnToken<'a> {
    throttle: &'a Throttle,
}

impl Drop for ReturnToken<'_> {
    fn drop(&mut self) {
        self.throttle.state.lock().unwrap_or_else(PoisonError::into_inner).tokens += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn throttle_allows_a_burst_and_then_a_constant_rate() {
        let throttle = Throttle::new(10.0, 3).unwrap();
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(throttle.take().await, Duration::ZERO);
        }
        for number in 1..=3 {
            throttle.take().await;
            let passed = start.elapsed().as_secs_f64();
            assert!((passed - f64::from(number) / 10.0).abs() < 0.01, "{passed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn canceled_wait_returns_its_token() {
        let throttle = Throttle::new(1.0, 1).unwrap();
        throttle.take().await;
        for _ in 0..5 {
            let short = tokio::time::timeout(Duration::from_millis(1), throttle.take());
            assert!(short.await.is_err());
        }
        let start = Instant::now();
        throttle.take().await;
        assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[test]
    fn limit_that_allows_no_requests_is_rejected() {
        for (per_second, burst) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (1.0, 0)] {
            assert!(Throttle::new(per_second, burst).is_err(), "{per_second} {burst}");
        }
    }
}
