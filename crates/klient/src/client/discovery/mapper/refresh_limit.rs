//! A rate limit for discoveries that are triggered by unknown names.
//!
//! A few in a row are allowed, for a user that has just installed a resource. After that, they are spaced out, for a
//! program that keeps looking up a resource that does not exist.

use std::{sync::Mutex, time::Duration};

use tokio::time::Instant;

/// The permits for new discoveries.
#[derive(Debug)]
pub(super) struct RefreshLimit {
    left: Mutex<Left>,
}

#[derive(Debug)]
struct Left {
    permits: u32,
    since: Instant,
}

impl RefreshLimit {
    pub(super) fn new() -> Self {
        Self { left: Mutex::new(Left { permits: AT_ONCE, since: Instant::now() }) }
    }

    /// Takes a permit, if any is left.
    pub(super) fn permit(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let gained = left.since.elapsed().as_secs() / EVERY.as_secs();
        if gained > 0 {
            left.permits = left.permits.saturating_add(u32::try_from(gained).unwrap_or(u32::MAX)).min(AT_ONCE);
            // A partial interval still counts.
            left.since = if left.permits == AT_ONCE { Instant::now() } else { left.since + EVERY * gained as u32 };
        }
        let Some(permits) = left.permits.checked_sub(1) else { return false };
        if left.permits == AT_ONCE {
            left.since = Instant::now();
        }
        left.permits = permits;
        true
    }
}

const AT_ONCE: u32 = 5;
const EVERY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permits_allow_a_burst_and_then_one_per_interval() {
        let misses = RefreshLimit::new();
        let taken = || std::iter::repeat_with(|| misses.permit()).take_while(|permit| *permit).count();
        assert_eq!(taken(), 5);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(taken(), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(taken(), 1);
        tokio::time::advance(Duration::from_secs(25)).await;
        assert_eq!(taken(), 2);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(taken(), 1);
        tokio::time::advance(Duration::from_secs(1_000_000)).await;
        assert_eq!(taken(), 5);
    }
}
