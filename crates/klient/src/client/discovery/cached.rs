//! What a server offers, remembered: in memory, and on disk between runs.
//!
//! However many callers ask at once, the server is asked once. What has a tag is only sent again when it has changed.
//! A result with failures is used, and asked for again soon: an aggregated server that was down comes back.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{DiscoveryClient, DiskCache, Root, RootApis, ServerApis, merged};
use crate::Error;

/// Discovery that remembers.
///
/// A handle: clones share what is remembered.
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
    /// Held by the one who asks the server.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Snapshot>,
    roots: [Option<Arc<RootApis>>; 2],
    /// How often it was said that what is remembered is wrong.
    invalidations: u64,
}

/// What was learnt at one time.
#[derive(Clone)]
pub(in crate::client) struct Snapshot {
    pub(in crate::client) apis: Arc<ServerApis>,
    /// When the server was asked; nothing if only the disk was.
    asked: Option<Instant>,
    learnt: Instant,
    /// When its failures were last asked for again.
    retried: Instant,
    /// How old it was when it was learnt.
    age: Duration,
    valid: bool,
}

/// What is under a root, and whether and when the server said so.
struct Learnt {
    apis: Arc<RootApis>,
    from_server: bool,
    age: Duration,
}

impl CachedDiscovery {
    /// Remembers as long as it lives, or until told to [`invalidate`](Self::invalidate).
    #[doc(alias = "NewMemCacheClient")]
    pub fn in_memory(client: DiscoveryClient) -> Self {
        Self::new(client, None)
    }

    /// Remembers on disk too, no longer than the disk cache says. Files that cannot be read or written are no error.
    #[doc(alias = "NewCachedDiscoveryClientForConfig")]
    pub fn on_disk(client: DiscoveryClient, disk: DiskCache) -> Self {
        Self::new(client, Some(disk))
    }

    fn new(client: DiscoveryClient, disk: Option<DiskCache>) -> Self {
        let (state, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { inner: Arc::new(Inner { client, disk, state, asking }) }
    }

    /// The client that asks the server, for what is not remembered.
    pub fn client(&self) -> &DiscoveryClient {
        &self.inner.client
    }

    /// Everything that the server offers, as remembered; asks for it if nothing is.
    ///
    /// # Errors
    ///
    /// As [`DiscoveryClient::apis`]. An error is not remembered.
    pub async fn apis(&self) -> Result<Arc<ServerApis>, Error> {
        Ok(self.snapshot().await?.apis)
    }

    /// Asks the server whether it offers something else by now. What was remembered stays if it cannot be asked.
    ///
    /// # Errors
    ///
    /// As [`DiscoveryClient::apis`].
    pub async fn refresh(&self) -> Result<Arc<ServerApis>, Error> {
        let _asking = self.inner.asking.lock().await;
        Ok(self.ask(false).await?.apis)
    }

    /// Whether what is remembered came from the server in the life of this value, and was not said to be wrong.
    #[doc(alias = "Fresh")]
    pub fn is_fresh(&self) -> bool {
        self.state().snapshot.as_ref().is_some_and(|snapshot| snapshot.valid && snapshot.asked.is_some())
    }

    /// Says that what is remembered is wrong: the server is asked at the next use, whatever is in memory or on disk.
    pub fn invalidate(&self) {
        let mut state = self.state();
        state.invalidations += 1;
        if let Some(snapshot) = &mut state.snapshot {
            snapshot.valid = false;
        }
    }

    /// What is remembered, or else learnt now.
    pub(in crate::client) async fn snapshot(&self) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.remembered(true) {
            return Ok(snapshot);
        }
        let _asking = self.inner.asking.lock().await;
        // Whoever was here before may have learnt it.
        if let Some(snapshot) = self.remembered(true) {
            return Ok(snapshot);
        }
        let partial = self.remembered(false);
        match (self.ask(true).await, partial) {
            // Not all was known before either: better than nothing, until it is tried the next time.
            (Err(error), Some(partial)) => {
                tracing::debug!(%error, "what could not be learnt about a server's APIs is not known yet");
                if let Some(snapshot) = &mut self.state().snapshot {
                    snapshot.retried = Instant::now();
                }
                Ok(partial)
            }
            (outcome, _) => outcome,
        }
    }

