//! The end of watches on connections with replaced certificates.
//!
//! A watch may last for hours, and a connection keeps the identity that it was opened with. Once there are newer
//! certificates, a watch ends between two events, so that its reader resumes on a new connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// A check whether the connection of a response has outdated certificates, stored as an extension of the response.
#[derive(Clone)]
pub(in crate::client) struct Rotation {
    is_outdated: Arc<dyn Fn() -> bool + Send + Sync>,
    interval: Duration,
}

impl Rotation {
    pub(super) fn new(interval: Duration, is_outdated: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_outdated: Arc::new(is_outdated), interval: interval.max(MIN_INTERVAL) }
    }
}

/// The periodic check of one response.
pub(in crate::client) struct RotationCheck {
    rotation: Rotation,
    next: Option<Pin<Box<Sleep>>>,
}

impl RotationCheck {
    pub(in crate::client) fn new(rotation: Rotation) -> Self {
        Self { rotation, next: None }
    }

    /// Polls while nothing arrives. Ready once the connection is outdated.
    pub(in crate::client) fn poll_outdated(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self { rotation, next } = self;
        let next = next.get_or_insert_with(|| Box::pin(sleep(rotation.interval)));
        loop {
            ready!(next.as_mut().poll(context));
            if (rotation.is_outdated)() {
                return Poll::Ready(());
            }
            // An interval too long to represent as an `Instant` is treated as infinite.
            let Some(later) = Instant::now().checked_add(rotation.interval) else { return Poll::Pending };
            next.as_mut().reset(later);
        }
    }
}

const MIN_INTERVAL: Duration = Duration::from_millis(100);
