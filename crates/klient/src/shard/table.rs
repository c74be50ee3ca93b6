//! The table: which member owns each slot. It is stored in an annotation of the group's Lease.
//!
//! Invariant: a member that the newest table does not name for a slot never works on that slot. So a slot changes owners in two
//! steps, and [`plan`](super::plan) takes the second one only when the old owner has stopped.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::slot::{Slot, checksum};

/// The owners of all slots, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The number of this table. Each table has a higher one than all before it.
    pub(super) generation: u64,
    pub(super) slots: Vec<Assignment>,
}

/// The owner of one slot, and the generation since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) state: State,
    pub(super) since: u64,
}

/// The state of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No member works on the slot: the table was lost, and each member first has to obey a table without owners.
    Vacant,
    /// The member works on the slot.
    Owned(Arc<str>),
    /// The first member finishes its work, and the second member does not begin.
    Moving { from: Arc<str>, to: Arc<str> },
}

impl Table {
    /// Creates a table without owners.
    pub(super) fn vacant(generation: u64) -> Self {
        let vacant = Assignment { state: State::Vacant, since: generation };
        Self { generation, slots: vec![vacant; Slot::COUNT] }
    }

    pub(super) fn slot(&self, slot: Slot) -> &Assignment {
        // A table always has an entry for each slot: `decode` and `vacant` are the only sources of tables.
        &self.slots[slot.index()]
    }

    /// Returns whether a member may work on a slot.
    pub(super) fn is_owned_by(&self, slot: Slot, member: &str) -> bool {
        matches!(&self.slot(slot).state, State::Owned(owner) if **owner == *member)
    }

    /// Returns whether a member is named as the owner of any slot, or of a slot that moves from it.
    pub(super) fn names(&self, member: &str) -> bool {
        self.slots.iter().any(|slot| slot.holder() == Some(member))
    }

    /// Returns whether a member has a slot, or will have one.
    pub(super) fn mentions(&self, member: &str) -> bool {
        self.members().any(|name| name == member)
    }

    /// Returns the members that the table names, some of them more than once.
    pub(super) fn members(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().flat_map(|slot| [slot.holder(), slot.target()]).flatten()
    }

    /// Creates a table in which one member owns all slots, to show that tests notice it.
    pub(super) fn owned(generation: u64, member: &str) -> Self {
        let owned = Assignment { state: State::Owned(member.into()), since: generation };
        Self { generation, slots: vec![owned; Slot::COUNT] }
    }

    /// Takes both steps of each move at once, to show that tests notice it.
    pub(super) fn skip_handover(&mut self) {
        for slot in &mut self.slots {
            if let State::Moving { to, .. } = &slot.state {
                slot.state = State::Owned(Arc::clone(to));
            }
        }
    }

    /// Returns the text for the annotation.
    pub(super) fn encode(&self) -> String {
        let mut members: Vec<&str> = Vec::new();
        let mut number = |member: &str| -> usize { number_of(&mut members, self, member) };
        let mut runs: Vec<(String, usize)> = Vec::new();
        for Assignment { state, since } in &self.slots {
            let text = match state {
                State::Vacant => format!("-@{since}"),
                State::Owned(owner) => format!("{}@{since}", number(owner)),
                State::Moving { from, to } => format!("{}>{}@{since}", number(from), number(to)),
            };
            match runs.last_mut() {
                Some((last, count)) if *last == text => *count += 1,
                _ => runs.push((text, 1)),
            }
        }
        let runs: Vec<String> = runs.into_iter().map(|(text, count)| format!("{text}*{count}")).collect();
        let members = members.into_iter().map(str::to_owned).collect();
        seal(&Stored { generation: self.generation, members, slots: runs.join(" ") })
    }

