//! In which order ready keys are handed out: by priority, oldest first, groups in turn.
//!
//! What must hold: no level waits for ever. A level that was passed over [`PATIENCE`] times is served once, whatever is above
//! it. So a flood of urgent keys slows others down to a known share, and a backlog of lesser keys never gets in the way of
//! urgent ones, however old it is. Counting hand-outs instead of time needs no clock and gives the same order on any machine.
//!
//! A key that moves to another level leaves a stale entry behind. Stamps tell, and stale entries never outnumber live ones
//! by much.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// A slot, and which of its turns this entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) stamp: u32,
}

/// Ready keys.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Highest priority first. A level stays when it is empty: there are at most 256.
    levels: Vec<Level>,
    live: usize,
}

#[derive(Debug)]
struct Level {
    priority: i8,
    /// How often another level was served while this one had keys.
    passed: u32,
    live: usize,
    /// Stale ones included.
    entries: usize,
    lanes: Lanes,
}

/// One line, or one per group, served in turn.
#[derive(Debug, Default)]
struct Lanes {
    single: VecDeque<Entry>,
    groups: HashMap<u64, VecDeque<Entry>, foldhash::fast::RandomState>,
    /// Groups that have entries, the next one first.
    turns: VecDeque<u64>,
}

impl Order {
    /// How many keys are ready.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Puts a slot at the end of its level, and of its group where there are groups.
    #[inline(always)]
    pub(super) fn push(&mut self, priority: i8, group: Option<u64>, entry: Entry) {
        let place = self.level(priority);
        let level = &mut self.levels[place];
        level.live += 1;
        level.entries += 1;
        level.lanes.push(group, entry);
        self.live += 1;
    }

    /// Says that the entry of a slot in that level is stale from now on; `is_live` is asked about others.
    pub(super) fn leave(&mut self, priority: i8, is_live: impl Fn(Entry) -> bool) {
        let place = self.level(priority);
        let level = &mut self.levels[place];
        level.live -= 1;
        self.live -= 1;
        if level.entries > 2 * level.live + SLACK {
            level.lanes.retain(is_live);
            level.entries = level.live;
        }
    }

    /// Takes the next one that is not stale.
    #[inline]
    pub(super) fn pop(&mut self, is_live: impl Fn(Entry) -> bool) -> Option<Entry> {
        if self.live == 0 {
            return None;
        }
        let place = if self.levels.len() == 1 { 0 } else { self.choose()? };
        let level = &mut self.levels[place];
        loop {
            let entry = level.lanes.pop()?;
            level.entries -= 1;
            if is_live(entry) {
                level.live -= 1;
                self.live -= 1;
                return Some(entry);
            }
        }
    }

    /// The level whose turn it is; the others grow older.
    fn choose(&mut self) -> Option<usize> {
        let waiting = || self.levels.iter().enumerate().filter(|(_, level)| level.live > 0);
        // The first of several that are equally old is the one of highest priority.
        let oldest =
            waiting().rev().max_by_key(|(_, level)| level.passed).filter(|(_, level)| level.passed >= PATIENCE);
        let (chosen, _) = oldest.or_else(|| waiting().next())?;
        for (place, level) in self.levels.iter_mut().enumerate() {
            level.passed = if place == chosen || level.live == 0 { 0 } else { level.passed.saturating_add(1) };
        }
        Some(chosen)
    }

    #[inline]
    fn level(&mut self, priority: i8) -> usize {
        // Most queues have one.
        if self.levels.first().is_some_and(|level| level.priority == priority) {
            return 0;
        }
        match self.levels.binary_search_by(|level| priority.cmp(&level.priority)) {
            Ok(place) => place,
            Err(place) => self.new_level(place, priority),
        }
    }

    #[cold]
    fn new_level(&mut self, place: usize, priority: i8) -> usize {
        self.levels.insert(place, Level { priority, passed: 0, live: 0, entries: 0, lanes: Lanes::default() });
        place
    }
}

impl Lanes {
    #[inline]
    fn push(&mut self, group: Option<u64>, entry: Entry) {
        match group {
            None => self.single.push_back(entry),
            Some(group) => self.push_in_group(group, entry),
        }
    }

    // What groups need is kept out of the way of queues that have none.
    #[inline(never)]
    fn push_in_group(&mut self, group: u64, entry: Entry) {
        let line = self.groups.entry(group).or_default();
        if line.is_empty() {
            self.turns.push_back(group);
        }
        line.push_back(entry);
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        match self.single.pop_front() {
            Some(entry) => Some(entry),
            None => self.pop_of_group(),
        }
    }

    #[inline(never)]
    fn pop_of_group(&mut self) -> Option<Entry> {
        let group = self.turns.pop_front()?;
        let line = self.groups.get_mut(&group)?;
        let entry = line.pop_front();
        if line.is_empty() {
            self.groups.remove(&group);
        } else {
            self.turns.push_back(group);
        }
        entry
    }

    fn retain(&mut self, is_live: impl Fn(Entry) -> bool) {
        self.single.retain(|entry| is_live(*entry));
        self.groups.retain(|_, line| {
            line.retain(|entry| is_live(*entry));
            !line.is_empty()
        });
        let groups = &self.groups;
        self.turns.retain(|group| groups.contains_key(group));
    }
}

/// How often a level is passed over before it is served once.
pub(super) const PATIENCE: u32 = 16;
/// So many stale entries are not worth a look.
const SLACK: usize = 64;
