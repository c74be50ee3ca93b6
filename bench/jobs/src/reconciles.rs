//! The reconciles of a controller: first all objects once, then those that change.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use crate::{Answer, Arguments};

/// The annotation with the time at which the replay server sent a change, in nanoseconds of Unix time.
pub const TOLD_AT: &str = "bench.klient.invalid/at";

/// Counts the reconciles of both phases.
pub struct Reconciles {
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    /// The number of reconciles until the phase ends.
    left: usize,
    /// `None` before the first change.
    changes: Option<Changes>,
}

#[derive(Default)]
struct Changes {
    answer: Answer,
    microseconds: Vec<f64>,
}

impl Reconciles {
    /// Creates a counter that expects one reconcile of each object.
    pub fn new(arguments: &Arguments) -> Self {
        Self { state: Mutex::new(State { left: arguments.size, changes: None }), ended: Notify::new() }
    }

    /// Counts the reconcile of one object.
    pub fn add(&self, pod: &Pod) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut state = self.state();
        if let Some(changes) = &mut state.changes {
            let told = pod.metadata.annotations.as_ref().and_then(|all| all.get(TOLD_AT)?.parse::<u64>().ok());
            changes.microseconds.extend(told.map(|told| (now.as_nanos() as f64 - told as f64) / 1000.0));
            changes.answer.add_pod(pod);
        }
        state.left = state.left.saturating_sub(1);
        if state.left == 0 {
            self.ended.notify_one();
        }
    }

    /// Waits until all objects were reconciled once, then expects so many changes.
    pub async fn initial(&self, changes: usize) {
        self.ended.notified().await;
        *self.state() = State { left: changes, changes: Some(Changes::default()) };
    }

    /// Waits until all changes were reconciled. Returns the median and the 99th percentile of their latencies.
    pub async fn changed(&self) -> Result<((f64, f64), Answer)> {
        self.ended.notified().await;
        let changes = self.state().changes.take().context("no changes")?;
        let mut all = changes.microseconds;
        ensure!(
            all.len() == changes.answer.count(),
            "{} reconciles do not know when they began",
            changes.answer.count() - all.len()
        );
        all.sort_by(f64::total_cmp);
        let at = |part: f64| all.get(((all.len() - 1) as f64 * part).round() as usize).copied().unwrap_or_default();
        Ok(((at(0.5), at(0.99)), changes.answer))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
