//! A simulated world: one store of Leases, and processes with network faults, drifting clocks and suspensions.
//!
//! Everything runs on a paused clock in one thread, and all randomness comes from one seed, so that a run can be repeated.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
};

use klient_core::ObjectKey;
use tokio::{
    sync::{Notify, watch},
    time::{Duration, sleep, timeout},
};

use super::secs;
use crate::{
    Error, ErrorKind,
    election::tests::world::Chance,
    informer::narrow::{Division, Listed, Narrow, SlotSet},
    shard::{
        board::{Board, SlotPermit},
        lease::{GroupLease, GroupStore, Phase, Record, View},
        member::Work,
        slot::Slot,
        table::Table,
    },
};

pub(super) const GROUP: &str = "web";

/// The store of all processes, and the history of their work.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Shared>);

#[derive(Default)]
struct Shared {
    facts: Mutex<Facts>,
    /// Wakes the watches of all processes in their order. Tokio's `watch` wakes tasks in a random one.
    changed: Notify,
}

#[derive(Default)]
struct Facts {
    view: View,
    /// The number of changes of the view.
    changes: u64,
    writes: u64,
    table: Option<Table>,
    /// The last work on each slot: who did it, by which right, and the version that it wrote.
    last: BTreeMap<Slot, Act>,
    acts: u64,
}

struct Act {
    who: String,
    token: u64,
    version: u64,
}

impl World {
    fn change<T>(&self, change: impl FnOnce(&mut Facts) -> T) -> T {
        let mut facts = self.0.facts.lock().unwrap();
        facts.changes += 1;
        let result = change(&mut facts);
        drop(facts);
        self.0.changed.notify_waiters();
        result
    }

    fn changes(&self) -> u64 {
        self.0.facts.lock().unwrap().changes
    }

