//! The coordinator: one process of the group writes the table. Every process is ready to.
//!
//! Invariants:
//!
//! - A table is written only over the version of the Lease that it was computed from, so that two coordinators never both succeed.
//! - A member counts as silent only by how long this process has seen no change of its Lease, never by the times written in it.
//!   Then it is fenced: its Lease is emptied, over the version that was unchanged. Both together end it.
//! - A table that is missing, damaged or older than one that was obeyed is lost. After a lease duration, in which all members
//!   whose Leases are missing stop, a table without owners is written, which all living members obey first.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::Arc,
};

use tokio::time::{Duration, Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::{
    lease::{GroupLease, GroupStore, Phase, Record, View},
    mutant::Mutant,
    options::ShardOptions,
    plan::{Peer, Standing, next_table},
    progress::Progress,
    table::Table,
};
use crate::{Error, ErrorKind};

/// The coordinating half of a process.
pub(super) struct Coordinator<'a, S> {
    store: &'a S,
    options: &'a ShardOptions,
    progress: &'a Progress,
    group: &'a str,
    /// The identity of this process as a holder of the group's Lease.
    identity: &'a str,
    /// The shard keys of this process's controllers.
    keys: &'a BTreeMap<String, String>,
    seen: HashMap<String, Seen>,
    /// Leases that this process wrote, until the view shows them.
    written: View,
    /// The table in the group's Lease, with the version of the Lease. `None` if it is not a table.
    table: (String, Option<Arc<Table>>),
    /// Since when the members have been missing that the table names.
    missing: HashMap<String, Instant>,
    /// Since when the table has been lost.
    lost: Option<Instant>,
    /// The highest generation that this process has seen.
    highest: u64,
    renew_at: Instant,
    /// When this process last learnt anything from the server.
    contact: Instant,
    /// When contact to the server came back after a gap.
    resumed: Instant,
}

/// A Lease as this process last saw it change.
struct Seen {
    version: String,
    changed: Instant,
    first: Instant,
}

/// The next action.
enum Duty {
    Wait(Instant),
    Create(GroupLease),
    /// Writes the group's Lease: acquires or renews it, and may change the table.
    Write(GroupLease),
    Fence(GroupLease),
    /// Deletes the Lease of a finished member that the table does not name.
    Remove(GroupLease),
}

impl<'a, S: GroupStore> Coordinator<'a, S> {
    pub(super) fn new(
        store: &'a S,
        options: &'a ShardOptions,
        progress: &'a Progress,
        group: &'a str,
        identity: &'a str,
        keys: &'a BTreeMap<String, String>,
    ) -> Self {
        Self {
            store,
            options,
            progress,
            group,
            identity,
            keys,
            seen: HashMap::new(),
            written: View::new(),
            table: (String::new(), None),
            missing: HashMap::new(),
            lost: None,
            highest: 0,
            renew_at: Instant::now(),
            contact: Instant::now(),
            resumed: Instant::now(),
        }
    }

    /// Coordinates while this process holds the group's Lease, and tries to hold it otherwise.
    pub(super) async fn run(&mut self) -> Infallible {
        let mut changes = self.store.changes();
        loop {
            changes.borrow_and_update();
            let view = self.observe();
            let pause = match self.duty(&view) {
                Duty::Wait(until) => until,
                duty => match self.perform(duty).await {
                    Ok(()) => continue,
                    Err(error) => {
                        debug!(group = self.group, %error, "failed to write a Lease of the group, retrying");
                        Instant::now() + self.options.pause()
                    }
                },
            };
            tokio::select! {
                biased;
                () = sleep_until(pause) => {}
                changed = changes.changed() => if changed.is_err() { sleep_until(pause).await },
            }
        }
    }

