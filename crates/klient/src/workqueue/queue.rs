//! `WorkQueue`: the handle that users hold.

use std::{fmt, hash::Hash, sync::Arc, task::Poll, time::Duration};

use tokio::time::Instant;

use super::{
    core::{Core, Getter},
    metrics::Metrics,
    options::GroupOf,
    state::{Delay, DelayCause, Handed},
    *,
};
use crate::deadline;

/// A rate-limited queue of keys. Clones are handles to the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use klient::WorkQueue;
///
/// let queue = WorkQueue::new();
/// queue.add("shop/web");
/// queue.add("shop/web"); // Ignored: the key is ready already.
///
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut processed = Vec::new();
///         while let Some(item) = queue.get().await {
///             processed.push(*item);
///             item.forget(); // or `retry()`
///         }
///         processed
///     }
/// });
/// queue.shut_down_and_drain().await;
/// assert_eq!(worker.await.unwrap(), ["shop/web"]);
/// # }
/// ```
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "RateLimitingInterface")]
pub struct WorkQueue<T> {
    pub(super) inner: Arc<QueueInner<T>>,
}

/// The shared part of a queue's handles.
pub(super) struct QueueInner<T> {
    pub(super) core: Core<T>,
    pub(super) limiter: Arc<dyn RateLimiter<T>>,
    pub(super) group: Option<GroupOf<T>>,
    pub(super) metrics: Option<Metrics>,
}

impl<T: Send + 'static> WorkQueue<T> {
    /// Creates a queue with the rate limits of a controller. It has no name, and so no metrics.
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new() -> Self {
        Self::with_options(QueueOptions::default())
    }

    /// Creates a queue with these options.
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn with_options(options: QueueOptions<T>) -> Self {
        let QueueOptions { name, registry, limiter, group } = options;
        let registry = registry.as_ref().unwrap_or_else(|| crate::metrics::Registry::global());
        let metrics = name.as_deref().map(|name| Metrics::new(registry, name));
        let core = Core::new(metrics.is_some(), Instant::now);
        let inner = Arc::new(QueueInner { core, limiter, group, metrics });
        if let Some(name) = &name {
            metrics::observe(registry, name, &Arc::downgrade(&inner));
        }
        Self { inner }
    }
}

impl<T: Eq + Hash> WorkQueue<T> {
    /// Adds a key. It is handed out once, however often it is added before that.
    #[inline]
    pub fn add(&self, key: T) {
        self.add_with(key, AddOptions::default());
    }

    /// Adds a key after a delay. If the key is delayed already, the earlier time counts.
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, AddOptions::default().after(delay));
    }

    /// Counts a failure of a key, and adds the key after the rate limiter's delay. [`WorkItem::retry`] does the same and ends the
    /// turn.
    ///
    /// While the key is in process and still waits for an earlier retry, the failure is not counted, and that retry serves this
    /// add as well: see [`WorkItem`].
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, key: T) {
        self.add_with(key, AddOptions::default().rate_limited());
    }

    /// Adds a key with a priority, a delay or both.
    ///
    /// If the key is ready or delayed already, the highest of its priorities and the earliest of its times count.
    #[inline]
    #[doc(alias = "AddWithOpts")]
    pub fn add_with(&self, key: T, options: AddOptions) {
        if options.rate_limited || options.after.is_some() {
            return self.add_delayed(key, options);
        }
        let inner = &*self.inner;
        let group = inner.group.as_ref().map(|group| group(&key));
        let added = inner.core.add(key, group, options.priority);
        inner.count_adds(usize::from(added));
    }

    /// Adds a key after a delay. Replaces any other delay of the key.
    pub fn reschedule(&self, key: T, delay: Duration) {
        let inner = &*self.inner;
        inner.count_retry();
        if delay.is_zero() {
            inner.core.cancel(&key);
            return self.add(key);
        }
        let group = inner.group.as_ref().map(|group| group(&key));
        let delay = Delay { deadline: inner.deadline(delay), priority: 0, cause: DelayCause::Timer, replace: true };
        inner.core.delay(key, group, delay);
    }

    /// Cancels the delay of a key. Returns whether there was one. A key that is ready stays ready.
    pub fn cancel(&self, key: &T) -> bool {
        self.inner.core.cancel(key)
    }

    /// Forgets the failures of a key, so that its next retry comes after the shortest delay. A delay that is pending stays.
    #[doc(alias = "Forget")]
    pub fn forget(&self, key: &T) {
        self.inner.core.forget(key);
    }

    /// Returns the number of failures of a key since it was last forgotten.
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self, key: &T) -> u32 {
        self.inner.core.failures(key)
    }

    /// Returns the state of a key, or `None` if the queue does not know the key. The cost grows with the number of ready keys.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use klient::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add("shop/web");
    /// queue.add("shop/db");
    /// assert_eq!(queue.key_status(&"shop/db").unwrap().ahead, 1);
    /// assert!(queue.key_status(&"shop/cache").is_none());
    /// # }
    /// ```
    pub fn key_status(&self, key: &T) -> Option<KeyStatus> {
        self.inner.ready();
        self.inner.core.status(key)
    }

    /// Returns this key if it is ready, before all others: for tests and replays.
    ///
    /// ```
    /// let queue = klient::WorkQueue::new();
    /// queue.add("a");
    /// queue.add("b");
    /// assert_eq!(*queue.try_get_key(&"b").unwrap(), "b");
    /// assert!(queue.try_get_key(&"c").is_none());
    /// ```
    pub fn try_get_key(&self, key: &T) -> Option<WorkItem<T>>
    where
        T: Clone,
    {
        let (taken, promoted) = self.inner.core.take_key(key);
        match taken {
            Some(item) => Some(self.hand_out(item, promoted)),
            None => {
                self.inner.count_adds(promoted);
                None
            }
        }
    }

    /// Returns when a delayed key becomes ready; `None` if it is not delayed.
    pub fn delayed_until(&self, key: &T) -> Option<Instant> {
        self.inner.core.delayed_until(key)
    }

    // Kept out of `add_with`, so that an add without a delay stays small.
    #[inline(never)]
    fn add_delayed(&self, key: T, options: AddOptions) {
        let inner = &*self.inner;
        inner.count_retry();
        let AddOptions { priority, after, rate_limited } = options;
        let deadline = match after.filter(|_| !rate_limited) {
            Some(delay) if delay.is_zero() => return self.add_with(key, AddOptions::default().priority(priority)),
            Some(delay) => inner.deadline(delay),
            None => inner.core.pending_retry_of(&key).unwrap_or_else(|| {
                // The limiter is called without a lock: it is the user's code.
                inner.deadline(inner.limiter.delay(&key, inner.core.failures(&key)))
            }),
        };
        let group = inner.group.as_ref().map(|group| group(&key));
        let cause = if rate_limited { DelayCause::RateLimit } else { DelayCause::Timer };
        let delay = Delay { deadline, priority, cause, replace: false };
        inner.core.delay(key, group, delay);
    }
}

