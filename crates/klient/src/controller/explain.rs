//! Explains keys and controllers: from the queue, the history, the caches and the run to [`crate::introspection`]'s values.
//!
//! The state of a key is that of the first stop on its way: run, caches, queue, predicates. Everything here reads, and takes each
//! lock for a moment only.

use std::time::Duration;

use klient_core::{ObjectKey, Resource};
use tokio::time::Instant;

use super::{
    Controller, ControllerInner,
    history::{Filtered, KeyHistory, KeyNumbers, PastResult, PastResultKind, PastTurn},
    reason::{Reason, Reasons},
};
use crate::{
    informer::{InformerState, InformerStatus},
    introspection::{
        ControllerReport, FilteredReport, HistoryReport, InformerReport, KeyReport, KeyState, KeyStory, ObjectReport,
        Phase, QueueReport, ReasonReport, RunningReport, TurnOutcome, TurnReport, WriteReport,
    },
    workqueue::KeyStatus,
    writes::{Write, WriteEffect},
};

impl<K: Resource> Controller<K> {
    /// Explains the state of a key: what happens to it now, or why it is not reconciled, and its recent turns.
    ///
    /// Turns and ignored events are known only if they are [recorded](super::ControllerBuilder::history). The cost grows with the
    /// number of ready keys.
    ///
    /// ```no_run
    /// # fn print(controller: klient::Controller<k8s_openapi::api::core::v1::ConfigMap>) {
    /// use klient::{ObjectKey, introspection::KeyState};
    ///
    /// let story = controller.explain(&ObjectKey::namespaced("shop", "web"));
    /// if let KeyState::Backoff { retry_in, .. } = story.state {
    ///     println!("retried in {retry_in} s");
    /// }
    /// println!("{}", story.summary);
    /// # }
    /// ```
    pub fn explain(&self, key: &ObjectKey) -> KeyStory {
        let inner = &*self.inner;
        let history = inner.keys.history().and_then(|history| history.of(key));
        let state = inner.state_of(key, history.as_ref());
        let turns = history.as_ref().map(|history| history.recent.iter().map(turn_report).collect());
        KeyStory {
            controller: inner.shown_name(),
            key: key.to_string(),
            summary: state.to_string(),
            object: inner.lister.get(key).map(|object| ObjectReport {
                resource_version: object.resource_version().to_string(),
                generation: object.generation(),
                is_deleting: object.deletion_timestamp().is_some(),
            }),
            pending: reason_reports(&inner.keys.pending_reasons(key)),
            has_history: inner.keys.history().is_some(),
            turn_count: history.as_ref().map_or(0, |history| history.turns),
            failure_count: history.as_ref().map_or(0, |history| history.failures),
            turns_per_minute: history.as_ref().map_or(0, |history| history.per_minute),
            turns: turns.unwrap_or_default(),
            filtered: history.and_then(|history| history.filtered).as_ref().map(filtered_report),
            fights: Vec::new(),
            informers: inner.sources.iter().map(|source| InformerReport::from(&source.status())).collect(),
            state,
        }
    }

    /// Returns the state of the controller, with its notable keys if turns are [recorded](super::ControllerBuilder::history).
    pub fn report(&self) -> ControllerReport {
        let (inner, metrics) = (&*self.inner, &self.inner.metrics);
        let queue = inner.keys.queue.stats();
        let history = inner.keys.history();
        let notable = history.map(|history| history.notable(NOTABLE)).unwrap_or_default();
        let reports =
            |keys: &[KeyNumbers]| keys.iter().map(|key| key_report(&inner.shown_name(), key)).collect::<Vec<_>>();
        let is_loop = |key: &&KeyNumbers| key.per_minute >= LOOP && inner.is_loop(&key.key);
        let hot: Vec<KeyNumbers> = notable.busiest.iter().filter(is_loop).cloned().collect();
        ControllerReport {
            name: inner.shown_name(),
            phase: inner.phase.get(),
            workers: inner.options.workers,
            queue: QueueReport {
                ready: queue.ready,
                delayed: queue.delayed,
                in_process: queue.in_process,
                failing: queue.failing,
                oldest: queue.oldest.map(|age| age.as_secs_f64()),
                longest_in_process: queue.longest_in_process.map(|age| age.as_secs_f64()),
            },
            succeeded: metrics.success.value() + metrics.requeue_after.value(),
            failed: metrics.errors.value(),
            panicked: metrics.panics.value(),
            timed_out: metrics.timeouts.value(),
            stale: metrics.stale.value(),
            filtered: metrics.filtered.value(),
            resources: inner.sources.iter().map(|source| source.resource().to_owned()).collect(),
            running: inner.running(),
            slowest: reports(&notable.slowest),
            failing: reports(&notable.failing),
            busiest: reports(&notable.busiest),
            hot_loops: reports(&hot),
            history: history.map(|history| {
                let size = history.size();
                HistoryReport { keys: size.keys, turns: size.turns, key_bytes: size.key_bytes }
            }),
            samples: Vec::new(),
        }
    }

