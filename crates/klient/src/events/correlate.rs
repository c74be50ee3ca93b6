//! Correlation of events: whether an event is created, counted in a series, or dropped.
//!
//! The limits are client-go's. The number of stored series is bounded, and old ones are removed.

use std::hash::Hash;

use hashbrown::HashMap;
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use tokio::time::{Duration, Instant};

use super::{EventApi, EventKind, Recorded};

/// The events so far, for correlation with new ones.
pub(super) struct Correlator {
    api: EventApi,
    spam: Bounded<Object, Tokens>,
    similar: Bounded<Similar, Notes>,
    series: Bounded<Series, StoredEvent>,
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Object {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// The common part of events that differ only in their notes and in the parts of the object that they are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Similar {
    regarding: Object,
    related: Option<Object>,
    kind: EventKind,
    reason: String,
    action: String,
}

/// The common part of events that count as one series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Series {
    similar: Similar,
    /// The part of the object that the event is about, such as a container, unless events are combined.
    field_path: Option<String>,
    related_field_path: Option<String>,
    /// The note, if it distinguishes series: only in `v1`.
    note: Option<String>,
}

struct Tokens {
    left: f64,
    at: Instant,
}

struct Notes {
    seen: Vec<String>,
    last: Instant,
}

/// An event that was written to the server.
#[derive(Clone, Debug)]
pub(super) struct StoredEvent {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: i32,
    pub(super) last: Timestamp,
    pub(super) last_seen: Instant,
    written: Instant,
    written_count: i32,
}

/// The decision about an event.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// Create a new event.
    Create(Series),
    /// Write the new count of an existing event.
    Repeat(Series, StoredEvent),
    /// Write the new count of an existing event later.
    Defer,
    /// Drop the event: there are too many about the object.
    Drop,
}

impl Correlator {
    pub(super) fn new(api: EventApi) -> Self {
        Self { api, spam: Bounded::default(), similar: Bounded::default(), series: Bounded::default() }
    }

    /// Decides what to write. May change the note to one that stands for several events.
    pub(super) fn judge(&mut self, recorded: &mut Recorded) -> Verdict {
        let now = Instant::now();
        let similar = Similar::of(recorded);
        let is_core = self.api == EventApi::Core;
        let combined = is_core && self.is_combined(&similar, &recorded.event.note, now);
        if combined {
            recorded.event.note = format!("{COMBINED}{}", recorded.event.note);
        }
        let series = Series::of(recorded, similar, is_core, combined);
        let going_on = |stored: &&mut StoredEvent| is_core || now - stored.last_seen <= SERIES_IDLE;
        if let Some(stored) = self.series.get(&series, now).filter(going_on) {
            stored.count = stored.count.saturating_add(1);
            (stored.last, stored.last_seen) = (recorded.at, now);
            if !is_core && stored.count != 2 && now - stored.written < SERIES_REFRESH {
                return Verdict::Defer;
            }
        }
        // As in client-go, a filtered event counts in its series, and `events.k8s.io` has no filter.
        if is_core && !self.take_token(&series.similar.regarding, now) {
            return Verdict::Drop;
        }
        match self.series.get(&series, now).filter(going_on) {
            Some(stored) => {
                (stored.written, stored.written_count) = (now, stored.count);
                let stored = stored.clone();
                Verdict::Repeat(series, stored)
            }
            None => Verdict::Create(series),
        }
    }

    /// Stores that an event was written.
    pub(super) fn stored(&mut self, series: Series, namespace: String, name: String, at: Timestamp) {
        let now = Instant::now();
        let stored =
            StoredEvent { namespace, name, count: 1, last: at, last_seen: now, written: now, written_count: 1 };
        self.series.insert(series, stored, now);
    }

    /// Removes a series whose event does not exist any more.
    pub(super) fn forget(&mut self, series: &Series) {
        self.series.entries.remove(series);
    }

