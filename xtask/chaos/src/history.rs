//! The history that one handler received, and the check that it is a possible one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use klient::{ObjectKey, Resource, informer::Event};

use crate::truth::{Fresh, State, Timeline};

/// One event as a handler received it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    key: ObjectKey,
    change: Change,
    uid: String,
    version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Added,
    Updated { from: u64 },
    Deleted,
}

/// The events of one handler, in order.
#[derive(Clone, Default)]
pub(crate) struct History {
    lines: Arc<Mutex<Vec<Line>>>,
}

/// The reference that a history is compared with.
pub(crate) struct Expected<'a> {
    pub(crate) timeline: &'a Timeline,
    pub(crate) fresh: &'a Fresh,
    /// Whether the informer selects a state.
    pub(crate) selects: &'a dyn Fn(&ObjectKey, &State) -> bool,
    /// Whether the informer decodes objects, and cannot represent poison.
    pub(crate) decodes: bool,
    /// Whether every state must have been received, because the informer listed once and read everything.
    pub(crate) is_complete: bool,
    /// Whether the handler was still registered at the end.
    pub(crate) is_attached: bool,
}

impl History {
    /// Records an event.
    pub(crate) fn push<K: Resource>(&self, event: &Event<K>) {
        let version = |object: &klient::informer::CachedObject<K>| -> u64 {
            object.resource_version().as_str().parse().unwrap_or(0)
        };
        let change = match event {
            Event::Added { .. } => Change::Added,
            Event::Updated { old, .. } => Change::Updated { from: version(old) },
            Event::Deleted(_) => Change::Deleted,
        };
        let object = event.object();
        let uid = object.uid().map(std::borrow::Cow::into_owned).unwrap_or_default();
        let line = Line { key: event.key().clone(), change, uid, version: version(object) };
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the versions of the objects that the handler knows.
    pub(crate) fn known(&self) -> BTreeMap<ObjectKey, u64> {
        let mut known = BTreeMap::new();
        for line in self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match line.change {
                Change::Added | Change::Updated { .. } => drop(known.insert(line.key.clone(), line.version)),
                Change::Deleted => drop(known.remove(&line.key)),
            }
        }
        known
    }

    /// Returns what is impossible about this history.
    pub(crate) fn check(&self, expected: &Expected<'_>) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut problems = Vec::new();
        let mut by_key: BTreeMap<&ObjectKey, Vec<&Line>> = BTreeMap::new();
        for line in &lines {
            by_key.entry(&line.key).or_default().push(line);
        }
        for (key, lines) in by_key {
            if let Err(problem) = check_key(key, &lines, expected) {
                let told: Vec<String> = lines.iter().rev().take(8).rev().map(|line| line.short()).collect();
                let states = expected.timeline.states.get(key).map(short_states).unwrap_or_default();
                problems.push(format!("{key}: {problem}; received ...{}; real {states}", told.join(" ")));
            }
        }
        if expected.is_attached {
            let known = self.known();
            problems.extend(compare(&known, expected).into_iter().map(|problem| format!("at the end: {problem}")));
        }
        problems
    }
}

impl Line {
    fn short(&self) -> String {
        match self.change {
            Change::Added => format!("+{}", self.version),
            Change::Updated { from } => format!("~{from}>{}", self.version),
            Change::Deleted => format!("-{}", self.version),
        }
    }
}

fn short_states(states: &BTreeMap<u64, State>) -> String {
    let short = |(version, state): (&u64, &State)| {
        let sign = if !state.exists { "-" } else { "" };
        let red = if state.is_red { "r" } else { "" };
        let poison = if state.is_readable { "" } else { "!" };
        format!("{sign}{version}{red}{poison}")
    };
    states.iter().map(short).collect::<Vec<_>>().join(" ")
}

/// Checks the events of one object: added, changed, deleted, each with a state that existed, in order.
fn check_key(key: &ObjectKey, lines: &[&Line], expected: &Expected<'_>) -> Result<(), String> {
    let none = BTreeMap::new();
    let timeline = expected.timeline;
    let states = timeline.states.get(key).unwrap_or(&none);
    let is_shown = |state: &State| state.exists && (expected.selects)(key, state);
    let mut known: Option<u64> = None;
    let mut newest = 0;
    for line in lines {
        match (line.change, known) {
            (Change::Added, Some(_)) => return Err(format!("{} but it was known", line.short())),
            (Change::Updated { .. } | Change::Deleted, None) => {
                return Err(format!("{} but it was not known", line.short()));
            }
            (Change::Updated { from }, Some(known)) if from != known => {
                return Err(format!("{} but the last state was {known}", line.short()));
            }
            _ => {}
        }
        if line.change == Change::Deleted {
            let after = known.unwrap_or(0);
            let ended = states.range(after + 1..).any(|(_, state)| !is_shown(state));
            if !ended && !timeline.has_gap_after(after) {
                return Err(format!("{} but it was not deleted", line.short()));
            }
            newest = newest.max(line.version);
            known = None;
            continue;
        }
        // A resync repeats the last state.
        let is_resync = line.change == Change::Updated { from: line.version };
        if line.version <= newest && !is_resync {
            return Err(format!("{} after {newest}", line.short()));
        }
        let real = states.get(&line.version).filter(|state| is_shown(state) && state.uid == line.uid);
        if real.is_none() && !timeline.is_in_gap(line.version) {
            return Err(format!("{} never existed", line.short()));
        }
        if expected.decodes && real.is_some_and(|state| !state.is_readable) {
            return Err(format!("{} cannot be decoded", line.short()));
        }
        (known, newest) = (Some(line.version), line.version);
    }
    if expected.is_complete
        && let Some(first) = lines.first()
    {
        let told: Vec<u64> = lines.iter().map(|line| line.version).collect();
        let missed = states.range(first.version + 1..).find(|(version, state)| {
            is_shown(state) && (state.is_readable || !expected.decodes) && !told.contains(version)
        });
        let last = lines.last().map_or(0, |line| line.version);
        if let Some((version, _)) = missed
            && (expected.is_attached || *version < last)
        {
            return Err(format!("{version} was missed"));
        }
    }
    Ok(())
}

/// Compares known versions with the current objects that an informer selects.
pub(crate) fn compare(known: &BTreeMap<ObjectKey, u64>, expected: &Expected<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, (version, state)) in expected.fresh {
        if !(expected.selects)(key, state) {
            continue;
        }
        let is_poison = expected.decodes && !state.is_readable;
        match known.get(key) {
            Some(found) if found == version && !is_poison => {}
            // An object that cannot be read keeps its last known state, if it had one.
            Some(found) if is_poison && found < version => {}
            // An object may have become unreadable before it was first seen.
            None if is_poison => {}
            Some(found) => problems.push(format!("{key} is {found} instead of {version}")),
            None => problems.push(format!("{key} is missing, expected {version}")),
        }
    }
    for (key, version) in known {
        let is_expected = expected.fresh.get(key).is_some_and(|(_, state)| (expected.selects)(key, state));
        if !is_expected {
            problems.push(format!("{key} is {version}, but does not exist or is not selected"));
        }
    }
    problems
}
