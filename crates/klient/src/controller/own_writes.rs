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

use super::source::AnySource;
use crate::{deadline, writes::Write};

pub(super) struct OwnWrites {
    pending: Mutex<Pending>,
    /// The writes that turns wait for now. Most turns wait for none.
    waiting: Mutex<HashMap<ObjectKey, Awaited, foldhash::fast::RandomState>>,
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
    pub(super) fn store(&self, key: &ObjectKey, mut writes: Vec<Write>, sources: &[Box<dyn AnySource>]) {
        writes.retain(|write| sources_of(sources, write).next().is_some());
        if writes.is_empty() {
            return;
        }
        let mut pending = self.lock();
        pending.by_key.entry(key.clone()).or_default().extend(writes);
        if pending.by_key.len() >= pending.sweep_at {
            pending.by_key.retain(|_, writes| !writes.iter().all(|write| is_shown(sources, write)));
            pending.sweep_at = SWEEP_AT.max(pending.by_key.len() * 2);
        }
    }

    /// Waits until the caches show the writes of a key's last reconcile. Returns whether they did within the limit.
    pub(super) async fn wait(&self, key: &ObjectKey, sources: &[Box<dyn AnySource>], limit: Duration) -> bool {
        let Some(writes) = self.lock().by_key.remove(key) else { return true };
        let since = Instant::now();
        let deadline = deadline::after(since, limit);
        for write in &writes {
            for source in sources_of(sources, write) {
                match poll_once(source.wait_for_write(write)) {
                    Some(Ok(())) => continue,
                    Some(Err(_)) => return false,
                    None => {}
                }
                let _waiting = self.waiting(key, Awaited { write: write.clone(), since, until: deadline });
                match tokio::time::timeout_at(deadline, source.wait_for_write(write)).await {
                    Ok(Ok(())) => {}
                    // A stopped informer never shows the write.
                    Ok(Err(_)) | Err(_) => return false,
                }
            }
        }
        true
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

fn is_shown(sources: &[Box<dyn AnySource>], write: &Write) -> bool {
    sources_of(sources, write).all(|source| poll_once(source.wait_for_write(write)).is_some())
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