    /// Returns at most `limit` keys that contain a text: first those with a history, then those of the cache.
    pub fn search_keys(&self, text: &str, limit: usize) -> Vec<KeyReport> {
        let inner = &*self.inner;
        let known = inner.keys.history().map(|history| history.search(text, limit)).unwrap_or_default();
        let mut found: Vec<KeyReport> = known.iter().map(|key| key_report(&inner.shown_name(), key)).collect();
        let names: std::collections::BTreeSet<String> = found.iter().map(|report| report.key.clone()).collect();
        for object in &inner.lister.list() {
            if found.len() >= limit {
                break;
            }
            let key = object.key().as_str();
            if key.contains(text) && !names.contains(key) {
                let controller = inner.shown_name();
                found.push(KeyReport {
                    controller,
                    key: key.to_owned(),
                    last: "none".to_owned(),
                    ..KeyReport::default()
                });
            }
        }
        found
    }

    /// Records turns and ignored events from now on.
    #[cfg(feature = "client")]
    pub(crate) fn record_history(&self, limits: super::HistoryLimits) {
        self.inner.keys.record(limits);
    }

    /// Returns the objects of own and owned kinds that a key's recent turns wrote more than once.
    #[cfg(feature = "client")]
    pub(crate) fn rewritten(&self, key: &ObjectKey) -> Vec<(klient_core::GroupResource, ObjectKey)> {
        let Some(history) = self.inner.keys.history().and_then(|history| history.of(key)) else { return Vec::new() };
        let mut counts: Vec<((klient_core::GroupResource, ObjectKey), usize)> = Vec::new();
        for write in history.recent.iter().flat_map(|turn| &turn.writes) {
            let object = (write.resource.clone(), write.key.clone());
            match counts.iter_mut().find(|(known, _)| *known == object) {
                Some((_, count)) => *count += 1,
                None => counts.push((object, 1)),
            }
        }
        counts.into_iter().filter(|(_, count)| *count > 1).map(|(object, _)| object).collect()
    }
}

impl<K: Resource> ControllerInner<K> {
    /// Returns the state of a key: the first stop on its way.
    fn state_of(&self, key: &ObjectKey, history: Option<&KeyHistory>) -> KeyState {
        match self.phase.get() {
            Phase::Stopped => return KeyState::Stopped,
            Phase::NotStarted => return KeyState::NotStarted,
            Phase::Syncing => {
                let statuses = self.sources.iter().map(|source| source.status());
                if let Some(status) = statuses.into_iter().find(|status| status.relists.is_empty()) {
                    let informer = state_name(status.state).to_owned();
                    return KeyState::NotSynced { resource: status.resource, informer, error: status.last_error };
                }
            }
            _ => {}
        }
        if self.keys.gate.is_closed(key) {
            // The manager knows the owner.
            return KeyState::OtherShard { owner: None };
        }
        match self.keys.queue.key_status(key) {
            Some(status) => self.queued(key, status, history).unwrap_or_else(|| self.idle(key, history)),
            None => self.idle(key, history),
        }
    }

    /// Returns the state of a key that the queue knows, unless the queue has only its failures.
    fn queued(&self, key: &ObjectKey, status: KeyStatus, history: Option<&KeyHistory>) -> Option<KeyState> {
        let now = Instant::now();
        if status.is_in_process {
            if let Some(awaited) = self.own_writes.awaited(key) {
                return Some(KeyState::WaitingForOwnWrite {
                    waiting_for: ago(now, awaited.since),
                    at_most: ago(awaited.until, now),
                    write: write_report(&awaited.write),
                });
            }
            let running_for = status.in_process_since.map_or(0.0, |since| ago(now, since));
            return Some(KeyState::InProcess { running_for, again: status.is_added_again });
        }
        if status.is_ready {
            return Some(KeyState::Ready {
                waiting_for: status.ready_since.map_or(0.0, |since| ago(now, since)),
                ahead: status.ahead,
                workers: self.options.workers,
                busy: self.keys.queue.in_process(),
            });
        }
        let until = status.delayed_until?;
        if status.is_retry || status.failures > 0 {
            let last = history.and_then(|history| history.recent.first());
            let error = last.and_then(|turn| turn.result.message()).map(str::to_owned);
            return Some(KeyState::Backoff { retry_in: ago(until, now), failures: status.failures, error });
        }
        Some(KeyState::Scheduled { next_in: ago(until, now) })
    }

