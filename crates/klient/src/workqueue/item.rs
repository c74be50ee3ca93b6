//! A key that is in process.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use super::{Shared, state::Delay};

/// A key that was handed out. Nobody else gets the same key until this is dropped.
///
/// Dropping it ends the turn: "done" cannot be forgotten, not even by a panic or a dropped future. What happens to the key
/// beyond that is said with [`forget`](Self::forget), [`retry`](Self::retry) or [`retry_after`](Self::retry_after).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use klient::workqueue::WorkQueue;
///
/// let queue = WorkQueue::new();
/// queue.add("shop/web");
/// let item = queue.get().await.unwrap();
/// assert_eq!((*item, item.failures()), ("shop/web", 0));
/// item.retry();
///
/// let item = queue.get().await.unwrap(); // 5 ms later
/// assert_eq!(item.failures(), 1);
/// item.forget();
/// # }
/// ```
#[must_use = "dropping an item ends its turn"]
#[doc(alias = "Done")]
pub struct WorkItem<T> {
    queue: Arc<Shared<T>>,
    key: T,
    /// [`ENDED`] once the turn has ended. A flag of its own would be the place where the compiler keeps "no item" and "not
    /// yet" as well, in the midst of the rest, and every move of an item would be in unaligned pieces around it.
    slot: u32,
    failures: u32,
    /// A whole word: bytes beside a lone one are copied with it, and the processor waits for them then.
    priority: i64,
}

/// No slot has this number: there is no room for so many.
const ENDED: u32 = u32::MAX;

impl<T> WorkItem<T> {
    #[inline]
    pub(super) fn new(queue: Arc<Shared<T>>, key: T, slot: u32, priority: i8, failures: u32) -> Self {
        Self { queue, key, slot, failures, priority: priority.into() }
    }

    /// The key.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// The priority that it was handed out with.
    pub fn priority(&self) -> i8 {
        self.priority as i8
    }

    /// How often the key has failed since it was forgotten.
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Ends the turn as a success: failures are forgotten, and so is another try that is due to one.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        let slot = self.end();
        self.queue.note_work(self.queue.core.done_and_forgive(slot));
    }

    /// Ends the turn as a failure: the key comes again with the same priority, when the rate limiter says.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        let before = self.queue.core.fail(self.slot);
        let delay = self.queue.limiter.delay(&self.key, before);
        self.again(delay, true, false);
    }

    /// Ends the turn as a success, and has the key come again after this time with the same priority, or earlier if that is
    /// due already.
    #[doc(alias = "RequeueAfter")]
    pub fn retry_after(self, delay: Duration) {
        self.again(delay, false, false);
    }

    /// As [`retry_after`](Self::retry_after), but an earlier time that was due is given up.
    pub fn reschedule(self, delay: Duration) {
        self.again(delay, false, true);
    }

    fn again(mut self, delay: Duration, backoff: bool, replace: bool) {
        let slot = self.end();
        self.queue.count_retry();
        let deadline = self.queue.deadline(delay);
        let delay = Delay { deadline, priority: self.priority(), backoff, replace };
        self.queue.note_work(self.queue.core.done_and_delay(slot, delay));
    }

    /// Says that dropping this ends nothing any more; gives the slot whose turn is to be ended.
    fn end(&mut self) -> u32 {
        std::mem::replace(&mut self.slot, ENDED)
    }
}

impl<T> Drop for WorkItem<T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot != ENDED {
            self.queue.note_work(self.queue.core.done(self.slot));
        }
    }
}

impl<T> Deref for WorkItem<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.key
    }
}

impl<T: fmt::Debug> fmt::Debug for WorkItem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkItem").field("key", &self.key).field("failures", &self.failures).finish()
    }
}
