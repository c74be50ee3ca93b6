//! Delays before retries.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
/// The time without a failure after which delays start over.
const RESET_AFTER: Duration = Duration::from_secs(120);

/// Delays of 0.8, 1.6, 3.2 s and so on up to 30 s, each multiplied by a random factor between one and two.
#[derive(Default)]
pub(super) struct Backoff {
    next: Option<Duration>,
    last: Option<Instant>,
}

impl Backoff {
    /// Starts over with the shortest delay.
    pub(super) fn reset(&mut self) {
        self.next = None;
    }

    /// Returns the next delay, which is at least the one that the server requested.
    pub(super) fn delay(&mut self, requested: Option<Duration>) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > RESET_AFTER) {
            self.next = None;
        }
        self.last = Some(now);
        let base = self.next.unwrap_or(FIRST);
        self.next = Some((base * 2).min(LONGEST));
        base.mul_f64(1.0 + crate::retry::random()).max(requested.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_to_30_seconds_and_resets() {
        let mut backoff = Backoff::default();
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let delay = backoff.delay(None).as_secs_f64();
            assert!((base..base * 2.0).contains(&delay), "{delay} is not between {base} and its double");
        }
        assert_eq!(backoff.delay(Some(Duration::from_secs(100))), Duration::from_secs(100));
        tokio::time::advance(RESET_AFTER + Duration::from_secs(1)).await;
        assert!(backoff.delay(None) < FIRST * 2);
    }
}
