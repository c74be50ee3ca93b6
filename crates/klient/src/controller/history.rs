//! The recent turns of each key, in bounded memory.
//!
//! There is one small record per key, and a ring of turns that all keys of a controller share. A key has at most
//! [`HistoryLimits::turns_per_key`] turns in the ring: a key that loops replaces its own oldest turn, and not those of others. What must
//! hold: a record of an idle key takes less than 150 bytes, and recording a turn takes one lock and no search.

#[cfg(test)]
mod tests;

use std::{
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use klient_core::ObjectKey;
use tokio::time::Instant;

use super::{reason::Reasons, ring::Ring};
use crate::writes::Write;

/// The limits of a controller's history.
///
/// ```
/// use klient::controller::HistoryLimits;
///
/// let limits = HistoryLimits::default().turns(10_000).turns_per_key(32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryLimits {
    /// The number of keys; 250,000 by default. Beyond it, keys without recent turns are forgotten.
    pub keys: usize,
    /// The number of turns of all keys together; 4,096 by default.
    pub turns: usize,
    /// The number of turns of one key; 16 by default.
    pub turns_per_key: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { keys: 250_000, turns: 4096, turns_per_key: 16 }
    }
}

impl HistoryLimits {
    /// Sets the number of keys.
    #[must_use]
    pub fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the number of turns of all keys together.
    #[must_use]
    pub fn turns(mut self, turns: usize) -> Self {
        self.turns = turns;
        self
    }

    /// Sets the number of turns of one key.
    #[must_use]
    pub fn turns_per_key(mut self, turns: usize) -> Self {
        self.turns_per_key = turns;
        self
    }
}

/// The history of one controller.
pub(super) struct History {
    limits: HistoryLimits,
    /// The time that records count from.
    start: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    hasher: RandomState,
    records: Vec<Option<KeyRecord>>,
    free: Vec<u32>,
    table: HashTable<u32>,
    ring: Ring<PastTurn>,
    /// Names of predicates and sources. A record has their positions.
    names: Vec<Arc<str>>,
    /// Where the search for a key to forget begins.
    hand: usize,
}

/// The record of one key. Times are in milliseconds since the start of the history.
#[derive(Debug)]
struct KeyRecord {
    key: ObjectKey,
    /// The oldest and newest turns in the ring, if there are any.
    oldest: u32,
    newest: u32,
    turns: u32,
    failures: u32,
    slowest_us: u32,
    /// The minute of the last turn, and the number of turns in this minute and in the one before.
    minute: u32,
    in_minute: u16,
    in_last_minute: u16,
    ended_ms: u64,
    seen: u64,
    filtered_ms: u64,
    filtered_version: u64,
    filtered_count: u32,
    filtered_by: u16,
    filtered_source: u16,
    kept: u16,
    result: PastResultKind,
    is_absent: bool,
}

/// A turn that has ended.
#[derive(Clone, Debug)]
pub(super) struct PastTurn {
    /// The slot of the key's record.
    record: u32,
    pub(super) ended: Instant,
    pub(super) took: Duration,
    /// How long the key was queued, and how long the turn waited for own writes.
    pub(super) queued: Option<Duration>,
    pub(super) waited: Duration,
    pub(super) reasons: Reasons,
    /// The version of the object that the cache had; `None` if it had none, or one that is not a number.
    pub(super) seen: Option<u64>,
    pub(super) result: PastResult,
    pub(super) next: Option<Duration>,
    pub(super) writes: Vec<Write>,
    pub(super) writes_not_stored: usize,
}

/// The result of a past turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PastResult {
    #[default]
    Succeeded,
    Failed(Box<str>),
    Terminal(Box<str>),
    Panicked(Box<str>),
    TimedOut,
    LeadershipLost,
}

/// A result without its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PastResultKind {
    None,
    Succeeded,
    Failed,
    Terminal,
}

/// The facts about a turn that its worker knows.
#[derive(Default)]
pub(super) struct EndedTurn {
    pub(super) took: Duration,
    pub(super) queued: Option<Duration>,
    pub(super) waited: Duration,
    pub(super) reasons: Reasons,
    pub(super) seen: Option<u64>,
    pub(super) is_absent: bool,
    /// The version of the key's own object after the writes of the turn.
    pub(super) own_version: Option<u64>,
    pub(super) result: PastResult,
    pub(super) next: Option<Duration>,
    pub(super) writes: Vec<Write>,
}

/// An event that a predicate ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filtered {
    pub(super) at: Instant,
    pub(super) predicate: Arc<str>,
    pub(super) source: Arc<str>,
    pub(super) version: Option<u64>,
    pub(super) count: u32,
}

