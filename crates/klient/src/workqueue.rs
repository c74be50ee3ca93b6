//! A queue of keys: each is processed by one worker at a time, exactly as often as needed.
//!
//! The contract, which is client-go's:
//!
//! - Keys come out in the order in which they went in, except for priorities and groups.
//! - A key that is added many times before it is processed is processed once.
//! - A key is never in process twice at once. If it is added meanwhile, it comes again exactly once, after that.
//! - Any number of tasks add and get.
//! - After a shutdown nothing is added; what is ready is still handed out, and then every `get` ends.
//!
//! Beyond it: handed-out keys are guards, delayed keys can be seen and taken back, failures are remembered only as long as they
//! matter, lower priorities never starve, groups of keys take turns, and `get` does not end while a key in process will come
//! again. It knows nothing of Kubernetes. In client-go: `util/workqueue`; in controller-runtime: `pkg/controller/priorityqueue`.

mod core;
mod get;
mod item;
mod metrics;
mod options;
mod order;
mod rate_limit;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod waiters;

use std::{fmt, hash::Hash, sync::Arc, task::Poll, time::Duration};

use tokio::time::Instant;

use self::{
    core::{Core, Getter},
    metrics::Metrics,
    options::GroupOf,
    state::{Delay, Handed},
};
pub use self::{
    get::{Drain, Get},
    item::WorkItem,
    options::{AddOptions, QueueOptions},
    rate_limit::{ExponentialBackoff, FastSlow, MaxOf, MaxWait, RateLimiter, TokenBucket},
    state::QueueStats,
};

/// A queue of keys that are to be processed. Clones are handles on the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use klient::workqueue::WorkQueue;
///
/// let queue = WorkQueue::new();
/// queue.add("shop/web");
/// queue.add("shop/web"); // once is enough
///
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut processed = Vec::new();
///         while let Some(item) = queue.get().await {
///             processed.push(*item);
///             item.forget(); // or retry()
///         }
///         processed
///     }
/// });
/// queue.shut_down_and_drain().await;
/// assert_eq!(worker.await.unwrap(), ["shop/web"]);
/// # }
/// ```
#[doc(alias = "TypedRateLimitingInterface")]
pub struct WorkQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    core: Core<T>,
    limiter: Arc<dyn RateLimiter<T>>,
    group: Option<GroupOf<T>>,
    metrics: Option<Metrics>,
}

impl<T: Send + 'static> WorkQueue<T> {
    /// A queue without a name, and so without metrics, with the rate limits of a controller.
    pub fn new() -> Self {
        Self::with_options(QueueOptions::default())
    }

    /// A queue that works like that.
    pub fn with_options(options: QueueOptions<T>) -> Self {
        let QueueOptions { name, registry, limiter, group } = options;
        let registry = registry.as_ref().unwrap_or_else(|| crate::metrics::Registry::global());
        let metrics = name.as_deref().map(|name| Metrics::new(registry, name));
        let core = Core::new(metrics.is_some(), Instant::now);
        let shared = Arc::new(Shared { core, limiter, group, metrics });
        if let Some(name) = &name {
            metrics::observe(registry, name, &Arc::downgrade(&shared));
        }
        Self { shared }
    }
}

impl<T: Eq + Hash> WorkQueue<T> {
    /// Adds a key: it will be processed once more, however often this is called before that begins.
    #[inline]
    pub fn add(&self, key: T) {
        self.shared.add(key, 0);
    }

    /// Adds a key once this time has passed. If it is delayed already, the earlier time counts.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, AddOptions::default().after(delay));
    }

    /// Adds a key when the rate limiter says, since it has failed. [`WorkItem::retry`] does the same and ends the turn.
    pub fn add_rate_limited(&self, key: T) {
        self.add_with(key, AddOptions::default().rate_limited());
    }

    /// Adds a key in any of these ways, or several.
    ///
    /// If the key is ready or delayed already, the highest of its priorities and the earliest of its times count.
    #[doc(alias = "AddWithOpts")]
    pub fn add_with(&self, key: T, options: AddOptions) {
        let AddOptions { priority, after, rate_limited } = options;
        let shared = &self.shared;
        if !rate_limited && after.is_none() {
            shared.add(key, priority);
            return;
        }
        shared.count_retry();
        if rate_limited {
            shared.add_limited(key, priority);
        } else {
            shared.add_later(key, after.unwrap_or_default(), priority, false, false);
        }
    }

    /// Adds a key once this time has passed, whatever other time it was delayed to.
    pub fn reschedule(&self, key: T, delay: Duration) {
        self.shared.count_retry();
        self.shared.add_later(key, delay, 0, false, true);
    }

    /// Takes back a delay; says whether there was one. A key that is ready stays so.
    pub fn cancel(&self, key: &T) -> bool {
        self.shared.core.cancel(key)
    }

    /// Forgets the failures of a key, and the delay that is due to one.
    #[doc(alias = "Forget")]
    pub fn forget(&self, key: &T) {
        self.shared.core.forget(key);
    }

    /// How often a key has failed since it was forgotten.
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self, key: &T) -> u32 {
        self.shared.core.failures(key)
    }
}

