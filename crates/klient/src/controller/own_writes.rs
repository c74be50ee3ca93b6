//! Waiting until the caches show the writes of a key's last reconcile.
//!
//! The writes of a reconcile are stored until the next reconcile of the same key, which waits until the caches show them. If that
//! takes too long, the reconcile begins anyway: reconcilers have to cope with stale reads, and a stalled watch must not stop
//! them.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use klient_core::ObjectKey;
use tokio::time::Instant;

use super::{added::AddedSources, source::AnySource};
use crate::{deadline, writes::Write};

pub(super) struct OwnWrites {
    pending: Mutex<Pending>,
    /// The writes that turns wait for now. Most turns wait for none.
    waiting: Mutex<HashMap<ObjectKey, Awaited, foldhash::fast::RandomState>>,
}

/// The caches of a controller.
#[derive(Clone, Copy)]
pub(super) struct Caches<'a> {
    pub(super) sources: &'a [Box<dyn AnySource>],
    pub(super) added: &'a AddedSources,
}

/// A write that a turn waits for.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    pub(super) write: Write,
    pub(super) since: Instant,
    pub(super) until: Instant,
}

struct Pending {
    by_key: HashMap<ObjectKey, Vec<Write>, foldhash::fast::RandomState>,
    /// The number of keys at which writes that the caches show are removed: not every key is reconciled again.
    sweep_at: usize,
}

impl OwnWrites {
    pub(super) fn new() -> Self {
        Self {
            pending: Mutex::new(Pending { by_key: HashMap::default(), sweep_at: SWEEP_AT }),
            waiting: Mutex::default(),
        }
    }

    /// Stores the writes of a reconcile that a cache of this controller will show.
    pub(super) fn store(&self, key: &ObjectKey, mut writes: Vec<Write>, caches: Caches<'_>) {
        writes.retain(|write| caches.will_show(write));
        if writes.is_empty() {
            return;
        }
        let mut pending = self.lock();
        pending.by_key.entry(key.clone()).or_default().extend(writes);
        if pending.by_key.len() >= pending.sweep_at {
            pending.by_key.retain(|_, writes| !writes.iter().all(|write| caches.need_no_wait(write)));
            pending.sweep_at = SWEEP_AT.max(pending.by_key.len() * 2);
        }
    }

    /// Waits until the caches show the writes of a key's last reconcile. Returns whether they did within the limit.
    pub(super) async fn wait(&self, key: &ObjectKey, caches: Caches<'_>, limit: Duration) -> bool {
        let Some(writes) = self.lock().by_key.remove(key) else { return true };
        let since = Instant::now();
        let time = (since, deadline::after(since, limit));
        let mut is_current = true;
        for write in &writes {
            for source in sources_of(caches.sources, write) {
                is_current &= self.wait_for(key, write, time, || source.wait_for_write(write)).await;
            }
            for cache in caches.added.caches_of(write) {
                is_current &= self.wait_for(key, write, time, || cache.wait_for_write(write)).await;
            }
        }
        is_current
    }

    /// Waits until one cache shows a write. Returns whether it did: a stopped informer never does.
    async fn wait_for<F>(
        &self,
        key: &ObjectKey,
        write: &Write,
        (since, until): (Instant, Instant),
        shown: impl Fn() -> F,
    ) -> bool
    where
        F: Future<Output = Result<(), crate::Error>>,
    {
        if let Some(result) = poll_once(shown()) {
            return result.is_ok();
        }
        let _waiting = self.waiting(key, Awaited { write: write.clone(), since, until });
        matches!(tokio::time::timeout_at(until, shown()).await, Ok(Ok(())))
    }

    /// Returns the write that the turn of a key waits for.
    pub(super) fn awaited(&self, key: &ObjectKey) -> Option<Awaited> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Shows a write as awaited until the output is dropped.
    fn waiting<'a>(&'a self, key: &'a ObjectKey, awaited: Awaited) -> Waiting<'a> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), awaited);
        Waiting { own_writes: self, key }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the sources that will show a write.
pub(super) fn sources_of<'a>(
    sources: &'a [Box<dyn AnySource>],
    write: &'a Write,
) -> impl Iterator<Item = &'a dyn AnySource> {
    let resource = write.resource.to_string();
    let sources = sources.iter().map(|source| &**source);
    sources.filter(move |source| source.resource() == resource && source.covers(&write.key))
}

impl Caches<'_> {
    fn will_show(self, write: &Write) -> bool {
        sources_of(self.sources, write).next().is_some() || !self.added.caches_of(write).is_empty()
    }

    /// Returns whether a turn would not wait for a write: all caches show it, or never will.
    fn need_no_wait(self, write: &Write) -> bool {
        sources_of(self.sources, write).all(|source| poll_once(source.wait_for_write(write)).is_some())
            && self.added.caches_of(write).iter().all(|cache| poll_once(cache.wait_for_write(write)).is_some())
    }
}

/// Returns the result of a wait that ends at once.
fn poll_once(wait: impl Future<Output = Result<(), crate::Error>>) -> Option<Result<(), crate::Error>> {
    match pin!(wait).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// A turn that waits for a write.
struct Waiting<'a> {
    own_writes: &'a OwnWrites,
    key: &'a ObjectKey,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.own_writes.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
    }
}

const SWEEP_AT: usize = 1024;