    /// Waits for a change after those that were seen.
    async fn changed_since(&self, seen: u64) {
        loop {
            let changed = self.0.changed.notified();
            if self.changes() > seen {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn view(&self) -> View {
        self.0.facts.lock().unwrap().view.clone()
    }

    pub(super) fn table(&self) -> Option<Table> {
        self.0.facts.lock().unwrap().table.clone()
    }

    pub(super) fn acts(&self) -> u64 {
        self.0.facts.lock().unwrap().acts
    }

    /// Changes a Lease as a person would, without any condition.
    pub(super) fn edit(&self, name: &str, edit: impl FnOnce(&mut GroupLease)) {
        self.change(|facts| {
            facts.writes += 1;
            let version = facts.writes.to_string();
            if let Some(lease) = facts.view.get_mut(name) {
                edit(lease);
                lease.version = version;
            }
            facts.read_table();
        });
    }

    /// Deletes a Lease as a person would.
    pub(super) fn remove(&self, name: &str) {
        self.change(|facts| {
            facts.view.remove(name);
            facts.read_table();
        });
    }

    /// Notes that a member works on a slot. Fails if the slot may belong to another one.
    fn act(&self, slot: Slot, who: &str, permit: &SlotPermit, (cache, read_at): (u64, u64)) -> u64 {
        let token = permit.token();
        let mut facts = self.0.facts.lock().unwrap();
        facts.acts += 1;
        facts.writes += 1;
        let version = facts.writes;
        if let Some(table) = &facts.table {
            // A table that started again after a loss names no one, until all have obeyed it.
            let holder = table.slot(slot).holder();
            let is_new = table.slot(slot).since > token && holder.is_none();
            assert!(holder == Some(who) || is_new, "{who} works on slot {slot} of {token}, the table names {holder:?}");
        }
        if let Some(last) = facts.last.get(&slot) {
            assert!(token >= last.token, "{who} of {token} works on {slot} after {} of {}", last.who, last.token);
            assert!(token > last.token || who == last.who, "{who} and {} both have {token} for {slot}", last.who);
            if last.who != who {
                let version = last.version;
                assert!(read_at >= version, "{who} begins on {slot}, listed at {read_at}, before it sees {version}");
            }
            if last.who != who && facts.ended_in_order(&last.who) {
                assert!(cache >= last.version, "{who} begins on {slot} at {cache}, before it sees {}", last.version);
            }
        }
        facts.last.insert(slot, Act { who: who.to_owned(), token, version });
        version
    }

    fn write(&self, lease: &GroupLease) -> Result<GroupLease, Error> {
        self.change(|facts| {
            let current = facts.view.get(&lease.name);
            if current.map(|current| &current.version).unwrap_or(&String::new()) != &lease.version {
                return Err(Error::new(ErrorKind::Conflict, "Lease has changed"));
            }
            facts.writes += 1;
            let stored = GroupLease { version: facts.writes.to_string(), duration: secs(15), ..lease.clone() };
            facts.check_generation(&stored);
            facts.view.insert(lease.name.clone(), stored.clone());
            facts.read_table();
            Ok(stored)
        })
    }
}

impl Facts {
    fn read_table(&mut self) {
        self.table = self.view.get(GROUP).and_then(|lease| Table::decode(&lease.data));
    }

    fn check_generation(&self, stored: &GroupLease) {
        if let (Some(old), Some(new)) = (&self.table, Table::decode(&stored.data).filter(|_| stored.name == GROUP)) {
            assert!(
                new.generation > old.generation || new == *old,
                "generation {} after {}",
                new.generation,
                old.generation
            );
        }
    }

    /// Returns whether a member told others what it wrote before it stopped.
    fn ended_in_order(&self, member: &str) -> bool {
        let record = self.view.get(member).and_then(|lease| Record::decode(&lease.data));
        record.is_some_and(|record| record.phase != Phase::Fenced)
    }
}

/// The faults of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    pub(super) cut: bool,
    /// The longest time that a request, a response or a watch event travels.
    pub(super) slow: Duration,
    /// The probability that a request or its response is lost.
    pub(super) loss: f64,
    pub(super) suspended: bool,
}

/// One process's network path to the store, and its view.
#[derive(Clone)]
pub(super) struct Path(Arc<PathInner>);

struct PathInner {
    world: World,
    chance: Chance,
    trouble: Mutex<Trouble>,
    troubled: Notify,
    view: Mutex<Arc<View>>,
    changed: watch::Sender<u64>,
    /// The newest version that the process's cache of objects shows. It has a watch of its own, with delays of its own.
    cache: watch::Sender<u64>,
    /// The slots of a narrowed cache, and the newest version when the list of each began.
    narrowed: Mutex<Narrowed>,
    /// The rate of its clock: durations appear shorter by this factor.
    rate: f64,
}

/// A narrowed cache of one process.
struct Narrowed {
    narrow: Arc<Narrow<u64>>,
    listed: Listed,
    read_at: [u64; SlotSet::SLOTS],
}

impl Default for Narrowed {
    fn default() -> Self {
        Self { narrow: Arc::new(Narrow::new(Nothing)), listed: Listed::default(), read_at: [0; SlotSet::SLOTS] }
    }
}

/// A division of no objects: the world has slots only.
struct Nothing;

impl Division<u64> for Nothing {
    fn slot_of(&self, _object: &u64) -> u8 {
        0
    }

    fn slot_of_key(&self, _key: &ObjectKey) -> Option<u8> {
        None
    }

    fn is_in_use(&self, _slot: u8) -> bool {
        false
    }

    fn left(&self, _key: &ObjectKey, _from: u8, _to: u8) {}

    fn selector(&self, _slots: &SlotSet) -> Option<String> {
        None
    }
}

impl Path {
    pub(super) fn new(world: &World, chance: &Chance, rate: f64) -> Self {
        Self(Arc::new(PathInner {
            world: world.clone(),
            chance: chance.clone(),
            trouble: Mutex::default(),
            troubled: Notify::new(),
            view: Mutex::default(),
            changed: watch::Sender::new(0),
            cache: watch::Sender::new(0),
            narrowed: Mutex::default(),
            rate,
        }))
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Trouble)) {
        change(&mut self.0.trouble.lock().unwrap());
        self.0.troubled.notify_one();
    }

    pub(super) fn rate(&self) -> f64 {
        self.0.rate
    }

    fn trouble(&self) -> Trouble {
        self.0.trouble.lock().unwrap().clone()
    }

    /// Returns the newest version that the process's cache shows.
    fn cache(&self) -> u64 {
        *self.0.cache.borrow()
    }

    /// Brings changes of objects to the process's cache, late.
    pub(super) async fn watch_objects(self) {
        let chance = Chance::new(7);
        loop {
            sleep(Duration::from_millis(100) + secs(1).mul_f64(0.5 * chance.number())).await;
            if !self.trouble().cut {
                let shown = self.0.world.0.facts.lock().unwrap().writes;
                sleep(self.trouble().slow.mul_f64(chance.number())).await;
                self.0.cache.send_replace(shown);
            }
        }
    }

    /// Begins with an empty narrowed cache, as a new process does.
    pub(super) fn restart(&self) {
        *self.0.narrowed.lock().unwrap() = Narrowed::default();
    }

    /// Reads the slots that the narrowed cache should have, and drops those that it should not have, late.
    pub(super) async fn list_objects(self) {
        let chance = Chance::new(11);
        loop {
            sleep(Duration::from_millis(20) + secs(1).mul_f64(0.3 * chance.number())).await;
            let (narrow, mut listed) = {
                let narrowed = self.0.narrowed.lock().unwrap();
                (Arc::clone(&narrowed.narrow), narrowed.listed)
            };
            let (wanted, generation, has_grown) = {
                let wanted = narrow.wanted();
                (wanted.slots, wanted.generation, wanted.has_grown_since(&listed))
            };
            let newest = self.0.world.0.facts.lock().unwrap().writes;
            if has_grown {
                sleep(self.trouble().slow.mul_f64(chance.number())).await;
                if self.trouble().cut {
                    continue;
                }
                listed = Listed { slots: wanted, generation };
            } else {
                listed.slots = listed.slots.iter().filter(|slot| wanted.has(*slot)).collect();
            }
            let mut narrowed = self.0.narrowed.lock().unwrap();
            if Arc::ptr_eq(&narrowed.narrow, &narrow) {
                if has_grown {
                    wanted.iter().for_each(|slot| narrowed.read_at[usize::from(slot)] = newest);
                }
                narrowed.listed = listed;
                narrow.set_listed(listed);
            }
        }
    }

    /// Returns the newest version when the list of a slot began. Fails if the narrowed cache does not have the slot.
    fn read_at(&self, slot: Slot) -> u64 {
        let narrowed = self.0.narrowed.lock().unwrap();
        assert!(narrowed.listed.slots.has(slot.number()), "work on slot {slot}, whose objects are not cached");
        narrowed.read_at[slot.index()]
    }

    /// Brings changes of the store to the process's view, late.
    pub(super) async fn watch(self) {
        let mut seen = self.0.world.changes();
        loop {
            let _ = timeout(secs(5), self.0.world.changed_since(seen)).await;
            sleep(self.trouble().slow.mul_f64(self.0.chance.number()) + Duration::from_millis(5)).await;
            if self.trouble().cut {
                sleep(secs(1)).await;
                continue;
            }
            seen = self.0.world.changes();
            let shown = {
                let facts = self.0.world.0.facts.lock().unwrap();
                facts.view.iter().map(|(name, lease)| (name.clone(), self.read(lease.clone()))).collect()
            };
            *self.0.view.lock().unwrap() = Arc::new(shown);
            self.0.changed.send_modify(|number| *number += 1);
        }
    }

    /// Delays a message, or loses it.
    async fn travel(&self) {
        let trouble = self.trouble();
        sleep(trouble.slow.mul_f64(self.0.chance.number())).await;
        let trouble = self.trouble();
        if trouble.cut || self.0.chance.happens(trouble.loss) {
            // No response ever comes: the caller has to time out.
            std::future::pending::<()>().await;
        }
    }

    /// Sends a request. It is processed even if the caller has given up.
    async fn send<T: Send + 'static>(
        &self,
        request: impl FnOnce(&World) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let path = self.clone();
        let done = tokio::spawn(async move {
            path.travel().await;
            let outcome = request(&path.0.world);
            path.travel().await;
            outcome
        });
        done.await.unwrap()
    }

