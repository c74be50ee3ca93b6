//! The futures of a queue: for the next key, and for its end.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    QueueInner, WorkItem, WorkQueue,
    core::{Drainer, Getter},
};

/// A future for the next key of a [`WorkQueue`].
///
/// Each waiting future looks again when the first delayed key becomes ready. Without a waiting future, no task and no timer
/// runs.
///
/// # Cancel safety
///
/// Dropping the future loses neither a key nor a wake-up: a key leaves the queue only as the future's output.
#[must_use = "futures do nothing unless polled"]
pub struct Get<'a, T> {
    queue: &'a WorkQueue<T>,
    getter: Getter,
    timer: Option<Pin<Box<Sleep>>>,
}

/// A future for the end of a [`WorkQueue`] that was shut down.
///
/// # Cancel safety
///
/// Dropping the future does not undo the shutdown.
#[must_use = "futures do nothing unless polled"]
pub struct Drain<'a, T> {
    queue: &'a Arc<QueueInner<T>>,
    drainer: Drainer,
}

impl<'a, T> Get<'a, T> {
    #[inline]
    pub(super) fn new(queue: &'a WorkQueue<T>) -> Self {
        Self { queue, getter: Getter::default(), timer: None }
    }
}

impl<'a, T> Drain<'a, T> {
    pub(super) fn new(queue: &'a Arc<QueueInner<T>>) -> Self {
        Self { queue, drainer: queue.core.start_draining() }
    }
}

impl<T: Clone> Future for Get<'_, T> {
    type Output = Option<WorkItem<T>>;

    // Always inlined: returning an item through memory takes a third of the time of a turn.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (queue, timer) = (this.queue, &mut this.timer);
        let hand_out = |item, promoted| queue.hand_out(item, promoted);
        let waker = context.waker();
        queue.inner.core.look(&mut this.getter, Some(waker), hand_out, |deadline, promoted| {
            queue.inner.count_adds(promoted);
            wait(timer, deadline, waker);
        })
    }
}

/// Arranges for the waker to be called at the deadline.
#[cold]
fn wait(timer: &mut Option<Pin<Box<Sleep>>>, deadline: Option<Instant>, waker: &Waker) {
    let Some(deadline) = deadline else {
        *timer = None;
        return;
    };
    let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    if timer.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
        // The deadline has passed already.
        waker.wake_by_ref();
    }
}

impl<T> Future for Drain<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.queue.core.poll_drained(&mut this.drainer, context)
    }
}

impl<T> Drop for Get<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.queue.inner.core.stop_getting(&mut self.getter);
    }
}

impl<T> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        self.queue.core.stop_draining(&mut self.drainer);
    }
}

impl<T> fmt::Debug for Get<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("timed", &self.timer.is_some()).finish()
    }
}

impl<T> fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}