    /// Gives the group's Lease back, so that another process coordinates at once.
    pub(super) async fn release(&mut self) {
        let view = self.observe();
        let Some(group) = view.get(self.group).filter(|group| group.holder == self.identity) else { return };
        let released = GroupLease { holder: String::new(), ..group.clone() };
        match timeout(self.options.request_timeout(), self.store.update(&released)).await {
            Ok(Ok(_)) => debug!(group = self.group, "released the coordination of the group"),
            Ok(Err(error)) => {
                debug!(group = self.group, %error, "failed to release the coordination, it has to expire");
            }
            Err(_) => debug!(group = self.group, "release of the coordination timed out, it has to expire"),
        }
    }

    /// Notes that the server responds. After a gap, members get time to renew their Leases before they count as silent: an outage of
    /// the server moves no slots.
    fn note_contact(&mut self, now: Instant) {
        if now.duration_since(self.contact) > self.options.retry_period * 2 {
            self.resumed = now;
        }
        self.contact = now;
    }

    /// Returns the Leases with the results of this process's own writes, and notes when each of them changed.
    fn observe(&mut self) -> View {
        let now = Instant::now();
        let mut view = View::clone(&self.store.view());
        self.written.retain(|name, written| match view.get(name) {
            Some(shown) => shown.number() < written.number(),
            None => true,
        });
        view.extend(self.written.iter().map(|(name, lease)| (name.clone(), lease.clone())));
        self.seen.retain(|name, _| view.contains_key(name));
        let is_news = |(name, lease): (&String, &GroupLease)| {
            self.seen.get(name).is_none_or(|seen| seen.version != lease.version)
        };
        if view.iter().any(is_news) {
            self.note_contact(now);
        }
        if let Some(group) = view.get(self.group).filter(|group| group.version != self.table.0) {
            self.table = (group.version.clone(), Table::decode(&group.data).map(Arc::new));
        }
        for (name, lease) in &view {
            match self.seen.get_mut(name) {
                Some(seen) if seen.version == lease.version => {}
                Some(seen) => (seen.version, seen.changed) = (lease.version.clone(), now),
                None => {
                    let seen = Seen { version: lease.version.clone(), changed: now, first: now };
                    self.seen.insert(name.clone(), seen);
                }
            }
        }
        view
    }

    fn duty(&mut self, view: &View) -> Duty {
        let now = Instant::now();
        let may_coordinate = !self.progress.is_leaving();
        let Some(group) = view.get(self.group) else {
            if !may_coordinate {
                return Duty::Wait(now + self.options.retry_period);
            }
            return Duty::Create(GroupLease {
                name: self.group.to_owned(),
                version: String::new(),
                uid: String::new(),
                holder: self.identity.to_owned(),
                duration: self.options.lease_duration,
                data: String::new(),
            });
        };
        if group.holder != self.identity {
            self.highest = self.highest.max(self.table.1.as_ref().map_or(0, |table| table.generation));
            self.lost = None;
            self.progress.set_coordinating(false);
            let free = if group.holder.is_empty() { now } else { self.silent_at(group) };
            return match (now >= free, may_coordinate) {
                (true, true) => Duty::Write(self.held(group)),
                (true, false) => Duty::Wait(now + self.options.retry_period),
                (false, _) => Duty::Wait(free),
            };
        }
        self.progress.set_coordinating(true);
        self.coordinate(group, view, now)
    }

