//! Deadlines from durations that users choose.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any process runs.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Returns the instant after a duration, or one in the far future for a duration such as `Duration::MAX`.
pub(crate) fn after(start: Instant, duration: Duration) -> Instant {
    start.checked_add(duration.min(FOREVER)).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_after_longest_duration_is_in_the_future() {
        let now = Instant::now();
        assert!(after(now, Duration::MAX) > now + Duration::from_secs(365 * 24 * 60 * 60));
        assert_eq!(after(now, Duration::from_secs(1)), now + Duration::from_secs(1));
    }
}