/// The whole history of one key.
#[derive(Clone, Debug)]
pub(super) struct KeyHistory {
    pub(super) turns: u32,
    pub(super) failures: u32,
    pub(super) per_minute: u32,
    pub(super) ended: Option<Instant>,
    pub(super) seen: Option<u64>,
    pub(super) result: PastResultKind,
    pub(super) is_absent: bool,
    pub(super) filtered: Option<Filtered>,
    /// The newest first.
    pub(super) recent: Vec<PastTurn>,
}

/// The numbers of one key, for lists of notable keys.
#[derive(Clone, Debug)]
pub(super) struct KeyNumbers {
    pub(super) key: ObjectKey,
    pub(super) turns: u32,
    pub(super) failures: u32,
    pub(super) slowest: Duration,
    pub(super) per_minute: u32,
    pub(super) result: PastResultKind,
}

/// The notable keys of a controller, each list with the most notable first.
#[derive(Debug, Default)]
pub(super) struct Notable {
    pub(super) slowest: Vec<KeyNumbers>,
    pub(super) failing: Vec<KeyNumbers>,
    pub(super) busiest: Vec<KeyNumbers>,
}

/// The size of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistorySize {
    pub(super) keys: usize,
    pub(super) turns: usize,
    /// The memory of the records and of their table, in bytes. Turns are not included.
    pub(super) key_bytes: usize,
}

impl History {
    pub(super) fn new(limits: HistoryLimits) -> Self {
        let limits = HistoryLimits {
            keys: limits.keys.clamp(1, u32::MAX as usize / 2),
            turns: limits.turns.clamp(1, u32::MAX as usize / 2),
            turns_per_key: limits.turns_per_key.clamp(1, u16::MAX.into()),
        };
        let inner = Inner {
            hasher: RandomState::default(),
            records: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
            ring: Ring::new(limits.turns),
            names: Vec::new(),
            hand: 0,
        };
        Self { limits, start: Instant::now(), inner: Mutex::new(inner) }
    }