    /// Decides as the holder of the group's Lease.
    fn coordinate(&mut self, group: &GroupLease, view: &View, now: Instant) -> Duty {
        let obeyed = view.values().filter_map(|lease| Some(Record::decode(&lease.data)?.obeyed)).max().unwrap_or(0);
        let table = self.table.1.clone().filter(|table| table.generation >= self.highest.max(obeyed));
        let mut wake = vec![self.renew_at];
        let Some(table) = table else {
            let since = *self.lost.get_or_insert(now);
            let due = since + self.options.lease_duration;
            self.progress.set_lost(true);
            if now >= due || self.options.breaks(Mutant::NoVacancy) {
                // Every table was written with a lower version of the server than this Lease has now, so that its number is lower,
                // too: also if all Leases were deleted. Only a server that was restored from a backup goes back.
                let known = self.highest.max(obeyed);
                let generation = if group.number() > known { group.number() + 1 } else { known + GAP };
                if self.options.breaks(Mutant::NoVacancy) {
                    let data = Table::owned(generation, self.identity).encode();
                    return Duty::Write(GroupLease { data, ..self.held(group) });
                }
                warn!(group = self.group, generation, "the group has no valid table, starting with an empty one");
                return Duty::Write(GroupLease { data: Table::vacant(generation).encode(), ..self.held(group) });
            }
            if now >= self.renew_at {
                return Duty::Write(self.held(group));
            }
            return Duty::Wait(due.min(self.renew_at));
        };
        self.lost = None;
        self.progress.set_lost(false);
        self.highest = self.highest.max(table.generation);
        let (peers, dead) = self.peers(view, &table, now, &mut wake);
        if let Some(fenced) = dead {
            // After a gap, this process's own renewal shows first whether the server responds at all.
            let is_in_contact = now.duration_since(self.contact) <= self.options.retry_period * 2;
            return if is_in_contact { Duty::Fence(fenced) } else { Duty::Write(self.held(group)) };
        }
        if let Some(mut next) = next_table(&table, &peers) {
            if self.options.breaks(Mutant::NoHandover) {
                next.skip_handover();
            }
            debug!(group = self.group, generation = next.generation, "writing the table");
            return Duty::Write(GroupLease { data: next.encode(), ..self.held(group) });
        }
        if now >= self.renew_at {
            return Duty::Write(self.held(group));
        }
        let old = view.values().find(|lease| {
            let finished = peers.get(&lease.name).is_some_and(|peer| peer.standing == Standing::Finished);
            finished && !table.mentions(&lease.name) && now >= self.silent_at(lease)
        });
        match old {
            Some(lease) => Duty::Remove(lease.clone()),
            None => Duty::Wait(wake.into_iter().filter(|at| *at > now).min().unwrap_or(self.renew_at)),
        }
    }

    /// Returns the members, and one that has to be fenced. Adds the times at which the result changes by itself.
    fn peers(
        &mut self,
        view: &View,
        table: &Table,
        now: Instant,
        wake: &mut Vec<Instant>,
    ) -> (BTreeMap<String, Peer>, Option<GroupLease>) {
        let mut peers = BTreeMap::new();
        let mut dead = None;
        for lease in view.values().filter(|lease| lease.name != self.group) {
            let record = Record::decode(&lease.data);
            let silent_at = self.silent_at(lease);
            let is_silent = now >= silent_at;
            wake.push(silent_at);
            let standing = match &record {
                Some(Record { phase: Phase::Released | Phase::Fenced, .. }) if lease.holder.is_empty() => {
                    Standing::Finished
                }
                // Emptied by hand: the member notices with its next renewal, or stops by its clock.
                _ if lease.holder.is_empty() && is_silent => Standing::Finished,
                _ if lease.holder.is_empty() => Standing::Uncertain,
                _ if is_silent && self.options.breaks(Mutant::NoFence) => Standing::Finished,
                _ if is_silent => {
                    dead = Some(fenced(lease, record.clone().unwrap_or_default()));
                    Standing::Uncertain
                }
                // Edited by hand: the member writes its record again with its next renewal.
                None => Standing::Uncertain,
                Some(record) if record.phase == Phase::Leaving || self.disagrees(record) => Standing::Leaving,
                Some(_) if table.mentions(&lease.name) => Standing::Working,
                Some(_) => {
                    let settled = self.seen.get(&lease.name).map_or(now, |seen| seen.first) + self.options.settle;
                    wake.push(settled);
                    if now >= settled { Standing::Working } else { Standing::Newcomer }
                }
            };
            let record = record.unwrap_or_default();
            peers.insert(lease.name.clone(), Peer { standing, weight: record.weight, obeyed: record.obeyed });
        }
        self.missing.retain(|name, _| !view.contains_key(name));
        for name in table.members() {
            if !peers.contains_key(name) {
                let since = *self.missing.entry(name.to_owned()).or_insert(now);
                let finished_at = since + self.patience(self.options.lease_duration);
                wake.push(finished_at);
                let standing = if now >= finished_at { Standing::Finished } else { Standing::Uncertain };
                peers.insert(name.to_owned(), Peer { standing, weight: 0, obeyed: 0 });
            }
        }
        (peers, dead)
    }