impl<T: Clone> WorkQueue<T> {
    /// Waits for the next key; none when the queue is shut down and nothing is left.
    #[inline]
    pub fn get(&self) -> Get<'_, T> {
        Get::new(self)
    }

    /// The next key, if one is ready.
    pub fn try_get(&self) -> Option<WorkItem<T, &Self>> {
        let hand_out = |item, promoted| self.hand_out(item, promoted);
        match self
            .shared
            .core
            .look(&mut Getter::default(), None, hand_out, |_, promoted| self.shared.count_adds(promoted))
        {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }

    #[inline]
    fn hand_out(&self, item: Handed<T>, promoted: usize) -> WorkItem<T, &Self> {
        let Handed { key, slot, priority, failures, queued_for } = item;
        self.shared.count_adds(promoted);
        if let (Some(metrics), Some(queued_for)) = (&self.shared.metrics, queued_for) {
            metrics.handed_out(queued_for);
        }
        WorkItem::new(self, key, slot, priority, failures)
    }

    /// The key that is ready next of those that are delayed, and when.
    pub fn next_delayed(&self) -> Option<(T, Instant)> {
        self.shared.core.next_delayed()
    }
}

impl<T> WorkQueue<T> {
    /// How many keys are ready.
    pub fn len(&self) -> usize {
        self.shared.ready()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys wait for their time.
    pub fn delayed(&self) -> usize {
        self.shared.core.delayed()
    }

    /// How many keys were handed out and are not done.
    pub fn in_process(&self) -> usize {
        self.shared.core.in_process()
    }

    /// How much there is of everything. Takes longer the more keys there are.
    pub fn stats(&self) -> QueueStats {
        self.shared.ready();
        self.shared.core.stats()
    }

    /// Ends the intake: adds are ignored and delayed keys dropped, what is ready is still handed out.
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.shared.core.shut_down();
    }

    /// Ends the intake as soon as it is called; ready when nothing is ready nor in process any more.
    ///
    /// It takes workers that go on getting; [`shut_down`](Self::shut_down) ends the waiting early.
    #[doc(alias = "ShutDownWithDrain")]
    pub fn shut_down_and_drain(&self) -> Drain<'_, T> {
        Drain::new(&self.shared)
    }

    /// Whether the intake has ended.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.core.is_shutting_down()
    }
}

impl<T> Shared<T> {
    /// How many keys are ready; notes which have become so.
    fn ready(&self) -> usize {
        let (ready, promoted) = self.core.ready();
        self.count_adds(promoted);
        ready
    }

    #[inline(never)]
    fn end_turn(&self, slot: u32) {
        self.note_work(self.core.done(slot));
    }

    #[inline]
    fn note_work(&self, took: Option<Duration>) {
        if let (Some(metrics), Some(took)) = (&self.metrics, took) {
            metrics.done(took);
        }
    }

    #[inline]
    fn count_adds(&self, count: usize) {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| count > 0) {
            metrics.added(count);
        }
    }

    fn count_retry(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.retried();
        }
    }

    /// So long from now; what no clock can hold is as good as never.
    fn deadline(&self, delay: Duration) -> Instant {
        let now = self.core.now();
        now.checked_add(delay).unwrap_or_else(|| now + NEVER)
    }
}

impl<T: Eq + Hash> Shared<T> {
    #[inline]
    fn add(&self, key: T, priority: i8) {
        let group = self.group.as_ref().map(|group| group(&key));
        let added = self.core.add(key, group, priority);
        self.count_adds(usize::from(added));
    }

    fn add_later(&self, key: T, delay: Duration, priority: i8, backoff: bool, replace: bool) {
        if delay.is_zero() {
            if replace {
                self.core.cancel(&key);
            }
            return self.add(key, priority);
        }
        let group = self.group.as_ref().map(|group| group(&key));
        let delay = Delay { deadline: self.deadline(delay), priority, backoff, replace };
        self.core.delay(key, group, delay);
    }

    fn add_limited(&self, key: T, priority: i8) {
        let group = self.group.as_ref().map(|group| group(&key));
        // The limiter is not asked while anything is locked: it is somebody else's code.
        let delay = self.limiter.delay(&key, self.core.failures(&key));
        let delay = Delay { deadline: self.deadline(delay), priority, backoff: true, replace: false };
        self.core.fail_and_delay(key, group, delay);
    }
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
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

const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
