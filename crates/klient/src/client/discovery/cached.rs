//! Discovery with a cache: in memory, and on disk between runs.
//!
//! Concurrent callers share one request. A document with an ETag is only sent again when it has changed. A result with
//! failures is used, and requested again soon, because an aggregated server that was down may be available again.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{DiscoveryClient, DiskCache, Root, RootApis, ServerApis, merged};
use crate::Error;

/// A discovery client with a cache.
///
/// Clones share the cache.
///
/// ```no_run
/// use klient::{Client, client::{config::Config, discovery::{CachedDiscovery, DiscoveryClient, DiskCache}}};
///
/// # async fn show() -> Result<(), klient::Error> {
/// let config = Config::infer()?;
/// let client = DiscoveryClient::new(Client::from_config(&config)?);
/// let discovery = match DiskCache::for_server(&config) {
///     Some(disk) => CachedDiscovery::on_disk(client, disk),
///     None => CachedDiscovery::in_memory(client),
/// };
/// println!("{} groups", discovery.apis().await?.groups.len());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "CachedDiscoveryInterface")]
#[derive(Clone)]
pub struct CachedDiscovery {
    inner: Arc<Inner>,
}

struct Inner {
    client: DiscoveryClient,
    disk: Option<DiskCache>,
    state: Mutex<State>,
    /// Held while the server is being queried.
    querying: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Snapshot>,
    roots: [Option<Arc<RootApis>>; 2],
    /// How often the cache was invalidated.
    invalidations: u64,
}

/// The result of one discovery.
#[derive(Clone)]
pub(in crate::client) struct Snapshot {
    pub(in crate::client) apis: Arc<ServerApis>,
    /// When the server was queried; `None` if the result is from the disk cache.
    queried_at: Option<Instant>,
    learnt: Instant,
    /// When the failures were last requested again.
    retried: Instant,
    /// The age of the result when it was loaded.
    age: Duration,
    valid: bool,
}

/// The groups under a root, and whether and when the server sent them.
struct Loaded {
    apis: Arc<RootApis>,
    from_server: bool,
    age: Duration,
}

impl CachedDiscovery {
    /// Creates a cache in memory, valid until [`invalidate`](Self::invalidate) is called.
    #[doc(alias = "NewMemCacheClient")]
    pub fn in_memory(client: DiscoveryClient) -> Self {
        Self::new(client, None)
    }

    /// Creates a cache in memory and on disk. Files that cannot be read or written are ignored.
    #[doc(alias = "NewCachedDiscoveryClientForConfig")]
    pub fn on_disk(client: DiscoveryClient, disk: DiskCache) -> Self {
        Self::new(client, Some(disk))
    }

    fn new(client: DiscoveryClient, disk: Option<DiskCache>) -> Self {
        let (state, querying) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { inner: Arc::new(Inner { client, disk, state, querying }) }
    }

    /// Returns the client without a cache.
    pub fn client(&self) -> &DiscoveryClient {
        &self.inner.client
    }

    /// Returns all groups, versions and resources from the cache, or else from the server.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DiscoveryClient::apis`]. Errors are not cached.
    pub async fn apis(&self) -> Result<Arc<ServerApis>, Error> {
        Ok(self.snapshot().await?.apis)
    }

    /// Updates the cache from the server. If that fails, the cache keeps its content.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DiscoveryClient::apis`].
    pub async fn refresh(&self) -> Result<Arc<ServerApis>, Error> {
        let _querying = self.inner.querying.lock().await;
        Ok(self.discover(false).await?.apis)
    }

    /// Returns whether the cache was filled from the server during its lifetime and was not invalidated.
    #[doc(alias = "Fresh")]
    pub fn is_fresh(&self) -> bool {
        self.state().snapshot.as_ref().is_some_and(|snapshot| snapshot.valid && snapshot.queried_at.is_some())
    }

    /// Invalidates the cache: the next use queries the server, whatever is in memory or on disk.
    pub fn invalidate(&self) {
        let mut state = self.state();
        state.invalidations += 1;
        if let Some(snapshot) = &mut state.snapshot {
            snapshot.valid = false;
        }
    }

