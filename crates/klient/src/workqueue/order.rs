//! The order in which ready keys are handed out: by priority, oldest first, groups in turn.
//!
//! Invariant: no priority level starves. A level that was passed over [`PATIENCE`] times is served once, whatever is
//! above it. So a flood of urgent keys slows other levels down to a known share, and a backlog of low-priority keys never
//! delays urgent ones, however old it is. Counting hand-outs instead of time needs no clock, and gives the same order on any
//! machine.
//!
//! A key that moves to another level leaves a stale entry behind. Stale entries are recognised by their stamps, and never
//! outnumber live ones by much.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// A slot, and the stamp of the turn that this entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) stamp: u32,
}

/// The ready keys in order.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Highest priority first. Empty levels are kept: there are at most 256.
    levels: Vec<Level>,
    live: usize,
}

#[derive(Debug)]
struct Level {
    priority: i8,
    /// How often another level was served while this one had keys.
    passed: u32,
    live: usize,
    /// The number of entries, stale ones included.
    entries: usize,
    lanes: Lanes,
}

/// The entries of a level: one line, or one line per group, served in turn.
#[derive(Debug, Default)]
struct Lanes {
    single: VecDeque<Entry>,
    groups: HashMap<u64, VecDeque<Entry>, foldhash::fast::RandomState>,
    /// The groups that have entries, the next one first.
    turns: VecDeque<u64>,
}

impl Order {
    /// Returns the number of ready keys.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Appends an entry to its level, and to its group if it has one.
    #[inline(always)]
    pub(super) fn push(&mut self, priority: i8, group: Option<u64>, entry: Entry) {
        let index = self.level(priority);
        let level = &mut self.levels[index];
        level.live += 1;
        level.entries += 1;
        self.live += 1;
        match group {
            None => level.lanes.single.push_back(entry),
            Some(group) => level.lanes.push_in_group(group, entry),
        }
    }

    /// Notes that an entry of this level has become stale. `is_live` tells which of the other entries are live.
    pub(super) fn mark_stale(&mut self, priority: i8, is_live: impl Fn(Entry) -> bool) {
        let index = self.level(priority);
        let level = &mut self.levels[index];
        level.live -= 1;
        self.live -= 1;
        if level.entries > 2 * level.live + SLACK {
            level.lanes.retain(is_live);
            level.entries = level.live;
        }
    }

    /// Removes and returns the next live entry.
    #[inline]
    pub(super) fn pop(&mut self, is_live: impl Fn(Entry) -> bool) -> Option<Entry> {
        if self.live == 0 {
            return None;
        }
        let index = if self.levels.len() == 1 { 0 } else { self.choose()? };
        let level = &mut self.levels[index];
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

    /// Returns the number of live entries that are handed out before an entry, apart from those of lower levels that were passed over
    /// for long.
    pub(super) fn ahead_of(
        &self,
        priority: i8,
        group: Option<u64>,
        entry: Entry,
        is_live: impl Fn(Entry) -> bool,
    ) -> usize {
        let above: usize =
            self.levels.iter().take_while(|level| level.priority > priority).map(|level| level.live).sum();
        let Some(level) = self.levels.iter().find(|level| level.priority == priority) else { return above };
        above + level.lanes.ahead_of(group, entry, is_live)
    }

    /// Returns the level to serve, and counts for the others that they were passed over.
    fn choose(&mut self) -> Option<usize> {
        let waiting = || self.levels.iter().enumerate().filter(|(_, level)| level.live > 0);
        // Of several levels that were passed over equally often, the one of highest priority comes first.
        let oldest =
            waiting().rev().max_by_key(|(_, level)| level.passed).filter(|(_, level)| level.passed >= PATIENCE);
        let (chosen, _) = oldest.or_else(|| waiting().next())?;
        for (index, level) in self.levels.iter_mut().enumerate() {
            level.passed = if index == chosen || level.live == 0 { 0 } else { level.passed.saturating_add(1) };
        }
        Some(chosen)
    }

    #[inline]
    fn level(&mut self, priority: i8) -> usize {
        // Most queues have one level.
        if self.levels.first().is_some_and(|level| level.priority == priority) {
            return 0;
        }
        match self.levels.binary_search_by(|level| priority.cmp(&level.priority)) {
            Ok(index) => index,
            Err(index) => self.new_level(index, priority),
        }
    }

    #[cold]
    fn new_level(&mut self, index: usize, priority: i8) -> usize {
        self.levels.insert(index, Level { priority, passed: 0, live: 0, entries: 0, lanes: Lanes::default() });
        index
    }
}

impl Lanes {
    // Not inlined: queues without groups stay small.
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

    fn ahead_of(&self, group: Option<u64>, entry: Entry, is_live: impl Fn(Entry) -> bool) -> usize {
        let before = |line: &VecDeque<Entry>| {
            line.iter().take_while(|other| **other != entry).filter(|other| is_live(**other)).count()
        };
        let Some(group) = group else { return before(&self.single) };
        let Some(own) = self.groups.get(&group).map(before) else { return 0 };
        // Each other group has at most as many turns as this one until then, and one more if its turn comes earlier.
        let position = self.turns.iter().position(|turn| *turn == group).unwrap_or_default();
        let others = self.turns.iter().enumerate().filter(|(_, turn)| **turn != group);
        let lines = others.filter_map(|(index, turn)| Some((index, self.groups.get(turn)?)));
        let theirs = lines.map(|(index, line)| {
            let live = line.iter().filter(|other| is_live(**other)).count();
            live.min(own + usize::from(index < position))
        });
        own + theirs.sum::<usize>()
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
/// The number of stale entries below which they are not removed.
const SLACK: usize = 64;