    /// Returns whether a member computes the keys of a controller in another way than this process.
    fn disagrees(&self, record: &Record) -> bool {
        record.keys.iter().any(|(controller, key)| self.keys.get(controller).is_some_and(|own| own != key))
    }

    /// Returns when a Lease counts as silent, if it does not change before that.
    fn silent_at(&self, lease: &GroupLease) -> Instant {
        let changed = self.seen.get(&lease.name).map_or_else(Instant::now, |seen| seen.changed);
        let expired = changed + self.patience(lease.duration.max(self.options.lease_duration));
        expired.max(self.resumed + self.options.retry_period * 2)
    }

    fn patience(&self, duration: Duration) -> Duration {
        if self.options.breaks(Mutant::NoWait) {
            duration / 10
        } else if self.options.breaks(Mutant::WallClock) {
            duration / 2
        } else {
            duration
        }
    }

    /// Returns the group's Lease with this process as its holder.
    fn held(&self, group: &GroupLease) -> GroupLease {
        let duration = self.options.lease_duration;
        GroupLease { holder: self.identity.to_owned(), duration, ..group.clone() }
    }

    async fn perform(&mut self, duty: Duty) -> Result<(), Error> {
        let limit = self.options.request_timeout();
        let (name, outcome) = match duty {
            Duty::Wait(until) => {
                sleep_until(until).await;
                return Ok(());
            }
            Duty::Create(lease) => (lease.name.clone(), timeout(limit, self.store.create(&lease)).await),
            Duty::Write(lease) => {
                let sent = Instant::now();
                let written = timeout(limit, self.store.update(&lease)).await;
                if matches!(written, Ok(Ok(_))) {
                    self.renew_at = sent + self.options.retry_period;
                }
                (lease.name, written)
            }
            Duty::Fence(lease) => {
                let outcome = timeout(limit, self.store.update(&lease)).await;
                if matches!(outcome, Ok(Ok(_))) {
                    info!(group = self.group, member = lease.name, "member is silent, fenced it");
                    self.progress.fenced();
                }
                (lease.name, outcome)
            }
            Duty::Remove(lease) => {
                let deleted = timeout(limit, self.store.delete(&lease)).await.unwrap_or_else(|_| Err(timed_out()));
                self.written.remove(&lease.name);
                return match deleted {
                    // The view shows the deletion in a moment.
                    Ok(()) => {
                        sleep(self.options.pause()).await;
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
            }
        };
        match outcome.unwrap_or_else(|_| Err(timed_out())) {
            Ok(lease) => {
                self.note_contact(Instant::now());
                self.written.insert(name, lease);
                Ok(())
            }
            Err(error) => {
                // This process's own picture may be wrong: the server has the Lease, or has it no more.
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() {
                    self.refresh(&name).await;
                }
                Err(error)
            }
        }
    }

    /// Reads a Lease whose state was not the expected one.
    async fn refresh(&mut self, name: &str) {
        match timeout(self.options.request_timeout(), self.store.get(name)).await {
            Ok(Ok(Some(lease))) => drop(self.written.insert(name.to_owned(), lease)),
            Ok(Ok(None)) => drop(self.written.remove(name)),
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Returns the Lease of a silent member as a coordinator leaves it.
fn fenced(lease: &GroupLease, record: Record) -> GroupLease {
    let data = Record { phase: Phase::Fenced, ..record }.encode();
    GroupLease { holder: String::new(), data, ..lease.clone() }
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "request for a Lease of the group timed out")
}

/// How far the generation is raised after the table was lost, if the server's versions went back: members may have obeyed tables
/// that they have not acknowledged.
const GAP: u64 = 1 << 20;
