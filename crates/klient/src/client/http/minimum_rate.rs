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
            self.left = self.left.saturating_sub(since.elapsed());
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
