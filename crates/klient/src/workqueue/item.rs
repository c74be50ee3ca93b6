//! A key in process.

use std::{fmt, ops::Deref, time::Duration};

use super::{
    QueueInner, WorkQueue,
    state::{Delay, DelayCause},
};

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
/// # Backoff
///
/// A key that is added while it waits for a retry is handed out at once: the change may be the cure. If this turn fails as well,
/// the failure is not counted and the retry stays where it was. So the delays of a failing key double with the retries, however
/// many events arrive in between. In client-go, every failure counts, and the delay of a busy key grows to its maximum at once.
/// If the turn succeeds, the retry is cancelled, unless [`add_after`](WorkQueue::add_after) or
/// [`add_rate_limited`](WorkQueue::add_rate_limited) asked for a turn as well.
#[must_use = "dropping an item ends its turn"]
#[doc(alias = "Done")]
pub struct WorkItem<T> {
    queue: WorkQueue<T>,
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

impl<T> WorkItem<T> {
    #[inline]
    pub(super) fn new(queue: WorkQueue<T>, key: T, slot: u32, priority: i8, failures: u32) -> Self {
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

    /// Ends the turn as a success: forgets the failures of the key, and cancels the retry of an earlier turn.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        let slot = self.end();
        self.queue().observe_work(self.queue().core.done_and_succeed(slot));
    }

    /// Ends the turn as a failure. The key is handed out again after the rate limiter's delay, with the same priority.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        let delay = self.limiter_delay();
        self.end_and_delay(delay, DelayCause::Retry, false);
    }

    /// Returns the rate limiter's delay for a failure of this turn, for which the limiter may count the failure; or the rest of
    /// the delay that is pending.
    pub(crate) fn limiter_delay(&self) -> Duration {
        match self.queue().core.failures_in_process(self.slot) {
            (_, Some(deadline)) => deadline.saturating_duration_since(self.queue().core.now()),
            (failures, None) => self.queue().limiter.delay(&self.key, failures),
        }
    }

    /// Ends the turn as a failure. The key is handed out again after `delay`, with the same priority.
    pub fn retry_after(self, delay: Duration) {
        self.end_and_delay(delay, DelayCause::Retry, false);
    }

    /// Ends the turn as a success. The key is handed out again after `delay`, or earlier if it has an earlier delay.
    #[doc(alias = "RequeueAfter")]
    #[doc(alias = "AddAfter")]
    pub fn requeue_after(self, delay: Duration) {
        self.end_and_delay(delay, DelayCause::Timer, false);
    }

    /// Ends the turn as a success. The key is handed out again after `delay`, which replaces an earlier delay.
    pub fn reschedule(self, delay: Duration) {
        self.end_and_delay(delay, DelayCause::Timer, true);
    }

    fn end_and_delay(mut self, delay: Duration, cause: DelayCause, replace: bool) {
        let slot = self.end();
        self.queue().count_retry();
        let deadline = self.queue().deadline(delay);
        let delay = Delay { deadline, priority: self.priority(), cause, replace };
        self.queue().observe_work(self.queue().core.done_and_delay(slot, delay));
    }

    #[inline]
    fn queue(&self) -> &QueueInner<T> {
        &self.queue.inner
    }

    /// Marks the turn as ended, so that dropping the item does nothing. Returns the slot.
    fn end(&mut self) -> u32 {
        std::mem::replace(&mut self.slot, ENDED)
    }
}

impl<T> Drop for WorkItem<T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot != ENDED {
            // A call with two words, so that an item can live in registers.
            self.queue().end_turn(self.slot);
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