    fn read(&self, lease: GroupLease) -> GroupLease {
        GroupLease { duration: lease.duration.div_f64(self.0.rate), ..lease }
    }
}

impl GroupStore for Path {
    async fn ready(&self) -> Result<(), Error> {
        let mut changes = self.0.changed.subscribe();
        let _ = changes.wait_for(|number| *number > 0).await;
        Ok(())
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.view.lock().unwrap())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    async fn get(&self, name: &str) -> Result<Option<GroupLease>, Error> {
        let name = name.to_owned();
        let lease = self.send(move |world| Ok(world.view().remove(&name))).await?;
        Ok(lease.map(|lease| self.read(lease)))
    }

    async fn create(&self, lease: &GroupLease) -> Result<GroupLease, Error> {
        let lease = lease.clone();
        self.send(move |world| world.write(&lease)).await.map(|lease| self.read(lease))
    }

    async fn update(&self, lease: &GroupLease) -> Result<GroupLease, Error> {
        let lease = lease.clone();
        self.send(move |world| world.write(&lease)).await.map(|lease| self.read(lease))
    }

    async fn delete(&self, lease: &GroupLease) -> Result<(), Error> {
        let lease = lease.clone();
        self.send(move |world| {
            let current = world.view().remove(&lease.name);
            if current.is_none_or(|current| current.version != lease.version) {
                return Err(Error::new(ErrorKind::Conflict, "Lease has changed"));
            }
            world.remove(&lease.name);
            Ok(())
        })
        .await
    }
}

