//! Named checks: whether a process is ready, and whether it is alive.
//!
//! Ready means that the caches show what the server has and that work does not pile up. Alive means that nothing hangs that only
//! another process can mend. An API server that is gone makes a process unready, and does not have it killed.

use std::{fmt, sync::Arc, time::Duration};

use super::Part;
use crate::informer::{InformerState, InformerStatus};

/// One check: its name, and what is wrong if it fails.
pub(super) struct Check {
    pub(super) name: String,
    run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// When work is late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a cache may not have heard from the server.
    pub(super) stale: Duration,
    /// How long a key may be ready without a worker that takes it.
    pub(super) queue_age: Duration,
    /// How long a reconcile may take before the process counts as hung.
    pub(super) stuck: Option<Duration>,
}

impl Check {
    pub(super) fn new(name: impl Into<String>, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Arc::new(run) }
    }
}

/// How checks ended: each name, and what is wrong.
pub(super) struct Report {
    pub(super) lines: Vec<(String, Result<(), String>)>,
}

impl Report {
    /// Runs all checks but some.
    pub(super) fn of(checks: &[Check], excluded: &[&str]) -> Self {
        let chosen = checks.iter().filter(|check| !excluded.contains(&check.name.as_str()));
        Self { lines: chosen.map(|check| (check.name.clone(), (check.run)())).collect() }
    }

    pub(super) fn is_good(&self) -> bool {
        self.lines.iter().all(|(_, outcome)| outcome.is_ok())
    }
}

/// As kube-apiserver prints its own.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.lines {
            match outcome {
                Ok(()) => writeln!(f, "[+]{name} ok")?,
                Err(problem) => writeln!(f, "[-]{name} failed: {problem}")?,
            }
        }
        Ok(())
    }
}

/// What has to hold of a part for the process to be ready.
pub(super) fn readiness(part: &Arc<dyn Part>, limits: Limits) -> Check {
    let weak = Arc::downgrade(part);
    Check::new(part.name(), move || {
        let Some(part) = weak.upgrade() else { return Err("it has ended".to_owned()) };
        for informer in part.informers() {
            current(&informer, limits.stale)?;
        }
        match part.queue().and_then(|queue| queue.oldest) {
            Some(age) if age > limits.queue_age => Err(format!("a key has been waiting for a worker for {age:.0?}")),
            _ => Ok(()),
        }
    })
}

/// What has to hold of a part for the process to be alive.
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

/// Whether a cache shows what the server has, or did so a short time ago.
fn current(informer: &InformerStatus, limit: Duration) -> Result<(), String> {
    let because = informer.last_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let resource = &informer.resource;
    match informer.state {
        InformerState::Synced => Ok(()),
        InformerState::Stale { since } if since.elapsed() < limit => Ok(()),
        InformerState::Stale { since } => Err(format!("no news of {resource} for {:.0?}{because}", since.elapsed())),
        InformerState::Denied => Err(format!("the server refuses to show {resource}{because}")),
        InformerState::NotServed => Err(format!("the server has no {resource}{because}")),
        InformerState::Idle => Err(format!("the informer of {resource} is not started")),
        InformerState::Stopped => Err(format!("the informer of {resource} is stopped")),
        InformerState::Syncing => Err(format!("the first list of {resource} is not complete{because}")),
    }
}