    /// Returns the state of a key that is not queued.
    fn idle(&self, key: &ObjectKey, history: Option<&KeyHistory>) -> KeyState {
        let now = Instant::now();
        let source = self.sources.first();
        let status = source.map(|source| source.status());
        if let Some(status) = status.as_ref().filter(|status| status.unreadable_keys.contains(key)) {
            return KeyState::Unreadable { error: status.last_error.clone() };
        }
        let object = self.lister.get(key);
        let ended = history.and_then(|history| history.ended);
        if let (Some(history), Some(ended)) = (history, ended)
            && history.result == PastResultKind::Terminal
        {
            let error = history.recent.first().and_then(|turn| turn.result.message());
            let error = error.unwrap_or("the message is not stored any more").to_owned();
            return KeyState::Failed { ended_ago: ago(now, ended), error };
        }
        let Some(object) = object else {
            return match ended {
                Some(ended) if history.is_some_and(|history| history.is_absent) => {
                    KeyState::Done { ended_ago: ago(now, ended) }
                }
                _ => KeyState::NotCached { covered: source.is_some_and(|source| source.covers(key)) },
            };
        };
        let version = object.version_number();
        let is_seen = |history: &KeyHistory| history.seen.is_some() && history.seen >= version;
        let filtered = history.and_then(|history| history.filtered.as_ref());
        match (history, ended) {
            (Some(history), Some(ended)) if is_seen(history) && filtered.is_none_or(|event| event.at <= ended) => {
                KeyState::Done { ended_ago: ago(now, ended) }
            }
            // The only change since is the controller's own write, which a predicate ignored.
            (Some(history), Some(ended))
                if is_seen(history) && filtered.is_some_and(|event| event.version == version) =>
            {
                KeyState::Done { ended_ago: ago(now, ended) }
            }
            _ if filtered.is_some() => {
                filtered.map_or(KeyState::Idle, |event| KeyState::Filtered { event: filtered_report(event) })
            }
            (Some(history), Some(ended)) if history.seen.is_none() || version.is_none() => {
                KeyState::Done { ended_ago: ago(now, ended) }
            }
            _ if self.keys.history().is_none() => KeyState::Idle,
            _ => KeyState::NoEvent {
                informer_event_ago: status.as_ref().and_then(|status| Some(status.event_age?.as_secs_f64())),
                informer: status.map_or("unknown", |status| state_name(status.state)).to_owned(),
            },
        }
    }

    fn running(&self) -> Vec<RunningReport> {
        let now = Instant::now();
        let mut running: Vec<RunningReport> = self
            .keys
            .queue
            .in_process_keys(RUNNING)
            .into_iter()
            .map(|(key, since)| RunningReport { key: key.to_string(), running_for: since.map(|since| ago(now, since)) })
            .collect();
        running.sort_by(|a, b| b.running_for.unwrap_or_default().total_cmp(&a.running_for.unwrap_or_default()));
        running
    }

    /// Returns whether the recent turns of a key are a loop: most of them wrote something, or began because of a requeue or of an
    /// object that the key's own turns wrote.
    fn is_loop(&self, key: &ObjectKey) -> bool {
        let Some(history) = self.keys.history().and_then(|history| history.of(key)) else { return false };
        let written: Vec<&Write> = history.recent.iter().flat_map(|turn| &turn.writes).collect();
        let is_own = |reason: &Reason| {
            let source = reason.source.as_deref();
            reason.object.is_none()
                || written.iter().any(|write| {
                    reason.object.as_ref() == Some(&write.key) && source == Some(write.resource.to_string().as_str())
                })
        };
        let own = history.recent.iter().filter(|turn| turn.reasons.iter().all(is_own)).count();
        own * 2 > history.recent.len()
    }
}

