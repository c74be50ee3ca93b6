//! A key that is in process.

use std::{borrow::Borrow, fmt, ops::Deref, time::Duration};

use super::{Shared, WorkQueue, state::Delay};

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
///
/// What [`get`](WorkQueue::get) hands out borrows the queue; [`into_owned`](Self::into_owned) makes an item that can be sent to
/// another task.
#[must_use = "dropping an item ends its turn"]
#[doc(alias = "Done")]
pub struct WorkItem<T, Q: Borrow<WorkQueue<T>> = WorkQueue<T>> {
    queue: Q,
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

impl<T, Q: Borrow<WorkQueue<T>>> WorkItem<T, Q> {
    #[inline]
    pub(super) fn new(queue: Q, key: T, slot: u32, priority: i8, failures: u32) -> Self {
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

    /// The same item, with a handle on the queue of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let queue = klient::workqueue::WorkQueue::new();
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

    /// Ends the turn as a success: failures are forgotten, and so is another try that is due to one.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        let slot = self.end();
        self.shared().note_work(self.shared().core.done_and_forgive(slot));
    }

    /// Ends the turn as a failure: the key comes again with the same priority, when the rate limiter says.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        let before = self.shared().core.fail(self.slot);
        let delay = self.shared().limiter.delay(&self.key, before);
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
        self.shared().count_retry();
        let deadline = self.shared().deadline(delay);
        let delay = Delay { deadline, priority: self.priority(), backoff, replace };
        self.shared().note_work(self.shared().core.done_and_delay(slot, delay));
    }

    #[inline]
    fn shared(&self) -> &Shared<T> {
        &self.queue.borrow().shared
    }

    /// Says that dropping this ends nothing any more; gives the slot whose turn is to be ended.
    fn end(&mut self) -> u32 {
        std::mem::replace(&mut self.slot, ENDED)
    }
}

impl<T, Q: Borrow<WorkQueue<T>>> Drop for WorkItem<T, Q> {
    #[inline]
    fn drop(&mut self) {
        if self.slot != ENDED {
            // A call with two words, so that an item can live in registers.
            self.shared().end_turn(self.slot);
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
