//! A key's next reconcile sees what its last one wrote.
//!
//! What a reconcile wrote is kept until the same key comes again, which then waits until the caches show it. If that takes too
//! long, it begins anyway: a reconciler has to cope with old state in any case, and a watch that stalls must not stop it.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use klient_core::ObjectKey;
use tokio::time::Instant;

use super::source::Connected;
use crate::writes::Write;

pub(super) struct OwnWrites {
    pending: Mutex<Pending>,
}

struct Pending {
    by_key: HashMap<ObjectKey, Vec<Write>, foldhash::fast::RandomState>,
    /// At this many keys, those are left out that need not wait any more: not every key comes again.
    sweep_at: usize,
}

impl OwnWrites {
    pub(super) fn new() -> Self {
        Self { pending: Mutex::new(Pending { by_key: HashMap::default(), sweep_at: SWEEP_AT }) }
    }

    /// Keeps what a reconcile wrote, as far as a cache of this controller will show it.
    pub(super) fn keep(&self, key: &ObjectKey, mut writes: Vec<Write>, sources: &[Box<dyn Connected>]) {
        writes.retain(|write| of(sources, write).next().is_some());
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

    /// Waits until the caches show what the last reconcile of a key wrote; says whether they did in time.
    pub(super) async fn shown(&self, key: &ObjectKey, sources: &[Box<dyn Connected>], limit: Duration) -> bool {
        let Some(writes) = self.lock().by_key.remove(key) else { return true };
        let deadline = Instant::now() + limit;
        for write in &writes {
            for source in of(sources, write) {
                match tokio::time::timeout_at(deadline, source.shows(write)).await {
                    Ok(Ok(())) => {}
                    // An informer that has stopped shows nothing new any more.
                    Ok(Err(_)) | Err(_) => return false,
                }
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sources that will show a write.
fn of<'a>(sources: &'a [Box<dyn Connected>], write: &Write) -> impl Iterator<Item = &'a dyn Connected> {
    let resource = write.resource.to_string();
    sources.iter().map(|source| &**source).filter(move |source| source.resource() == resource)
}

fn is_shown(sources: &[Box<dyn Connected>], write: &Write) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    of(sources, write).all(|source| !matches!(pin!(source.shows(write)).poll(&mut context), Poll::Pending))
}

const SWEEP_AT: usize = 1024;
