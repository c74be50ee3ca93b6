//! How long to wait before another try.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
/// Trouble longer ago than this does not count.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// Waits of 0.8, 1.6, 3.2 s and so on up to 30 s, each up to twice as long at random.
#[derive(Default)]
pub(super) struct Pace {
    next: Option<Duration>,
    last: Option<Instant>,
}

impl Pace {
    /// The next wait; at least as long as the server asked for.
    pub(super) fn delay(&mut self, asked: Option<Duration>) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > FORGET_AFTER) {
            self.next = None;
        }
        self.last = Some(now);
        let base = self.next.unwrap_or(FIRST);
        self.next = Some((base * 2).min(LONGEST));
        base.mul_f64(1.0 + crate::retry::random()).max(asked.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_half_a_minute_and_are_forgotten() {
        let mut pace = Pace::default();
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let delay = pace.delay(None).as_secs_f64();
            assert!((base..base * 2.0).contains(&delay), "{delay} is not about {base}");
        }
        assert_eq!(pace.delay(Some(Duration::from_secs(100))), Duration::from_secs(100));
        tokio::time::advance(FORGET_AFTER + Duration::from_secs(1)).await;
        assert!(pace.delay(None) < FIRST * 2);
    }
}
