//! The leaders of an election, as a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::sync::watch;

/// A stream of the leaders of an election: the current one first, and then each new one. `None` means that no leader is known.
///
/// Of changes in quick succession, only the last one may be returned. The stream ends when its
/// [`LeaderElector`](super::LeaderElector) is dropped. It holds no lease and makes no requests of its own.
pub struct LeaderChanges {
    leader: watch::Receiver<Option<String>>,
    /// The wait for the next change, with a receiver of its own. Absent before the first leader was returned.
    waiting: Option<Waiting>,
}

type Waiting = Pin<Box<dyn Future<Output = bool> + Send + Sync>>;

impl LeaderChanges {
    pub(super) fn new(leader: watch::Receiver<Option<String>>) -> Self {
        Self { leader, waiting: None }
    }

    /// Returns the current leader, without waiting.
    pub fn current(&self) -> Option<String> {
        self.leader.borrow().clone()
    }

    /// Waits for the next leader. Returns `None` when the [`LeaderElector`](super::LeaderElector) was dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<Option<String>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the current leader, and begins to wait for the next one.
    fn take(&mut self) -> Option<String> {
        let current = self.leader.borrow_and_update().clone();
        let mut receiver = self.leader.clone();
        self.waiting = Some(Box::pin(async move { receiver.changed().await.is_ok() }));
        current
    }
}

impl Stream for LeaderChanges {
    type Item = Option<String>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(Some(self.take())) };
        match waiting.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(true) => Poll::Ready(Some(self.take())),
            Poll::Ready(false) => {
                // Polled again, the stream ends again.
                self.waiting = Some(Box::pin(std::future::ready(false)));
                Poll::Ready(None)
            }
        }
    }
}

impl fmt::Debug for LeaderChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderChanges").field("current", &self.current()).finish_non_exhaustive()
    }
}
