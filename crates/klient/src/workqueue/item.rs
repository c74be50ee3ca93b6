//! A key in process.

use std::{borrow::Borrow, fmt, ops::Deref, time::Duration};

use super::{QueueInner, WorkQueue, state::Delay};

/// A key in process. The same key is not handed out again until the item is dropped.
///
/// Dropping an item ends its turn, even in a panic or a dropped future: "done" cannot be forgotten. To choose what happens to the
/// key next, end the turn with one of these methods:
///
/// | method | counts as | the key is handed out again |
/// |---|---|---|
/// | [`forget`](Self::forget) | success | when it is added |
/// | [`requeue_after`](Self::requeue_after) | success | after a delay |
/// | [`retry`](Self::retry) | failure | after the rate limiter's delay |
/// | [`retry_after`](Self::retry_after) | failure | after a delay |
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use klient::WorkQueue;
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
///
/// The item that [`get`](WorkQueue::get) returns borrows the queue. [`into_owned`](Self::into_owned) returns an item that can be
/// moved to another task.
#[must_use = "dropping an item ends its turn"]
#[doc(alias = "Done")]
pub struct WorkItem<T, Q: Borrow<WorkQueue<T>> = WorkQueue<T>> {
    queue: Q,
    key: T,
    /// [`ENDED`] once the turn has ended. With a separate flag, the compiler would store the tags of `Option` and `Poll` in that
    /// flag, and move the rest of an item in unaligned pieces around it.
    slot: u32,
    failures: u32,
    /// A whole word: a single byte would be copied together with padding, which stalls the processor.
    priority: i64,
}

/// The slot of an item whose turn has ended. No slot has this number: that many do not fit into memory.
const ENDED: u32 = u32::MAX;

impl<T, Q: Borrow<WorkQueue<T>>> WorkItem<T, Q> {
    #[inline]
    pub(super) fn new(queue: Q, key: T, slot: u32, priority: i8, failures: u32) -> Self {
        Self { queue, key, slot, failures, priority: priority.into() }
    }

    /// Returns the key.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns the priority of this turn.
    pub fn priority(&self) -> i8 {
        self.priority as i8
    }

    /// Returns the number of failures of the key since it was last forgotten.
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the same item with its own handle to the queue.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let queue = klient::WorkQueue::new();
    /// # queue.add("shop/web");
    /// # queue.shut_down();
    /// while let Some(item) = queue.get().await {
    ///     let item = item.into_owned();
    ///     tokio::spawn(async move {
    ///         println!("{}", item.key());
    ///         item.forget();
    ///     });
    /// }
    /// # queue.shut_down_and_drain().await;
    /// # }
    /// ```
    pub fn into_owned(mut self) -> WorkItem<T>
    where
        T: Clone,
    {
        let (queue, key) = (self.queue.borrow().clone(), self.key.clone());
        let (failures, priority) = (self.failures, self.priority);
        WorkItem { queue, key, slot: self.end(), failures, priority }
    }

    /// Ends the turn as a success: forgets the failures of the key, and cancels a pending retry.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        let slot = self.end();
        self.queue().observe_work(self.queue().core.done_and_forgive(slot));
    }

    /// Ends the turn as a failure. The key is handed out again after the rate limiter's delay, with the same priority.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        let before = self.queue().core.fail(self.slot);
        let delay = self.queue().limiter.delay(&self.key, before);
        self.end_and_delay(delay, true, false);
    }

    /// Returns the rate limiter's delay for a failure of this turn. It counts as a failure for the limiter.
    pub(crate) fn limiter_delay(&self) -> Duration {
        self.queue().limiter.delay(&self.key, self.failures)
    }

    /// Ends the turn as a failure. The key is handed out again after `delay`, with the same priority.
    pub fn retry_after(self, delay: Duration) {
        self.queue().core.fail(self.slot);
        self.end_and_delay(delay, true, false);
    }

    /// Ends the turn as a success. The key is handed out again after `delay`, or earlier if it has an earlier delay.
    #[doc(alias = "RequeueAfter")]
    #[doc(alias = "AddAfter")]
    pub fn requeue_after(self, delay: Duration) {
        self.end_and_delay(delay, false, false);
    }

    /// Ends the turn as a success. The key is handed out again after `delay`, which replaces an earlier delay.
    pub fn reschedule(self, delay: Duration) {
        self.end_and_delay(delay, false, true);
    }

    fn end_and_delay(mut self, delay: Duration, backoff: bool, replace: bool) {
        let slot = self.end();
        self.queue().count_retry();
        let deadline = self.queue().deadline(delay);
        let delay = Delay { deadline, priority: self.priority(), backoff, replace };
        self.queue().observe_work(self.queue().core.done_and_delay(slot, delay));
    }

    #[inline]
    fn queue(&self) -> &QueueInner<T> {
        &self.queue.borrow().inner
    }

    /// Marks the turn as ended, so that dropping the item does nothing. Returns the slot.
    fn end(&mut self) -> u32 {
        std::mem::replace(&mut self.slot, ENDED)
    }
}

impl<T, Q: Borrow<WorkQueue<T>>> Drop for WorkItem<T, Q> {
    #[inline]
    fn drop(&mut self) {
        if self.slot != ENDED {
            // A call with two words, so that an item can live in registers.
            self.queue().end_turn(self.slot);
        }
    }
}

impl<T, Q: Borrow<WorkQueue<T>>> Deref for WorkItem<T, Q> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.key
    }
}

impl<T: fmt::Debug, Q: Borrow<WorkQueue<T>>> fmt::Debug for WorkItem<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkItem").field("key", &self.key).field("failures", &self.failures).finish()
    }
}
