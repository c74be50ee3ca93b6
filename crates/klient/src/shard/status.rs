//! The status of a group, as one of its processes sees it.

use std::fmt;

use klient_core::ObjectKey;

use super::{
    board::Board,
    lease::{Phase, Record, View},
    progress::{Progress, State},
    slot::Slot,
    table,
};

/// The status of a group, as one of its replicas sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardStatus {
    /// The name of the group.
    pub group: String,
    /// The name of this replica as a member. Empty before it has joined. A replica whose Lease was lost joins under another name.
    pub member: String,
    /// The replica that coordinates, if one does.
    pub coordinator: Option<String>,
    /// Whether this replica coordinates.
    pub coordinates: bool,
    /// The number of the newest table that this replica obeys. `None` before the first.
    pub generation: Option<u64>,
    /// Whether the coordinator, if it is this replica, has found no valid table, and waits before it starts with an empty one.
    pub table_lost: bool,
    /// The number of slots that this replica works on.
    pub open: usize,
    /// The number of slots that this replica owns and has not begun to work on: its caches are not current, or its Lease was not renewed.
    pub opening: usize,
    /// The number of slots that were taken away from this replica, and on which its reconciles still run.
    pub draining: usize,
    /// The number of slots that belong to no living member.
    pub orphans: usize,
    /// The members of the group.
    pub members: Vec<MemberStatus>,
    /// The slots that move from one member to another.
    pub moves: Vec<SlotMove>,
    /// The number of times that this replica saw the shard key of an object change, such as its label. Until all replicas see it, two of
    /// them may act on the object.
    pub changed_keys: u64,
    /// The last object whose shard key changed.
    pub last_changed_key: Option<ObjectKey>,
    /// The list that slots that are opening wait for, if they wait for one of a [narrowed
    /// cache](crate::controller::ControllerBuilder::cache_own_shard). They wait as long as it takes.
    pub awaited: Option<String>,
    /// The last failure of this replica, until it is over.
    pub problem: Option<String>,
}

/// The status of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The name of the member, which is that of its Lease.
    pub name: String,
    /// The name of the replica that people know, such as that of its pod.
    pub identity: String,
    /// The state of the member.
    pub state: MemberState,
    /// The share of the member, relative to that of others.
    pub weight: u32,
    /// The number of slots that the member owns.
    pub slots: usize,
    /// The newest table that the member has acknowledged.
    pub obeyed: u64,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberState {
    /// The member works on its slots.
    Working,
    /// The member gives its slots away, because its process shuts down.
    Leaving,
    /// The member has ended, and gave its Lease back.
    Released,
    /// The member was silent, and a coordinator ended it.
    Fenced,
    /// The Lease of the member was edited by hand, or is missing.
    Unknown,
}

/// A slot that moves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotMove {
    /// The slot.
    pub slot: Slot,
    /// The member that finishes its work on the slot.
    pub from: String,
    /// The member that works on the slot afterwards.
    pub to: String,
    /// The reason of the move.
    pub reason: MoveReason,
}

/// The reason for which a slot moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveReason {
    /// The owner leaves the group.
    Leaving,
    /// The owner has more than its share.
    Balance,
}

impl ShardStatus {
    pub(super) fn new(group: &str, view: &View, progress: &Progress, board: &Board) -> Self {
        let State { member, table, opening, open, draining, awaited, problem } = progress.state();
        let (changed_keys, last_changed_key) = board.changed_keys();
        let slots = table.as_ref().map(|table| table.slots.as_slice()).unwrap_or_default();
        let members: Vec<MemberStatus> = view
            .values()
            .filter(|lease| lease.name != group)
            .map(|lease| {
                let record = Record::decode(&lease.data);
                let state = match &record {
                    Some(record) => match (record.phase, lease.holder.is_empty()) {
                        (Phase::Working, false) => MemberState::Working,
                        (Phase::Leaving, false) => MemberState::Leaving,
                        (Phase::Released, true) => MemberState::Released,
                        (Phase::Fenced, true) => MemberState::Fenced,
                        _ => MemberState::Unknown,
                    },
                    None => MemberState::Unknown,
                };
                let owned = slots.iter().filter(|slot| slot.holder() == Some(&lease.name)).count();
                let Record { identity, weight, obeyed, .. } = record.unwrap_or_default();
                MemberStatus { name: lease.name.clone(), identity, state, weight, slots: owned, obeyed }
            })
            .collect();
        let lives = |name: &str| {
            members.iter().any(|member| {
                member.name == name && matches!(member.state, MemberState::Working | MemberState::Leaving)
            })
        };
        let moves = Slot::all().zip(slots).filter_map(|(slot, entry)| match &entry.state {
            table::State::Moving { from, to } => {
                let leaving = members.iter().any(|m| *m.name == **from && m.state == MemberState::Leaving);
                let reason = if leaving { MoveReason::Leaving } else { MoveReason::Balance };
                Some(SlotMove { slot, from: from.to_string(), to: to.to_string(), reason })
            }
            _ => None,
        });
        Self {
            group: group.to_owned(),
            member,
            coordinator: view.get(group).map(|lease| lease.holder.clone()).filter(|holder| !holder.is_empty()),
            coordinates: progress.is_coordinating(),
            generation: table.as_ref().map(|table| table.generation),
            table_lost: progress.is_lost(),
            open,
            opening,
            draining,
            orphans: slots.iter().filter(|slot| !slot.holder().is_some_and(lives)).count(),
            moves: moves.collect(),
            members,
            changed_keys,
            last_changed_key,
            awaited,
            problem,
        }
    }
}

/// Writes the status in one line, for health checks.
impl fmt::Display for ShardStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let living = self.members.iter().filter(|member| member.state == MemberState::Working).count();
        write!(f, "{} of {} slots, {living} members", self.open, Slot::COUNT)?;
        if let Some(generation) = self.generation {
            write!(f, ", table {generation}")?;
        }
        for (count, name) in
            [(self.opening, "opening"), (self.draining, "draining"), (self.orphans, "without a member")]
        {
            if count > 0 {
                write!(f, ", {count} {name}")?;
            }
        }
        if let Some(awaited) = &self.awaited {
            write!(f, ", waiting for {awaited}")?;
        }
        match &self.problem {
            Some(problem) => write!(f, ", {problem}"),
            None => Ok(()),
        }
    }
}