    /// What the server has answered to a question of that time or later; asks if there was none and `permit` says so.
    ///
    /// An answer that was under way before then may be from before whatever the caller waits for.
    pub(in crate::client) async fn newer_than(
        &self,
        time: Instant,
        permit: impl FnOnce() -> bool,
    ) -> Result<Option<Snapshot>, Error> {
        let _asking = self.inner.asking.lock().await;
        match self.remembered(false) {
            Some(snapshot) if snapshot.is_newer_than(time) => Ok(Some(snapshot)),
            _ if permit() => self.ask(false).await.map(Some),
            _ => Ok(None),
        }
    }

    /// What is in memory and still holds; one with failures does not hold for long if it has to be `complete`.
    fn remembered(&self, complete: bool) -> Option<Snapshot> {
        let snapshot = self.state().snapshot.clone().filter(|snapshot| snapshot.valid)?;
        let age = snapshot.age + snapshot.learnt.elapsed();
        let too_old = self.inner.disk.as_ref().is_some_and(|disk| age >= disk.max_age);
        let failed = !snapshot.apis.failures.is_empty();
        let retries = complete && failed && snapshot.retried.elapsed() >= FAILURES_HOLD;
        (!too_old && !retries).then_some(snapshot)
    }

    /// Learns anew. With `disk` set, files that are young enough are believed unless something else was learnt before.
    async fn ask(&self, disk: bool) -> Result<Snapshot, Error> {
        let (invalidations, before, roots) = {
            let state = self.state();
            (state.invalidations, state.snapshot.clone(), state.roots.clone())
        };
        let believe = disk && before.is_none() && invalidations == 0;
        let asked = Instant::now();
        let [core, named] = roots;
        let (core, named) =
            tokio::try_join!(self.root(Root::Core, core, believe), self.root(Root::Named, named, believe))?;
        let mut state = self.state();
        let unchanged = |learnt: &Learnt, place: usize| {
            state.roots[place].as_ref().is_some_and(|known| Arc::ptr_eq(known, &learnt.apis))
        };
        let apis = match &before {
            Some(before) if unchanged(&core, 0) && unchanged(&named, 1) => Arc::clone(&before.apis),
            _ => Arc::new(merged(Some(core.apis.as_ref()), Some(named.apis.as_ref()))),
        };
        let now = Instant::now();
        let snapshot = Snapshot {
            apis,
            asked: (core.from_server && named.from_server).then_some(asked),
            learnt: now,
            retried: now,
            age: core.age.max(named.age),
            // Said to be wrong while it was asked for: it may be from before.
            valid: state.invalidations == invalidations,
        };
        state.roots = [Some(core.apis), Some(named.apis)];
        state.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Learns what is under one root.
    async fn root(&self, root: Root, known: Option<Arc<RootApis>>, believe: bool) -> Result<Learnt, Error> {
        let mut known = known;
        if known.is_none()
            && let Some(disk) = self.inner.disk.clone()
        {
            let max_age = disk.max_age;
            // A task that panicked has found nothing.
            let kept = tokio::task::spawn_blocking(move || disk.load(root)).await.ok().flatten();
            if let Some(kept) = kept {
                let apis = Arc::new(kept.apis);
                if let Some(age) = kept.age.filter(|age| believe && *age < max_age) {
                    return Ok(Learnt { apis, from_server: false, age });
                }
                known = Some(apis);
            }
        }
        let etag = known.as_ref().and_then(|known| known.etag.as_deref());
        let answer = self.inner.client.root(root, etag).await?;
        let apis = match (answer, known) {
            (None, Some(known)) => known,
            (answer, _) => Arc::new(answer.unwrap_or_default()),
        };
        if let Some(disk) = self.inner.disk.clone() {
            let kept = Arc::clone(&apis);
            let saved = tokio::task::spawn_blocking(move || disk.save(root, &kept)).await;
            if let Ok(Err(error)) = saved {
                tracing::debug!(%error, "the list of a server's APIs cannot be kept on disk");
            }
        }
        Ok(Learnt { apis, from_server: true, age: Duration::ZERO })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    /// Whether the server was asked at that time or later.
    pub(in crate::client) fn is_newer_than(&self, time: Instant) -> bool {
        self.asked.is_some_and(|asked| asked >= time)
    }
}

impl fmt::Debug for CachedDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("CachedDiscovery");
        fields.field("client", &self.inner.client).field("disk", &self.inner.disk);
        fields.field("fresh", &self.is_fresh()).finish_non_exhaustive()
    }
}

/// How long a result with failures is used before they are asked for again.
const FAILURES_HOLD: Duration = Duration::from_secs(10);