/// The caches of a process, as its member sees them.
impl Work for Path {
    fn hold(&self, slots: SlotSet) {
        self.0.narrowed.lock().unwrap().narrow.want(slots);
    }

    fn awaited(&self, _slots: SlotSet) -> Option<String> {
        None
    }

    async fn catch_up(&self, slots: SlotSet, wrote: BTreeMap<String, u64>) {
        let narrow = Arc::clone(&self.0.narrowed.lock().unwrap().narrow);
        narrow.wait_until_listed(&slots).await;
        let Some(version) = wrote.get("things").copied() else { return };
        let mut cache = self.0.cache.subscribe();
        let _ = cache.wait_for(|shown| *shown >= version).await;
    }

    fn gained(&self, _slots: &[Slot]) {}
}

/// Works on random slots that are open, again and again.
pub(super) async fn worker(path: Path, board: Arc<Board>, member: impl Fn() -> String) {
    let (world, chance) = (path.0.world.clone(), path.0.chance.clone());
    loop {
        sleep(Duration::from_millis(20) + secs(1).mul_f64(0.5 * chance.number())).await;
        let open: Vec<Slot> = Slot::all().filter(|slot| board.is_open(*slot)).collect();
        if open.is_empty() {
            continue;
        }
        let slot = open[(chance.number() * open.len() as f64) as usize];
        let Some(turn) = board.begin(slot) else { continue };
        let (permit, who) = (turn.permit(), member());
        // Some work takes longer than a handover waits for.
        let steps = if chance.happens(0.05) { 60 } else { 1 + (chance.number() * 5.0) as u32 };
        let job = async {
            for _ in 0..steps {
                let version = world.act(slot, &who, &permit, (path.cache(), path.read_at(slot)));
                board.wrote("things", version);
                sleep(Duration::from_millis(230)).await;
            }
        };
        let mut job = pin!(job);
        let guarded = poll_fn(|context| match permit.is_valid() {
            true => job.as_mut().poll(context),
            false => Poll::Ready(()),
        });
        tokio::select! {
            biased;
            () = guarded => {}
            () = permit.revoked() => {}
        }
        drop(turn);
    }
}

/// Runs a future, but does not poll it while its process is suspended.
pub(super) async fn stoppable<F: Future>(path: &Path, process: F) -> F::Output {
    let mut process = pin!(process);
    loop {
        if path.trouble().suspended {
            path.0.troubled.notified().await;
            continue;
        }
        tokio::select! {
            biased;
            () = path.0.troubled.notified() => {}
            output = &mut process => return output,
        }
    }
}
