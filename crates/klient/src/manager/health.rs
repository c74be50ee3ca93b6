//! Named health checks: whether a process is ready, and whether it is alive.
//!
//! A process is ready if its caches are current and its queues are not stuck. It is alive if nothing hangs that only a
//! restart can fix. An API server that is down makes a process unready, and does not get it killed.

use std::{fmt, sync::Arc, time::Duration};

use super::part::Part;
use crate::informer::{InformerState, InformerStatus};

/// A named check. Its error says what is wrong; its success may have a note.
pub(super) struct Check {
    pub(super) name: String,
    run: Arc<dyn Fn() -> Result<Option<String>, String> + Send + Sync>,
}

/// The limits of the built-in checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a cache may be without contact to the server.
    pub(super) stale: Duration,
    /// How long a key may wait for a worker.
    pub(super) queue_age: Duration,
    /// How long a reconcile may run before the process counts as hung.
    pub(super) stuck: Option<Duration>,
}

impl Check {
    pub(super) fn new(name: impl Into<String>, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Arc::new(move || run().map(|()| None)) }
    }

    /// Creates a check that always succeeds, with a note about the current state.
    pub(super) fn note(name: impl Into<String>, note: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Arc::new(move || Ok(Some(note()))) }
    }
}

/// The results of checks, by name.
pub(super) struct Report {
    pub(super) lines: Vec<(String, Result<Option<String>, String>)>,
}

impl Report {
    /// Runs all checks, except the excluded ones.
    pub(super) fn of(checks: &[Check], excluded: &[&str]) -> Self {
        let chosen = checks.iter().filter(|check| !excluded.contains(&check.name.as_str()));
        Self { lines: chosen.map(|check| (check.name.clone(), (check.run)())).collect() }
    }

    pub(super) fn is_good(&self) -> bool {
        self.lines.iter().all(|(_, outcome)| outcome.is_ok())
    }
}

/// The format of kube-apiserver's verbose health checks.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.lines {
            match outcome {
                Ok(None) => writeln!(f, "[+]{name} ok")?,
                Ok(Some(note)) => writeln!(f, "[+]{name} ok: {note}")?,
                Err(problem) => writeln!(f, "[-]{name} failed: {problem}")?,
            }
        }
        Ok(())
    }
}

/// Returns the readiness check of a part.
pub(super) fn readiness(part: &Arc<dyn Part>, limits: Limits) -> Check {
    let weak = Arc::downgrade(part);
    Check::new(part.name(), move || {
        let Some(part) = weak.upgrade() else { return Err("stopped".to_owned()) };
        for informer in part.informers() {
            check_cache(&informer, limits.stale)?;
        }
        match part.queue().and_then(|queue| queue.oldest) {
            Some(age) if age > limits.queue_age => Err(format!("a key has waited {age:.0?} for a worker")),
            _ => Ok(()),
        }
    })
}

/// Returns the liveness check of a part, if there is a limit.
pub(super) fn liveness(part: &Arc<dyn Part>, limits: Limits) -> Option<Check> {
    let (weak, limit) = (Arc::downgrade(part), limits.stuck?);
    Some(Check::new(part.name(), move || {
        let longest = weak.upgrade().and_then(|part| part.queue()?.longest_in_process);
        match longest {
            Some(age) if age > limit => Err(format!("a reconcile has been running for {age:.0?}")),
            _ => Ok(()),
        }
    }))
}

/// Checks that a cache is current, or was a short time ago.
fn check_cache(informer: &InformerStatus, limit: Duration) -> Result<(), String> {
    let because = informer.last_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let resource = &informer.resource;
    match informer.state {
        InformerState::Synced => Ok(()),
        InformerState::Stale { since } if since.elapsed() < limit => Ok(()),
        InformerState::Stale { since } => {
            Err(format!("cache of {resource} is stale for {:.0?}{because}", since.elapsed()))
        }
        InformerState::Denied => Err(format!("the server denies access to {resource}{because}")),
        InformerState::NotServed => Err(format!("the server does not serve {resource}{because}")),
        InformerState::Idle => Err(format!("informer of {resource} is not started")),
        InformerState::Stopped => Err(format!("informer of {resource} is stopped")),
        InformerState::Syncing => Err(format!("first list of {resource} is not complete{because}")),
    }
}