impl From<&InformerStatus> for InformerReport {
    fn from(status: &InformerStatus) -> Self {
        let stale_for = match status.state {
            InformerState::Stale { since } => Some(since.elapsed().as_secs_f64()),
            _ => None,
        };
        let relists = status.relists.iter().map(|(reason, count)| (reason.as_str().to_owned(), *count)).collect();
        Self {
            resource: status.resource.clone(),
            state: state_name(status.state).to_owned(),
            stale_for,
            objects: status.objects,
            bytes: status.bytes,
            resource_version: status.resource_version.to_string(),
            events: status.events,
            event_ago: status.event_age.map(|age| age.as_secs_f64()),
            bookmark_ago: status.bookmark_age.map(|age| age.as_secs_f64()),
            relists,
            decode_errors: status.decode_errors,
            unreadable: status.unreadable,
            unreadable_keys: status.unreadable_keys.iter().map(ToString::to_string).collect(),
            last_error: status.last_error.clone(),
        }
    }
}

fn turn_report(turn: &PastTurn) -> TurnReport {
    let reasons = reason_reports(&turn.reasons);
    TurnReport {
        ended_ago: ago(Instant::now(), turn.ended),
        took: turn.took.as_secs_f64(),
        queued_for: turn.queued.map(|queued| queued.as_secs_f64()),
        waited_for_own_writes: turn.waited.as_secs_f64(),
        more_reasons: turn.reasons.len() - reasons.len(),
        reasons,
        seen_version: turn.seen,
        outcome: match turn.result {
            PastResult::Succeeded => TurnOutcome::Succeeded,
            PastResult::Failed(_) => TurnOutcome::Failed,
            PastResult::Terminal(_) => TurnOutcome::Terminal,
            PastResult::Panicked(_) => TurnOutcome::Panicked,
            PastResult::TimedOut => TurnOutcome::TimedOut,
            PastResult::LeadershipLost => TurnOutcome::LeadershipLost,
        },
        error: turn.result.message().map(str::to_owned),
        next_in: turn.next.map(|delay| delay.min(Duration::from_secs(u32::MAX.into())).as_secs_f64()),
        writes: turn.writes.iter().map(write_report).collect(),
        more_writes: turn.writes_not_stored,
    }
}

fn reason_reports(reasons: &Reasons) -> Vec<ReasonReport> {
    let report = |reason: &Reason| ReasonReport {
        kind: reason.kind.as_str().to_owned(),
        source: reason.source.as_deref().map(str::to_owned),
        object: reason.object.as_ref().map(ToString::to_string),
        resource_version: reason.resource_version,
    };
    reasons.iter().map(report).collect()
}

fn write_report(write: &Write) -> WriteReport {
    WriteReport {
        resource: write.resource.to_string(),
        object: write.key.to_string(),
        resource_version: match &write.effect {
            WriteEffect::Stored(state) => Some(state.version.to_string()),
            WriteEffect::Deleted { .. } => None,
        },
    }
}

fn filtered_report(event: &Filtered) -> FilteredReport {
    FilteredReport {
        predicate: event.predicate.to_string(),
        source: event.source.to_string(),
        resource_version: event.version,
        ago: ago(Instant::now(), event.at),
        count: event.count,
    }
}

fn key_report(controller: &str, key: &KeyNumbers) -> KeyReport {
    let last = match key.result {
        PastResultKind::None => "none",
        PastResultKind::Succeeded => "succeeded",
        PastResultKind::Failed => "failed",
        PastResultKind::Terminal => "terminal",
    };
    KeyReport {
        controller: controller.to_owned(),
        key: key.key.to_string(),
        turns: key.turns,
        failures: key.failures,
        per_minute: key.per_minute,
        slowest: key.slowest.as_secs_f64(),
        last: last.to_owned(),
    }
}

fn state_name(state: InformerState) -> &'static str {
    match state {
        InformerState::Idle => "idle",
        InformerState::Syncing => "syncing",
        InformerState::Synced => "synced",
        InformerState::Stale { .. } => "stale",
        InformerState::Denied => "denied",
        InformerState::NotServed => "notServed",
        InformerState::Stopped => "stopped",
    }
}

/// Returns the seconds from one time to a later one.
fn ago(later: Instant, earlier: Instant) -> f64 {
    later.saturating_duration_since(earlier).as_secs_f64()
}

/// The length of the lists of notable keys.
const NOTABLE: usize = 10;
/// The number of keys in process that are listed.
const RUNNING: usize = 64;
/// The number of turns in a minute from which on a key may be in a loop.
const LOOP: u32 = 20;