    /// Reads the text of an annotation. Returns `None` if it is not a table, or was edited by hand.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let stored: Stored = unseal(text)?;
        let members: Vec<Arc<str>> = stored.members.iter().map(|member| member.as_str().into()).collect();
        let member = |text: &str| members.get(text.parse::<usize>().ok()?).cloned();
        let mut slots = Vec::with_capacity(Slot::COUNT);
        for run in stored.slots.split(' ') {
            let (entry, count) = run.split_once('*')?;
            let (state, since) = entry.split_once('@')?;
            let state = match state.split_once('>') {
                Some((from, to)) => State::Moving { from: member(from)?, to: member(to)? },
                None if state == "-" => State::Vacant,
                None => State::Owned(member(state)?),
            };
            let assignment = Assignment { state, since: since.parse().ok()? };
            let count: usize = count.parse().ok()?;
            if count > Slot::COUNT - slots.len() {
                return None;
            }
            slots.extend(std::iter::repeat_n(assignment, count));
        }
        (slots.len() == Slot::COUNT).then_some(Self { generation: stored.generation, slots })
    }
}

impl Assignment {
    /// Returns the member that may have work on the slot: its owner, also while the slot moves away.
    pub(super) fn holder(&self) -> Option<&str> {
        match &self.state {
            State::Vacant => None,
            State::Owned(owner) | State::Moving { from: owner, .. } => Some(owner),
        }
    }

    /// Returns the member that has the slot, or will have it.
    pub(super) fn target(&self) -> Option<&str> {
        match &self.state {
            State::Vacant => None,
            State::Owned(owner) | State::Moving { to: owner, .. } => Some(owner),
        }
    }
}

/// The stored form of a table: members by number, and slots in runs of equal entries.
#[derive(Serialize, Deserialize)]
struct Stored {
    generation: u64,
    members: Vec<String>,
    slots: String,
}

/// Returns the number of a member, and adds it to the list if it is new.
fn number_of<'a>(members: &mut Vec<&'a str>, table: &'a Table, member: &str) -> usize {
    if let Some(number) = members.iter().position(|known| *known == member) {
        return number;
    }
    members.extend(table.members().find(|name| *name == member));
    members.len() - 1
}

/// Returns a value as JSON with a checksum in front: an edit by hand is noticed, instead of obeyed.
pub(super) fn seal(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{:016x} {json}", checksum(&json))
}

/// Reads a value with its checksum.
pub(super) fn unseal<T: for<'a> Deserialize<'a>>(text: &str) -> Option<T> {
    let (sum, json) = text.split_once(' ')?;
    let sum = u64::from_str_radix(sum, 16).ok()?;
    (sum == checksum(json)).then(|| serde_json::from_str(json).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::vacant(7);
        for (number, slot) in table.slots.iter_mut().enumerate().take(200) {
            slot.state = match number % 3 {
                0 => State::Owned("web-a".into()),
                1 => State::Moving { from: "web-a".into(), to: "web-b".into() },
                _ => State::Owned("web-c".into()),
            };
            slot.since = 3;
        }
        table
    }

    #[test]
    fn table_survives_its_text() {
        for table in [table(), Table::vacant(u64::MAX)] {
            assert_eq!(Table::decode(&table.encode()), Some(table));
        }
        assert!(Table::vacant(1).encode().len() < 100);
    }

    #[test]
    fn table_that_was_edited_is_refused() {
        let text = table().encode();
        for edited in [
            String::new(),
            "{}".to_owned(),
            text.replace("web-b", "web-c"),
            text.replacen("\"generation\":7", "\"generation\":9", 1),
            seal(&Stored { generation: 1, members: vec![], slots: "0@1*256".to_owned() }),
            seal(&Stored { generation: 1, members: vec![], slots: "-@1*255".to_owned() }),
            seal(&Stored { generation: 1, members: vec![], slots: "-@1*18446744073709551615 -@1*9".to_owned() }),
        ] {
            assert_eq!(Table::decode(&edited), None, "{edited}");
        }
    }
}