impl<T: Clone> WorkQueue<T> {
    /// Waits for the next key. Returns `None` when the queue is shut down and no key is left.
    #[inline]
    #[doc(alias = "Get")]
    pub fn get(&self) -> Get<'_, T> {
        Get::new(self)
    }

    /// Returns the next key, if one is ready.
    pub fn try_get(&self) -> Option<WorkItem<T>> {
        let hand_out = |item, promoted| self.hand_out(item, promoted);
        let core = &self.inner.core;
        match core.look(&mut Getter::default(), None, hand_out, |_, promoted| self.inner.count_adds(promoted)) {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }

    #[inline]
    pub(super) fn hand_out(&self, item: Handed<T>, promoted: usize) -> WorkItem<T> {
        let Handed { key, slot, priority, failures, queued_for } = item;
        self.inner.count_adds(promoted);
        if let (Some(metrics), Some(queued_for)) = (&self.inner.metrics, queued_for) {
            metrics.handed_out(queued_for);
        }
        WorkItem::new(self.clone(), key, slot, priority, failures)
    }

    /// Returns at most `limit` keys that were handed out and are not done, each with the time at which its turn began if the queue has a
    /// name. The order is arbitrary, and the cost grows with the number of keys.
    pub fn in_process_keys(&self, limit: usize) -> Vec<(T, Option<Instant>)> {
        self.inner.core.in_process_keys(limit)
    }

    /// Returns the delayed key that becomes ready first, and when.
    pub fn next_delayed(&self) -> Option<(T, Instant)> {
        self.inner.core.next_delayed()
    }
}

impl<T> WorkQueue<T> {
    /// Returns the number of ready keys.
    pub fn len(&self) -> usize {
        self.inner.ready()
    }

    /// Returns whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed keys.
    pub fn delayed(&self) -> usize {
        self.inner.core.delayed()
    }

    /// Returns the number of keys that were handed out and are not done.
    pub fn in_process(&self) -> usize {
        self.inner.core.in_process()
    }

    /// Returns the number of keys in each state, and ages. The cost grows with the number of keys.
    pub fn stats(&self) -> QueueStats {
        self.inner.ready();
        self.inner.core.stats()
    }

    /// Shuts the queue down: adds are ignored and delayed keys dropped. Ready keys are still handed out.
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.inner.core.shut_down();
    }

    /// Shuts the queue down at once. The returned future is ready when no key is ready or in process.
    ///
    /// Workers have to go on getting keys. [`shut_down`](Self::shut_down) ends the wait early.
    #[doc(alias = "ShutDownWithDrain")]
    pub fn shut_down_and_drain(&self) -> Drain<'_, T> {
        Drain::new(&self.inner)
    }

    /// Returns whether the queue was shut down.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.inner.core.is_shutting_down()
    }
}

impl<T> QueueInner<T> {
    /// Returns the number of ready keys, after promoting delayed keys whose time has come.
    pub(super) fn ready(&self) -> usize {
        let (ready, promoted) = self.core.ready();
        self.count_adds(promoted);
        ready
    }

    #[inline(never)]
    pub(super) fn end_turn(&self, slot: u32) {
        self.observe_work(self.core.done(slot));
    }

    #[inline]
    pub(super) fn observe_work(&self, took: Option<Duration>) {
        if let (Some(metrics), Some(took)) = (&self.metrics, took) {
            metrics.done(took);
        }
    }

    #[inline]
    pub(super) fn count_adds(&self, count: usize) {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| count > 0) {
            metrics.added(count);
        }
    }

    pub(super) fn count_retry(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.retried();
        }
    }

    /// Returns the end of a delay from now.
    pub(super) fn deadline(&self, delay: Duration) -> Instant {
        deadline::after(self.core.now(), delay)
    }
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Send + 'static> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("ready", &self.len())
            .field("delayed", &self.delayed())
            .finish_non_exhaustive()
    }
}
