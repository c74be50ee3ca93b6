//! The next table, as a pure function of the present one and of the members.
//!
//! A slot gets another owner only if its present one has stopped for certain: it acknowledged a table that takes the slot away, or
//! it is [finished](Standing::Finished). Members keep what they have; only the excess over their share moves.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    slot::{Slot, affinity},
    table::{Assignment, State, Table},
};

/// A member, as the coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) standing: Standing,
    /// The share of the member, relative to that of others.
    pub(super) weight: u32,
    /// The generation of the newest table that the member has acknowledged.
    pub(super) obeyed: u64,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes slots.
    Working,
    /// It was started a moment ago. It takes slots that have no owner, if no other member can.
    Newcomer,
    /// It gives its slots away, or must not have any.
    Leaving,
    /// Its Lease is silent or was edited, and it may still work.
    Uncertain,
    /// It never works again: it released its Lease after its work, or it was silent for long enough and is fenced.
    Finished,
}

/// Returns the next table, or `None` if nothing changes. A member that is missing in `peers` counts as uncertain.
pub(super) fn next_table(table: &Table, peers: &BTreeMap<String, Peer>) -> Option<Table> {
    let receivers = receivers(peers);
    let mut next = Table { generation: table.generation + 1, slots: table.slots.clone() };
    // A table without owners is obeyed by every member before any slot gets an owner.
    let obeyed_by_all = |since: u64| {
        let mut living = peers.values().filter(|peer| peer.standing != Standing::Finished);
        living.all(|peer| peer.obeyed >= since && peer.standing != Standing::Uncertain)
    };
    let is_finished = |member: &str| peers.get(member).is_some_and(|peer| peer.standing == Standing::Finished);
    let leaves =
        |member: &str| peers.get(member).is_some_and(|peer| peer.standing == Standing::Leaving || peer.weight == 0);
    let is_receiver = |member: &str| receivers.contains_key(member);
    let mut homeless = Vec::new();
    let mut leaving = Vec::new();
    for slot in Slot::all() {
        let Assignment { state, since } = table.slot(slot);
        match state {
            State::Vacant if obeyed_by_all(*since) => homeless.push(slot),
            State::Vacant => {}
            State::Owned(owner) if is_finished(owner) => homeless.push(slot),
            State::Owned(owner) if leaves(owner) && !receivers.is_empty() => leaving.push(slot),
            State::Owned(_) => {}
            State::Moving { from, to } => {
                let stopped = is_finished(from) || peers.get(&**from).is_some_and(|peer| peer.obeyed >= *since);
                match (stopped, is_receiver(to)) {
                    (true, true) => next.own(slot, to),
                    (true, false) => homeless.push(slot),
                    // The old owner still works or drains, and its successor cannot take the slot: another one does.
                    (false, false) if !receivers.is_empty() => leaving.push(slot),
                    (false, _) => {}
                }
            }
        }
    }
    Balance::new(&mut next, &receivers).place(&homeless, &leaving);
    (next.slots != table.slots).then_some(next)
}

/// Returns the members that may get slots, with their weights.
fn receivers(peers: &BTreeMap<String, Peer>) -> BTreeMap<&str, u32> {
    let with = |standing: Standing| -> BTreeMap<&str, u32> {
        let chosen = peers.iter().filter(|(_, peer)| peer.standing == standing && peer.weight > 0);
        chosen.map(|(id, peer)| (id.as_str(), peer.weight)).collect()
    };
    let working = with(Standing::Working);
    if working.is_empty() { with(Standing::Newcomer) } else { working }
}

impl Table {
    fn own(&mut self, slot: Slot, owner: &str) {
        let since = self.generation;
        self.slots[slot.index()] = Assignment { state: State::Owned(owner.into()), since };
    }

