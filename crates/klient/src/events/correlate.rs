//! What becomes of an event: a new one, one more of a series, or nothing.
//!
//! The numbers are client-go's. What is remembered is bounded, and forgotten when it is old.

use std::hash::Hash;

use hashbrown::HashMap;
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use tokio::time::{Duration, Instant};

use super::{EventApi, EventKind, Recorded};

/// What was said so far.
pub(super) struct Correlator {
    api: EventApi,
    spam: Bounded<Object, Tokens>,
    similar: Bounded<Similar, Notes>,
    series: Bounded<Series, Said>,
}

/// Who an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Object {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// Events that differ only in their notes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Similar {
    regarding: Object,
    related: Option<Object>,
    kind: EventKind,
    reason: String,
    action: String,
}

/// Events that are one, said several times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Series {
    similar: Similar,
    /// Only the older form tells notes apart.
    note: Option<String>,
}

struct Tokens {
    left: f64,
    at: Instant,
}

struct Notes {
    seen: Vec<String>,
    since: Instant,
}

/// An event that was written.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: i32,
    pub(super) last: Timestamp,
    pub(super) last_seen: Instant,
    written: Instant,
    written_count: i32,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// A new event.
    Create(Series),
    /// That one was said again; its count is to be written.
    Repeat(Series, Said),
    /// That one was said again; it is enough to remember that for now.
    Remember,
    /// Too much was said about the object.
    Drop,
}

impl Correlator {
    pub(super) fn new(api: EventApi) -> Self {
        Self { api, spam: Bounded::default(), similar: Bounded::default(), series: Bounded::default() }
    }

    /// Decides; may change the note to one that stands for several.
    pub(super) fn judge(&mut self, recorded: &mut Recorded) -> Verdict {
        let now = Instant::now();
        let similar = Similar::of(recorded);
        if self.api == EventApi::Core && !self.may_speak(&similar.regarding, now) {
            return Verdict::Drop;
        }
        if self.api == EventApi::Core && self.is_one_of_many(&similar, &recorded.event.note, now) {
            recorded.event.note = format!("{COMBINED}{}", recorded.event.note);
        }
        let combined = recorded.event.note.starts_with(COMBINED);
        let note = (self.api == EventApi::Core && !combined).then(|| recorded.event.note.clone());
        let series = Series { similar, note };
        let is_core = self.api == EventApi::Core;
        let going_on = |said: &&mut Said| is_core || now - said.last_seen <= SERIES_IDLE;
        if let Some(said) = self.series.get(&series, now).filter(going_on) {
            said.count = said.count.saturating_add(1);
            (said.last, said.last_seen) = (recorded.at, now);
            if !is_core && said.count != 2 && now - said.written < SERIES_REFRESH {
                return Verdict::Remember;
            }
            (said.written, said.written_count) = (now, said.count);
            return Verdict::Repeat(series, said.clone());
        }
        if is_core || self.may_speak(&series.similar.regarding, now) { Verdict::Create(series) } else { Verdict::Drop }
    }

    /// Notes that an event was written.
    pub(super) fn said(&mut self, series: Series, namespace: String, name: String, at: Timestamp) {
        let now = Instant::now();
        let said = Said { namespace, name, count: 1, last: at, last_seen: now, written: now, written_count: 1 };
        self.series.insert(series, said, now);
    }

    /// Forgets a series: its event is gone.
    pub(super) fn forget(&mut self, series: &Series) {
        self.series.entries.remove(series);
    }

    /// When the next count has to be written, of those that are only remembered.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let unwritten = self.series.entries.values().filter(|(said, _)| said.count > said.written_count);
        unwritten.map(|(said, _)| said.due()).min()
    }

    /// The counts that have to be written now; all that are not, at the end.
    pub(super) fn due(&mut self, at_end: bool) -> Vec<Said> {
        let now = Instant::now();
        let mut due = Vec::new();
        for (said, _) in self.series.entries.values_mut() {
            if said.count > said.written_count && (at_end || said.due() <= now) {
                (said.written, said.written_count) = (now, said.count);
                due.push(said.clone());
            }
        }
        due
    }

    fn may_speak(&mut self, object: &Object, now: Instant) -> bool {
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

    /// Whether so many different notes were said lately that one stands for all.
    fn is_one_of_many(&mut self, similar: &Similar, note: &str, now: Instant) -> bool {
        let is_old = |notes: &Notes| now - notes.since > SIMILAR_WITHIN;
        if self.similar.get(similar, now).is_none_or(|notes| is_old(notes)) {
            self.similar.insert(similar.clone(), Notes { seen: Vec::new(), since: now }, now);
        }
        let Some(notes) = self.similar.get(similar, now) else { return false };
        if !notes.seen.iter().any(|seen| seen == note) && notes.seen.len() < SIMILAR_NOTES {
            notes.seen.push(note.to_owned());
        }
        notes.seen.len() >= SIMILAR_NOTES
    }
}

impl Said {
    /// When a count that is only remembered is written: when the series seems over, or every half hour.
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

impl Object {
    fn of(reference: &ObjectReference) -> Self {
        let ObjectReference { api_version, kind, namespace, name, uid, .. } = reference.clone();
        Self { api_version, kind, namespace, name, uid }
    }
}

/// A map that forgets what was not used for longest when there is too much.
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
        if self.entries.len() >= REMEMBERED {
            let mut times: Vec<Instant> = self.entries.values().map(|(_, used)| *used).collect();
            let (_, middle, _) = times.select_nth_unstable(REMEMBERED / 4);
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

/// How many events about one object are sent at once, and how long until there may be one more.
const SPAM_BURST: f64 = 25.0;
const SPAM_REFILL: Duration = Duration::from_secs(5 * 60);
/// So many different notes within that time are one event.
const SIMILAR_NOTES: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_secs(10 * 60);
const COMBINED: &str = "(combined from similar events): ";
/// A series is over when nothing was said for so long; until then, its count is written this often.
const SERIES_IDLE: Duration = Duration::from_secs(6 * 60);
const SERIES_REFRESH: Duration = Duration::from_secs(30 * 60);
/// How many objects, notes and series are remembered.
const REMEMBERED: usize = 4096;
