//! A limit against peers that send a response so slowly that it never ends.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::{Error, ErrorKind};

/// The minimum rate of data that is waited for: [`MIN_BYTES`] within a time limit.
///
/// Only time spent waiting counts, so that a reader that takes its time is not an error.
pub(in crate::client) struct MinimumRate {
    limit: Duration,
    /// The time that is left of the limit.
    left: Duration,
    received: usize,
    waiting_since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl MinimumRate {
    pub(in crate::client) fn new(limit: Duration) -> Self {
        Self { limit, left: limit, received: 0, waiting_since: None, sleep: None }
    }

    /// Notes data that has arrived.
    pub(in crate::client) fn received(&mut self, bytes: usize) {
        if let Some(since) = self.waiting_since.take() {
            // A reader that was there would have seen the end of the period: this one was away, and not the peer slow.
            self.left = self.left.checked_sub(since.elapsed()).filter(|left| !left.is_zero()).unwrap_or(self.limit);
        }
        self.received = self.received.saturating_add(bytes);
        if self.received >= MIN_BYTES {
            self.restart();
        }
    }

    /// Starts a new period, because nothing is expected at the moment.
    pub(in crate::client) fn restart(&mut self) {
        (self.left, self.received, self.waiting_since) = (self.limit, 0, None);
    }

    /// Polls while data is waited for. Ready with an error when the peer was too slow.
    pub(in crate::client) fn poll_too_slow(&mut self, what: &str, context: &mut Context<'_>) -> Poll<Error> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        // A limit too long to represent as an `Instant` is treated as infinite.
        let Some(deadline) = since.checked_add(self.left) else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(context).map(|()| {
            let (bytes, limit) = (self.received, self.limit.as_secs_f32());
            Error::new(ErrorKind::Timeout, format!("the server sent only {bytes} bytes of {what} within {limit} s"))
        })
    }
}

/// Far less than any connection transfers within the time limit of a request.
const MIN_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn poll(rate: &mut MinimumRate) -> Poll<Error> {
        rate.poll_too_slow("a list", &mut Context::from_waker(Waker::noop()))
    }

    async fn seconds(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn few_bytes_do_not_extend_the_limit() {
        let mut rate = MinimumRate::new(LIMIT);
        for _ in 0..5 {
            assert!(poll(&mut rate).is_pending());
            seconds(11).await;
            rate.received(100);
        }
        assert!(poll(&mut rate).is_pending());
        seconds(5).await;
        let Poll::Ready(error) = poll(&mut rate) else { panic!("the peer is not too slow") };
        assert_eq!(error.to_string(), "the server sent only 500 bytes of a list within 60 s");
    }

    #[tokio::test(start_paused = true)]
    async fn enough_bytes_extend_the_limit() {
        let mut rate = MinimumRate::new(LIMIT);
        for _ in 0..20 {
            assert!(poll(&mut rate).is_pending());
            seconds(59).await;
            rate.received(MIN_BYTES);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn absence_of_the_reader_does_not_count() {
        let mut rate = MinimumRate::new(LIMIT);
        assert!(poll(&mut rate).is_pending());
        seconds(3600).await;
        rate.received(1);
        assert!(poll(&mut rate).is_pending());
        seconds(59).await;
        assert!(poll(&mut rate).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn longest_limit_never_ends() {
        let mut rate = MinimumRate::new(Duration::MAX);
        assert!(poll(&mut rate).is_pending());
        seconds(3600).await;
        rate.received(1);
        assert!(poll(&mut rate).is_pending());
    }
}