    fn start_moving(&mut self, slot: Slot, to: &str) {
        let generation = self.generation;
        let entry = &mut self.slots[slot.index()];
        let Some(from) = entry.holder().map(Arc::<str>::from) else { return };
        if *from == *to {
            // A slot that was about to leave stays. Its owner may have stopped, and begins again.
            *entry = Assignment { state: State::Owned(from), since: generation };
            return;
        }
        // The generation from which on the owner has to acknowledge stays, if it was told before.
        let since = if matches!(entry.state, State::Moving { .. }) { entry.since } else { generation };
        *entry = Assignment { state: State::Moving { from, to: to.into() }, since };
    }
}

/// The shares of the members, while slots are placed.
struct Balance<'a> {
    table: &'a mut Table,
    /// How many slots each member still lacks. Negative if it has too many.
    lacking: BTreeMap<&'a str, i64>,
}

impl<'a> Balance<'a> {
    fn new(table: &'a mut Table, receivers: &BTreeMap<&'a str, u32>) -> Self {
        let mut held: BTreeMap<&str, i64> = receivers.keys().map(|member| (*member, 0)).collect();
        for slot in &table.slots {
            if let Some(count) = slot.target().and_then(|target| held.get_mut(target)) {
                *count += 1;
            }
        }
        let quotas = quotas(receivers, &held);
        let lacking = held.iter().map(|(member, held)| (*member, quotas[member] - held)).collect();
        Self { table, lacking }
    }

    /// Gives owners to slots without one, moves slots of members that leave, and then the excess of the others.
    fn place(mut self, homeless: &[Slot], leaving: &[Slot]) {
        for slot in homeless {
            if let Some(member) = self.take(*slot) {
                self.table.own(*slot, member);
            }
        }
        for slot in leaving {
            if let Some(member) = self.take(*slot) {
                self.table.start_moving(*slot, member);
            }
        }
        let rich: Vec<(&str, i64)> =
            self.lacking.iter().filter(|(_, lacking)| **lacking < 0).map(|(m, n)| (*m, *n)).collect();
        for (member, excess) in rich {
            let mut owned: Vec<Slot> = Slot::all().filter(|slot| self.table.is_owned_by(*slot, member)).collect();
            // Those go first that rendezvous hashing gives to others.
            owned.sort_by_key(|slot| affinity(*slot, member));
            for slot in owned.into_iter().take(usize::try_from(-excess).unwrap_or(0)) {
                let Some(receiver) = self.take(slot) else { return };
                self.table.start_moving(slot, receiver);
            }
        }
    }

    /// Chooses the member for a slot: of those that lack slots, the one that rendezvous hashing prefers.
    fn take(&mut self, slot: Slot) -> Option<&'a str> {
        let poor = self.lacking.iter().filter(|(_, lacking)| **lacking > 0);
        let member = poor.map(|(member, _)| *member).max_by_key(|member| affinity(slot, member))?;
        *self.lacking.get_mut(member)? -= 1;
        Some(member)
    }
}

/// Returns the number of slots that each member should have. Of the members that could have one more, those do that have it.
fn quotas<'a>(receivers: &BTreeMap<&'a str, u32>, held: &BTreeMap<&'a str, i64>) -> BTreeMap<&'a str, i64> {
    let all = i64::try_from(Slot::COUNT).unwrap_or(i64::MAX);
    let weights: i64 = receivers.values().map(|weight| i64::from(*weight)).sum();
    if weights == 0 {
        return BTreeMap::new();
    }
    let mut quotas: BTreeMap<&str, i64> =
        receivers.iter().map(|(member, weight)| (*member, all * i64::from(*weight) / weights)).collect();
    let rest = all - quotas.values().sum::<i64>();
    let mut order: Vec<&str> = receivers.keys().copied().collect();
    let keeps = |member: &str| held[member] > quotas[member];
    let fraction = |member: &str| (all * i64::from(receivers[member])) % weights;
    order.sort_by_key(|member| (!keeps(member), -fraction(member)));
    for member in order.into_iter().take(usize::try_from(rest).unwrap_or(0)) {
        *quotas.entry(member).or_default() += 1;
    }
    quotas
}