    /// Records the end of a turn.
    pub(super) fn ended(&self, key: &ObjectKey, turn: EndedTurn) {
        let now = Instant::now();
        let EndedTurn { took, queued, waited, reasons, seen, is_absent, own_version, mut result, next, mut writes } =
            turn;
        result.shorten();
        let writes_not_stored = writes.len().saturating_sub(MAX_WRITES);
        writes.truncate(MAX_WRITES);
        let kind = result.kind();
        let inner = &mut *self.lock();
        let id = self.record_of(inner, key);
        let past = PastTurn {
            record: id,
            ended: now,
            took,
            queued,
            waited,
            reasons,
            seen,
            result,
            next,
            writes,
            writes_not_stored,
        };
        inner.push(id, past, self.limits.turns_per_key);
        let ended_ms = self.millis(now);
        let Some(record) = inner.records[id as usize].as_mut() else { return };
        record.turns = record.turns.saturating_add(1);
        record.failures = record.failures.saturating_add(u32::from(kind != PastResultKind::Succeeded));
        record.slowest_us = record.slowest_us.max(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        record.count_minute(u32::try_from(ended_ms / 60_000).unwrap_or(u32::MAX));
        (record.ended_ms, record.seen) = (ended_ms, seen.max(own_version).unwrap_or_default());
        (record.result, record.is_absent) = (kind, is_absent);
    }

    /// Records that a predicate ignored an event.
    pub(super) fn filtered(&self, key: &ObjectKey, predicate: &str, source: &Arc<str>, version: Option<u64>) {
        let now = self.millis(Instant::now());
        let inner = &mut *self.lock();
        let (predicate, source) = (inner.name(predicate), inner.name(source));
        let id = self.record_of(inner, key);
        let Some(record) = inner.records[id as usize].as_mut() else { return };
        (record.filtered_ms, record.filtered_version) = (now, version.unwrap_or_default());
        (record.filtered_by, record.filtered_source) = (predicate, source);
        record.filtered_count = record.filtered_count.saturating_add(1);
    }

    /// Returns the history of a key, if it has one.
    pub(super) fn of(&self, key: &ObjectKey) -> Option<KeyHistory> {
        let minute = self.minute();
        let inner = self.lock();
        let record = inner.find(key, inner.hasher.hash_one(key)).and_then(|id| inner.records[id as usize].as_ref())?;
        let name = |index: u16| inner.names.get(usize::from(index)).cloned().unwrap_or_else(|| Arc::from("unknown"));
        let filtered = (record.filtered_count > 0).then(|| Filtered {
            at: self.instant(record.filtered_ms),
            predicate: name(record.filtered_by),
            source: name(record.filtered_source),
            version: Some(record.filtered_version).filter(|version| *version > 0),
            count: record.filtered_count,
        });
        let mut recent: Vec<PastTurn> = inner.ring.chain(record.oldest).take(record.kept.into()).cloned().collect();
        recent.reverse();
        Some(KeyHistory {
            turns: record.turns,
            failures: record.failures,
            per_minute: record.per_minute(minute),
            ended: (record.turns > 0).then(|| self.instant(record.ended_ms)),
            seen: Some(record.seen).filter(|seen| *seen > 0),
            result: record.result,
            is_absent: record.is_absent,
            filtered,
            recent,
        })
    }

    /// Returns the keys that take longest, fail most often and run most often.
    pub(super) fn notable(&self, limit: usize) -> Notable {
        let minute = self.minute();
        let inner = self.lock();
        let records = || inner.records.iter().flatten();
        let top = |weight: &dyn Fn(&KeyRecord) -> u32| {
            let mut best: Vec<(u32, &KeyRecord)> = Vec::new();
            for record in records() {
                let value = weight(record);
                if value == 0 || (best.len() >= limit && best.last().is_some_and(|(least, _)| *least >= value)) {
                    continue;
                }
                let position = best.partition_point(|(other, _)| *other >= value);
                best.insert(position, (value, record));
                best.truncate(limit);
            }
            best.into_iter().map(|(_, record)| record.numbers(minute)).collect::<Vec<_>>()
        };
        Notable {
            slowest: top(&|record| record.slowest_us),
            failing: top(&|record| record.failures),
            busiest: top(&|record| record.per_minute(minute)),
        }
    }

    /// Returns at most `limit` keys that contain a text, in the order of the table.
    pub(super) fn search(&self, text: &str, limit: usize) -> Vec<KeyNumbers> {
        let minute = self.minute();
        let inner = self.lock();
        let matching = inner.records.iter().flatten().filter(|record| record.key.as_str().contains(text));
        matching.take(limit).map(|record| record.numbers(minute)).collect()
    }

    pub(super) fn size(&self) -> HistorySize {
        let inner = self.lock();
        let records = inner.records.capacity() * size_of::<Option<KeyRecord>>();
        HistorySize {
            keys: inner.table.len(),
            turns: inner.ring.len(),
            key_bytes: records + inner.table.allocation_size() + inner.free.capacity() * size_of::<u32>(),
        }
    }

    /// Returns the slot of a key's record. Creates it if necessary, and forgets another key at the limit.
    fn record_of(&self, inner: &mut Inner, key: &ObjectKey) -> u32 {
        let hash = inner.hasher.hash_one(key);
        if let Some(id) = inner.find(key, hash) {
            return id;
        }
        if inner.table.len() >= self.limits.keys {
            inner.forget_one();
        }
        let id = inner.free.pop().unwrap_or_else(|| {
            if inner.records.len() == inner.records.capacity() {
                // Smaller steps than a `Vec` takes by itself: the memory is bounded per key.
                inner.records.reserve_exact(inner.records.len() / 4 + 64);
            }
            inner.records.push(None);
            inner.records.len() as u32 - 1
        });
        inner.records[id as usize] = Some(KeyRecord::new(key.clone()));
        let Inner { table, records, hasher, .. } = inner;
        let hash_of = |id: &u32| records[*id as usize].as_ref().map_or(0, |record| hasher.hash_one(&record.key));
        table.insert_unique(hash, id, hash_of);
        id
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    fn minute(&self) -> u32 {
        u32::try_from(self.millis(Instant::now()) / 60_000).unwrap_or(u32::MAX)
    }

    fn instant(&self, millis: u64) -> Instant {
        crate::deadline::after(self.start, Duration::from_millis(millis))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn find(&self, key: &ObjectKey, hash: u64) -> Option<u32> {
        let is_key = |id: &u32| self.records[*id as usize].as_ref().is_some_and(|record| record.key == *key);
        self.table.find(hash, is_key).copied()
    }

    /// Adds a turn to the ring: in place of the key's oldest one at its limit, and of the oldest of all if the ring is full.
    fn push(&mut self, id: u32, turn: PastTurn, per_key: usize) {
        let oldest = self.records[id as usize]
            .as_ref()
            .and_then(|record| (usize::from(record.kept) >= per_key).then_some(record.oldest));
        if let Some(slot) = oldest.or_else(|| self.ring.is_full().then(|| self.ring.oldest()).flatten()) {
            self.remove_turn(slot, id);
        }
        let Some(record) = self.records[id as usize].as_mut() else { return };
        let slot = self.ring.push(turn, (record.kept > 0).then_some(record.newest));
        record.newest = slot;
        if record.kept == 0 {
            record.oldest = slot;
        }
        record.kept += 1;
    }

    /// Removes a turn, which is the oldest one of its key. Forgets the key if its object does not exist, unless it is `current`.
    fn remove_turn(&mut self, slot: u32, current: u32) {
        let Some((turn, newer)) = self.ring.remove(slot) else { return };
        let Some(record) = self.records[turn.record as usize].as_mut() else { return };
        record.kept -= 1;
        record.oldest = newer.unwrap_or_default();
        if record.kept == 0 && record.is_absent && turn.record != current {
            self.forget(turn.record);
        }
    }

    /// Forgets a key without turns; or, if all of the next ones have turns, any key.
    fn forget_one(&mut self) {
        let length = self.records.len().max(1);
        let candidates = (0..length.min(SEARCHED)).map(|step| (self.hand + step) % length);
        let is_idle = |index: &usize| self.records[*index].as_ref().is_some_and(|record| record.kept == 0);
        let chosen = candidates.clone().find(is_idle).or_else(|| {
            let mut candidates = candidates;
            candidates.find(|index| self.records[*index].is_some())
        });
        let Some(chosen) = chosen else { return };
        self.hand = (chosen + 1) % length;
        while let Some(record) = &self.records[chosen]
            && record.kept > 0
        {
            let oldest = record.oldest;
            self.remove_turn(oldest, chosen as u32);
        }
        self.forget(chosen as u32);
    }

    fn forget(&mut self, id: u32) {
        let Some(record) = self.records[id as usize].take() else { return };
        let hash = self.hasher.hash_one(&record.key);
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.free.push(id);
    }

    /// Returns the position of a name.
    fn name(&mut self, name: &str) -> u16 {
        if let Some(index) = self.names.iter().position(|known| **known == *name) {
            return index as u16;
        }
        if self.names.len() >= MAX_NAMES {
            return u16::MAX;
        }
        self.names.push(name.into());
        self.names.len() as u16 - 1
    }
}

impl KeyRecord {
    fn new(key: ObjectKey) -> Self {
        Self {
            key,
            oldest: 0,
            newest: 0,
            turns: 0,
            failures: 0,
            slowest_us: 0,
            minute: 0,
            in_minute: 0,
            in_last_minute: 0,
            ended_ms: 0,
            seen: 0,
            filtered_ms: 0,
            filtered_version: 0,
            filtered_count: 0,
            filtered_by: 0,
            filtered_source: 0,
            kept: 0,
            result: PastResultKind::None,
            is_absent: false,
        }
    }

    fn count_minute(&mut self, minute: u32) {
        if minute != self.minute {
            self.in_last_minute = if minute == self.minute.saturating_add(1) { self.in_minute } else { 0 };
            (self.minute, self.in_minute) = (minute, 0);
        }
        self.in_minute = self.in_minute.saturating_add(1);
    }

    /// Returns the number of turns in this minute, or in the one before if there were more.
    fn per_minute(&self, now: u32) -> u32 {
        match now.saturating_sub(self.minute) {
            0 => self.in_minute.max(self.in_last_minute).into(),
            1 => self.in_minute.into(),
            _ => 0,
        }
    }

    fn numbers(&self, minute: u32) -> KeyNumbers {
        KeyNumbers {
            key: self.key.clone(),
            turns: self.turns,
            failures: self.failures,
            slowest: Duration::from_micros(self.slowest_us.into()),
            per_minute: self.per_minute(minute),
            result: self.result,
        }
    }
}

impl PastResult {
    pub(super) fn kind(&self) -> PastResultKind {
        match self {
            Self::Succeeded => PastResultKind::Succeeded,
            Self::Terminal(_) => PastResultKind::Terminal,
            Self::Failed(_) | Self::Panicked(_) | Self::TimedOut | Self::LeadershipLost => PastResultKind::Failed,
        }
    }

    /// Returns the message of a failure.
    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Succeeded => None,
            Self::Failed(text) | Self::Terminal(text) | Self::Panicked(text) => Some(text),
            Self::TimedOut => Some("the reconcile timed out"),
            Self::LeadershipLost => Some("this process lost leadership"),
        }
    }

    /// Limits the length of the message.
    fn shorten(&mut self) {
        if let Self::Failed(text) | Self::Terminal(text) | Self::Panicked(text) = self
            && text.len() > MAX_MESSAGE
        {
            *text = format!("{}...", &text[..text.floor_char_boundary(MAX_MESSAGE)]).into();
        }
    }
}

/// The longest message of an error that is stored, in bytes.
const MAX_MESSAGE: usize = 1024;
/// The number of writes of one turn that are stored.
const MAX_WRITES: usize = 8;
/// The number of names of predicates and sources.
const MAX_NAMES: usize = 1024;
/// The number of records that are searched for a key to forget.
const SEARCHED: usize = 64;