    /// Returns when the next deferred count has to be written. Counts of `v1` events wait for the next event instead,
    /// because only the filter defers them.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.api == EventApi::Core {
            return None;
        }
        let unwritten = self.series.entries.values().filter(|(stored, _)| stored.count > stored.written_count);
        unwritten.map(|(stored, _)| stored.due()).min()
    }

    /// Returns the deferred counts that have to be written now; at the end, all of them.
    pub(super) fn due(&mut self, at_end: bool) -> Vec<StoredEvent> {
        let now = Instant::now();
        let mut due = Vec::new();
        if self.api == EventApi::Core {
            return due;
        }
        for (stored, _) in self.series.entries.values_mut() {
            if stored.count > stored.written_count && (at_end || stored.due() <= now) {
                (stored.written, stored.written_count) = (now, stored.count);
                due.push(stored.clone());
            }
        }
        due
    }

    fn take_token(&mut self, object: &Object, now: Instant) -> bool {
        if self.spam.get(object, now).is_none() {
            self.spam.insert(object.clone(), Tokens { left: SPAM_BURST, at: now }, now);
        }
        let Some(tokens) = self.spam.get(object, now) else { return true };
        let refilled = (now - tokens.at).as_secs_f64() / SPAM_REFILL.as_secs_f64();
        (tokens.left, tokens.at) = ((tokens.left + refilled).min(SPAM_BURST), now);
        let may = tokens.left >= 1.0;
        tokens.left -= f64::from(may);
        may
    }

    /// Returns whether there were so many different notes lately that they are combined into one event.
    fn is_combined(&mut self, similar: &Similar, note: &str, now: Instant) -> bool {
        let is_old = |notes: &Notes| now - notes.last > SIMILAR_WITHIN;
        if self.similar.get(similar, now).is_none_or(|notes| is_old(notes)) {
            self.similar.insert(similar.clone(), Notes { seen: Vec::new(), last: now }, now);
        }
        let Some(notes) = self.similar.get(similar, now) else { return false };
        notes.last = now;
        if !notes.seen.iter().any(|seen| seen == note) && notes.seen.len() < SIMILAR_NOTES {
            notes.seen.push(note.to_owned());
        }
        notes.seen.len() >= SIMILAR_NOTES
    }
}

impl StoredEvent {
    /// Returns when a deferred count is written: when the series is idle, or every half hour.
    fn due(&self) -> Instant {
        (self.last_seen + SERIES_IDLE).min(self.written + SERIES_REFRESH)
    }
}

impl Similar {
    fn of(recorded: &Recorded) -> Self {
        let event = &recorded.event;
        Self {
            regarding: Object::of(&recorded.regarding),
            related: event.related.as_ref().map(Object::of),
            kind: event.kind,
            reason: event.reason.clone(),
            action: event.action.clone(),
        }
    }
}

impl Series {
    fn of(recorded: &Recorded, similar: Similar, is_core: bool, combined: bool) -> Self {
        let field_path = |object: &ObjectReference| object.field_path.clone().filter(|_| !combined);
        Self {
            similar,
            field_path: field_path(&recorded.regarding),
            related_field_path: recorded.event.related.as_ref().and_then(field_path),
            note: (is_core && !combined).then(|| recorded.event.note.clone()),
        }
    }
}

impl Object {
    fn of(reference: &ObjectReference) -> Self {
        let ObjectReference { api_version, kind, namespace, name, uid, .. } = reference.clone();
        Self { api_version, kind, namespace, name, uid }
    }
}

/// A map with a bounded size that removes the least recently used entries.
struct Bounded<K, V> {
    entries: HashMap<K, (V, Instant), foldhash::fast::RandomState>,
}

impl<K: Eq + Hash, V> Bounded<K, V> {
    fn get(&mut self, key: &K, now: Instant) -> Option<&mut V> {
        let (value, used) = self.entries.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn insert(&mut self, key: K, value: V, now: Instant) {
        if self.entries.len() >= CAPACITY {
            let mut times: Vec<Instant> = self.entries.values().map(|(_, used)| *used).collect();
            let (_, middle, _) = times.select_nth_unstable(CAPACITY / 4);
            let oldest = *middle;
            self.entries.retain(|_, (_, used)| *used > oldest);
        }
        self.entries.insert(key, (value, now));
    }
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::default() }
    }
}

/// The burst of events about one object, and the time after which one more is allowed.
const SPAM_BURST: f64 = 25.0;
const SPAM_REFILL: Duration = Duration::from_secs(5 * 60);
/// This number of different notes, each within this time after the one before, is combined into one event.
const SIMILAR_NOTES: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_secs(10 * 60);
const COMBINED: &str = "(combined from similar events): ";
/// A series ends when it was idle for this time. Until then, its count is written this often.
const SERIES_IDLE: Duration = Duration::from_secs(6 * 60);
const SERIES_REFRESH: Duration = Duration::from_secs(30 * 60);
/// The number of objects, notes and series that are stored.
const CAPACITY: usize = 4096;