    /// Returns the cached result, or else queries the server.
    pub(in crate::client) async fn snapshot(&self) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.cached(true) {
            return Ok(snapshot);
        }
        let _querying = self.inner.querying.lock().await;
        // Another caller may have filled the cache meanwhile.
        if let Some(snapshot) = self.cached(true) {
            return Ok(snapshot);
        }
        let partial = self.cached(false);
        match (self.discover(true).await, partial) {
            // The partial result is used until the next attempt.
            (Err(error), Some(partial)) => {
                tracing::debug!(%error, "discovery incomplete, using partial results");
                if let Some(snapshot) = &mut self.state().snapshot {
                    snapshot.retried = Instant::now();
                }
                Ok(partial)
            }
            (outcome, _) => outcome,
        }
    }

    /// Returns a result that was requested at that time or later; queries the server if there is none and `permit`
    /// allows it.
    ///
    /// A response to an earlier request may not contain the change that the caller waits for.
    pub(in crate::client) async fn newer_than(
        &self,
        time: Instant,
        permit: impl FnOnce() -> bool,
    ) -> Result<Option<Snapshot>, Error> {
        let _querying = self.inner.querying.lock().await;
        match self.cached(false) {
            Some(snapshot) if snapshot.is_newer_than(time) => Ok(Some(snapshot)),
            _ if permit() => self.discover(false).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the valid result in memory. If it must be `complete`, a result with failures is valid only briefly.
    fn cached(&self, complete: bool) -> Option<Snapshot> {
        let snapshot = self.state().snapshot.clone().filter(|snapshot| snapshot.valid)?;
        let age = snapshot.age + snapshot.learnt.elapsed();
        let too_old = self.inner.disk.as_ref().is_some_and(|disk| age >= disk.max_age);
        let failed = !snapshot.apis.failures.is_empty();
        let retries = complete && failed && snapshot.retried.elapsed() >= FAILURES_HOLD;
        (!too_old && !retries).then_some(snapshot)
    }

    /// Runs a discovery. With `disk` set, files that are young enough are used unless the memory has something else.
    async fn discover(&self, disk: bool) -> Result<Snapshot, Error> {
        let (invalidations, before, roots) = {
            let state = self.state();
            (state.invalidations, state.snapshot.clone(), state.roots.clone())
        };
        let believe = disk && before.is_none() && invalidations == 0;
        let queried_at = Instant::now();
        let [core, named] = roots;
        let (core, named) =
            tokio::try_join!(self.root(Root::Core, core, believe), self.root(Root::Named, named, believe))?;
        let mut state = self.state();
        let unchanged = |learnt: &Loaded, place: usize| {
            state.roots[place].as_ref().is_some_and(|known| Arc::ptr_eq(known, &learnt.apis))
        };
        let apis = match &before {
            Some(before) if unchanged(&core, 0) && unchanged(&named, 1) => Arc::clone(&before.apis),
            _ => Arc::new(merged(Some(core.apis.as_ref()), Some(named.apis.as_ref()))),
        };
        let now = Instant::now();
        let snapshot = Snapshot {
            apis,
            queried_at: (core.from_server && named.from_server).then_some(queried_at),
            learnt: now,
            retried: now,
            age: core.age.max(named.age),
            // A result that was invalidated during the request may be stale.
            valid: state.invalidations == invalidations,
        };
        state.roots = [Some(core.apis), Some(named.apis)];
        state.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Reads the groups under one root.
    async fn root(&self, root: Root, known: Option<Arc<RootApis>>, believe: bool) -> Result<Loaded, Error> {
        let mut known = known;
        if known.is_none()
            && let Some(disk) = self.inner.disk.clone()
        {
            let max_age = disk.max_age;
            // A task that panicked has loaded nothing.
            let kept = tokio::task::spawn_blocking(move || disk.load(root)).await.ok().flatten();
            if let Some(kept) = kept {
                let apis = Arc::new(kept.apis);
                if let Some(age) = kept.age.filter(|age| believe && *age < max_age) {
                    return Ok(Loaded { apis, from_server: false, age });
                }
                known = Some(apis);
            }
        }
        let etag = known.as_ref().and_then(|known| known.etag.as_deref());
        let response = self.inner.client.root(root, etag).await?;
        let apis = match (response, known) {
            (None, Some(known)) => known,
            (response, _) => Arc::new(response.unwrap_or_default()),
        };
        if let Some(disk) = self.inner.disk.clone() {
            let kept = Arc::clone(&apis);
            let saved = tokio::task::spawn_blocking(move || disk.save(root, &kept)).await;
            if let Ok(Err(error)) = saved {
                tracing::debug!(%error, "cannot write discovery cache");
            }
        }
        Ok(Loaded { apis, from_server: true, age: Duration::ZERO })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while the lock is held.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    /// Returns whether the server was queried at that time or later.
    pub(in crate::client) fn is_newer_than(&self, time: Instant) -> bool {
        self.queried_at.is_some_and(|queried_at| queried_at >= time)
    }
}

impl fmt::Debug for CachedDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("CachedDiscovery");
        fields.field("client", &self.inner.client).field("disk", &self.inner.disk);
        fields.field("fresh", &self.is_fresh()).finish_non_exhaustive()
    }
}

/// How long a result with failures is used before they are requested again.
const FAILURES_HOLD: Duration = Duration::from_secs(10);
