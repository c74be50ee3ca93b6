//! The next table, for groups that grow, shrink and change.

use std::collections::BTreeMap;

use crate::shard::{
    plan::{Peer, Standing, next_table},
    slot::Slot,
    table::{State, Table},
};

fn peers(members: &[(&str, Standing)]) -> BTreeMap<String, Peer> {
    let peer = |standing| Peer { standing, weight: 1, obeyed: u64::MAX };
    members.iter().map(|(name, standing)| ((*name).to_owned(), peer(*standing))).collect()
}

/// Returns the table after which nothing changes, if each member obeys at once.
fn settle(mut table: Table, peers: &BTreeMap<String, Peer>) -> Table {
    for _ in 0..10 {
        match next_table(&table, peers) {
            Some(next) => table = next,
            None => return table,
        }
    }
    panic!("the table does not settle");
}

fn counts(table: &Table) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for slot in &table.slots {
        *counts.entry(slot.target().unwrap_or("")).or_default() += 1;
    }
    counts
}

fn moved(before: &Table, after: &Table) -> usize {
    before.slots.iter().zip(&after.slots).filter(|(before, after)| before.target() != after.target()).count()
}

const WORKING: Standing = Standing::Working;

#[test]
fn slots_are_shared_equally_and_move_minimally() {
    let names: Vec<String> = (0..9).map(|number| format!("web-{number}")).collect();
    let group =
        |count: usize| peers(&names.iter().take(count).map(|name| (name.as_str(), WORKING)).collect::<Vec<_>>());
    let mut table = settle(Table::vacant(1), &group(1));
    for count in 2..=9 {
        let grown = settle(table.clone(), &group(count));
        let counts = counts(&grown);
        assert!(counts.values().max().unwrap() - counts.values().min().unwrap() <= 1, "{counts:?}");
        assert!(moved(&table, &grown) <= Slot::COUNT.div_ceil(count), "{count}: {} moved", moved(&table, &grown));
        table = grown;
    }
    // One dies: only its slots move.
    let mut group = group(9);
    group.get_mut("web-4").unwrap().standing = Standing::Finished;
    let dead = counts(&table)["web-4"];
    let after = settle(table.clone(), &group);
    assert_eq!(moved(&table, &after), dead);
}

#[test]
fn owner_keeps_a_moving_slot_until_it_has_stopped() {
    let mut group = peers(&[("a", WORKING)]);
    let table = settle(Table::vacant(1), &group);
    group = peers(&[("a", WORKING), ("b", WORKING)]);
    group.get_mut("a").unwrap().obeyed = table.generation;
    let moving = next_table(&table, &group).unwrap();
    let leaves = |table: &Table| table.slots.iter().filter(|slot| matches!(slot.state, State::Moving { .. })).count();
    assert_eq!(leaves(&moving), 128);
    assert_eq!(next_table(&moving, &group), None, "the owner has not acknowledged");
    for stopped in [WORKING, Standing::Finished] {
        let mut group = group.clone();
        *group.get_mut("a").unwrap() = Peer { standing: stopped, weight: 1, obeyed: moving.generation };
        assert_eq!(leaves(&next_table(&moving, &group).unwrap()), 0);
    }
    // The successor dies first: the slots stay with their owner.
    group.get_mut("b").unwrap().standing = Standing::Finished;
    let back = next_table(&moving, &group).unwrap();
    assert!(back.slots.iter().all(|slot| slot.state == State::Owned("a".into())));
}

#[test]
fn vacant_slots_wait_until_all_members_obey() {
    let mut group = peers(&[("a", WORKING), ("b", WORKING)]);
    group.get_mut("b").unwrap().obeyed = 6;
    let table = Table::vacant(7);
    assert_eq!(next_table(&table, &group), None);
    group.get_mut("b").unwrap().standing = Standing::Uncertain;
    assert_eq!(next_table(&table, &group), None);
    group.get_mut("b").unwrap().standing = Standing::Finished;
    assert_eq!(counts(&next_table(&table, &group).unwrap()), [("a", 256)].into());
}

#[test]
fn newcomers_wait_unless_no_other_member_can_work() {
    let group = peers(&[("a", Standing::Finished), ("b", Standing::Newcomer)]);
    let old = settle(Table::vacant(1), &peers(&[("a", WORKING)]));
    assert_eq!(counts(&settle(old.clone(), &group)), [("b", 256)].into());
    let group = peers(&[("a", WORKING), ("b", Standing::Newcomer)]);
    assert_eq!(next_table(&old, &group), None);
}

#[test]
fn slots_of_a_leaving_member_stay_if_no_other_can_work() {
    let old = settle(Table::vacant(1), &peers(&[("a", WORKING)]));
    assert_eq!(next_table(&old, &peers(&[("a", Standing::Leaving)])), None);
    let both = peers(&[("a", Standing::Leaving), ("b", Standing::Newcomer)]);
    assert_eq!(counts(&settle(old, &both)), [("b", 256)].into());
}

#[test]
fn shares_follow_the_weights() {
    let mut group = peers(&[("a", WORKING), ("b", WORKING), ("c", WORKING)]);
    group.get_mut("a").unwrap().weight = 2;
    group.get_mut("c").unwrap().weight = 0;
    let table = settle(Table::vacant(1), &group);
    assert_eq!(counts(&table), [("a", 171), ("b", 85)].into());
}
