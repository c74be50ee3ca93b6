//! The options of a queue, and of an add.

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::Arc,
    time::Duration,
};

use super::{MaxOf, RateLimiter};
use crate::metrics::Registry;

/// The options of a [`WorkQueue`](super::WorkQueue).
///
/// ```
/// use klient::{ObjectKey, WorkQueue, workqueue::{ExponentialBackoff, QueueOptions}};
///
/// let options = QueueOptions::default()
///     .name("websites")
///     .rate_limiter(ExponentialBackoff::default())
///     .fair_by(|key: &ObjectKey| key.namespace().map(str::to_owned));
/// let queue = WorkQueue::with_options(options);
/// queue.add(ObjectKey::namespaced("shop", "web"));
/// ```
#[non_exhaustive]
pub struct QueueOptions<T> {
    pub(super) name: Option<String>,
    pub(super) registry: Option<Registry>,
    pub(super) limiter: Arc<dyn RateLimiter<T>>,
    pub(super) group: Option<GroupOf<T>>,
}

/// A function from a key to the number of its group.
pub(super) type GroupOf<T> = Arc<dyn Fn(&T) -> u64 + Send + Sync>;

impl<T> QueueOptions<T> {
    /// Names the queue. A queue with a name has metrics, and measures how long keys wait and are processed.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the registry for metrics; the global registry by default.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Sets how long keys wait after a failure; [`MaxOf::controller`] by default.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiter = Arc::new(limiter);
        self
    }

    /// Serves groups of keys in turn, such as namespaces, so that no group waits behind all keys of another.
    #[must_use]
    pub fn fair_by<G: Hash>(mut self, group: impl Fn(&T) -> G + Send + Sync + 'static) -> Self {
        let hasher = foldhash::fast::RandomState::default();
        // Two groups with the same hash would share turns, which is harmless.
        self.group = Some(Arc::new(move |key| hasher.hash_one(group(key))));
        self
    }
}

impl<T: 'static> Default for QueueOptions<T> {
    fn default() -> Self {
        Self { name: None, registry: None, limiter: Arc::new(MaxOf::controller()), group: None }
    }
}

impl<T> fmt::Debug for QueueOptions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions")
            .field("name", &self.name)
            .field("fair", &self.group.is_some())
            .finish_non_exhaustive()
    }
}

/// The options of an add.
///
/// ```
/// use std::time::Duration;
/// use klient::{WorkQueue, workqueue::AddOptions};
///
/// let queue = WorkQueue::new();
/// queue.add("listed at startup");
/// queue.add_with("changed by a user", AddOptions::default().priority(10));
/// queue.add_with("checked rarely", AddOptions::default().priority(-10).after(Duration::from_secs(60)));
/// assert_eq!(*queue.try_get().unwrap(), "changed by a user");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddOptions {
    /// Keys of higher priority are handed out first, without starving others. 0 by default.
    pub priority: i8,
    /// The delay before the key is ready.
    pub after: Option<Duration>,
    /// Whether the add counts as a failure, so that the rate limiter chooses the delay. Overrides `after`.
    pub rate_limited: bool,
}

impl AddOptions {
    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the delay before the key is ready.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = Some(delay);
        self
    }

    /// Counts the add as a failure, so that the rate limiter chooses the delay.
    #[must_use]
    pub fn rate_limited(mut self) -> Self {
        self.rate_limited = true;
        self
    }
}
