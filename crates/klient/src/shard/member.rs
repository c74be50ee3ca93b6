//! A member of the group: it renews its Lease, and works on exactly the slots that the newest table gives it.
//!
//! Invariants:
//!
//! - Work begins only within the term of the member's own Lease, which counts from when the last renewal was sent, and is not
//!   polled after a moment that lies before any coordinator can fence the member.
//! - The member never returns to an older table. It acknowledges a table when all work on slots that the table does not give it
//!   has ended: not when it was told to end.
//! - A Lease that was fenced, deleted or taken is never written again. The member stops all work, and the process joins under
//!   another name.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
};

use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    board::Board,
    lease::{GroupLease, GroupStore, Phase, Record},
    mutant::Mutant,
    options::ShardOptions,
    progress::Progress,
    slot::Slot,
    table::Table,
};
use crate::{Error, ErrorKind, election::Term, informer::narrow::SlotSet};

/// The work that members share.
pub(super) trait Work: Send + Sync {
    /// Sets the slots whose objects the caches should have: those of this member, and those on which work still runs.
    fn hold(&self, slots: SlotSet);

    /// Waits until the caches of this process have the objects of slots that are about to open, without a time limit, and show the
    /// writes of other members, for a limited time.
    fn catch_up(&self, slots: SlotSet, wrote: BTreeMap<String, u64>) -> impl Future<Output = ()> + Send;

    /// Returns what slots that are about to open wait for, if it is a list.
    fn awaited(&self, slots: SlotSet) -> Option<String>;

    /// Begins the work on slots that are open now.
    fn gained(&self, slots: &[Slot]);
}

/// The parts of a process that its member uses.
pub(super) struct Parts<'a, S, W> {
    pub(super) store: &'a S,
    pub(super) work: &'a W,
    pub(super) options: &'a ShardOptions,
    pub(super) board: &'a Arc<Board>,
    pub(super) progress: &'a Progress,
    pub(super) group: &'a str,
    pub(super) identity: &'a str,
    pub(super) keys: &'a BTreeMap<String, String>,
}

/// A member of the group.
pub(super) struct Member<'a, S, W> {
    parts: &'a Parts<'a, S, W>,
    id: String,
    lease: GroupLease,
    record: Record,
    table: Option<Arc<Table>>,
    /// The version of the group's Lease from which the table was last read.
    table_version: String,
    /// The slots that the table gives to this member, and that are not open yet.
    to_open: BTreeSet<Slot>,
    /// Since when work runs on slots that the table takes away.
    draining: Option<Instant>,
    renew_at: Instant,
    /// When the member was told to leave.
    leaving: Option<Instant>,
    stopping: bool,
}

/// The end of a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It left, as it was told to.
    Left,
    /// Its Lease was fenced, deleted or taken.
    Lost,
}

/// The outcome of a write to the member's Lease.
enum Written {
    Yes,
    Retry,
    Lost,
}

type CatchingUp<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<'a, S: GroupStore, W: Work> Member<'a, S, W> {
    pub(super) fn new(parts: &'a Parts<'a, S, W>, id: String) -> Self {
        let record = Record {
            weight: parts.options.weight,
            identity: parts.identity.to_owned(),
            keys: parts.keys.clone(),
            ..Record::default()
        };
        let lease = GroupLease {
            name: id.clone(),
            version: String::new(),
            uid: String::new(),
            holder: id.clone(),
            duration: parts.options.lease_duration,
            data: record.encode(),
        };
        Self {
            parts,
            id,
            lease,
            record,
            table: None,
            table_version: String::new(),
            to_open: BTreeSet::new(),
            draining: None,
            renew_at: Instant::now(),
            leaving: None,
            stopping: false,
        }
    }

    /// Takes part in the group until the member has left or lost its Lease. No work of it runs when this returns.
    pub(super) async fn run(&mut self, leave: &mut watch::Receiver<bool>) -> End {
        let mut changes = self.parts.store.changes();
        let mut opening: Option<(Vec<Slot>, CatchingUp<'a>)> = None;
        loop {
            let parts = self.parts;
            let drained = parts.board.changed();
            tokio::pin!(drained);
            drained.as_mut().enable();
            changes.borrow_and_update();
            self.follow_orders(*leave.borrow_and_update());
            self.follow_table();
            self.keep_term();
            let is_drained = self.drain();
            self.hold();
            self.report();
            if self.stopping && is_drained {
                self.release().await;
                return End::Left;
            }
            if self.is_write_due(is_drained) {
                match self.write(is_drained).await {
                    Written::Yes => {}
                    Written::Retry => self.renew_at = Instant::now() + parts.options.pause(),
                    Written::Lost => return self.stop_all_work().await,
                }
                continue;
            }
            if opening.is_none()
                && let Some(slots) = self.ready_to_open()
            {
                let wanted = numbers(&slots);
                opening = Some((slots, Box::pin(parts.work.catch_up(wanted, self.handed_over()))));
            }
            let wake = self.wake_after();
            let caught_up = async {
                match &mut opening {
                    Some((_, catching_up)) => catching_up.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = sleep(wake) => {}
                _ = leave.changed(), if self.leaving.is_none() => {}
                () = drained => {}
                _ = changes.changed() => {}
                () = caught_up => {
                    if let Some((slots, _)) = opening.take() {
                        self.open(&slots);
                    }
                }
            }
        }
    }

    /// Notes that the process shuts down, and decides when the handover of its slots is over.
    fn follow_orders(&mut self, leave: bool) {
        if leave && self.leaving.is_none() {
            self.leaving = Some(Instant::now());
            self.parts.progress.set_leaving();
            self.renew_at = Instant::now();
            self.record.phase = Phase::Leaving;
        }
        let Some(since) = self.leaving.filter(|_| !self.stopping) else { return };
        let view = self.parts.store.view();
        let successors = view.values().filter(|lease| {
            let record = Record::decode(&lease.data);
            let is_other = lease.name != self.id && lease.name != self.parts.group && !lease.holder.is_empty();
            is_other && record.is_some_and(|record| record.phase == Phase::Working && record.weight > 0)
        });
        let is_named = self.table.as_ref().is_some_and(|table| table.names(&self.id));
        if !is_named || successors.count() == 0 || since.elapsed() >= self.parts.options.leave {
            self.stopping = true;
            Slot::all().for_each(|slot| self.parts.board.close(slot));
            self.to_open.clear();
        }
    }

    /// Closes the slots that a newer table takes away, and notes those that it gives.
    fn follow_table(&mut self) {
        let view = self.parts.store.view();
        let Some(group) = view.get(self.parts.group).filter(|group| group.version != self.table_version) else {
            return;
        };
        self.table_version.clone_from(&group.version);
        let Some(table) = Table::decode(&group.data) else { return };
        if self.table.as_ref().is_some_and(|known| known.generation >= table.generation) {
            return;
        }
        let board = self.parts.board;
        let mut closed = 0;
        for slot in Slot::all() {
            let is_mine = table.is_owned_by(slot, &self.id);
            if !is_mine {
                self.to_open.remove(&slot);
                closed += usize::from(board.is_open(slot));
                board.close(slot);
            } else if !board.is_open(slot) && !self.stopping {
                self.to_open.insert(slot);
            }
            // A slot that is open stays so, with the token of the table that gave it: no other member had it in between, even if tables that this
            // member never saw took it away and gave it back. Turns that run have that token, and later ones must not have a lower one.
        }
        if closed > 0 {
            info!(group = self.parts.group, generation = table.generation, slots = closed, "giving slots away");
            self.parts.progress.released(closed);
        }
        self.draining = None;
        self.table = Some(Arc::new(table));
    }

    /// Stops new work at the deadline of the term, and all work at its last moment.
    fn keep_term(&mut self) {
        let board = self.parts.board;
        let Some(term) = board.term() else { return };
        if !term.until_deadline(board.clock()).is_zero() {
            return;
        }
        let open: Vec<Slot> = Slot::all().filter(|slot| board.is_open(*slot)).collect();
        if !open.is_empty() {
            warn!(
                group = self.parts.group,
                member = self.id,
                "Lease was not renewed before its deadline, pausing work"
            );
            open.iter().for_each(|slot| board.close(*slot));
            // Their keys are queued again when the Lease has been renewed.
            self.to_open.extend(open);
        }
        if term.until_last_moment(board.clock()).is_zero() {
            let running: Vec<Slot> = Slot::all().filter(|slot| board.running(*slot) > 0).collect();
            if !running.is_empty() {
                board.revoke(running.into_iter());
            }
        }
    }

    /// Returns whether all work has ended on slots that the table does not give to this member. Drops work that takes too long.
    fn drain(&mut self) -> bool {
        let (board, id) = (self.parts.board, &self.id);
        let stopping = self.stopping;
        let is_mine = |slot: Slot| !stopping && self.table.as_ref().is_some_and(|table| table.is_owned_by(slot, id));
        let busy: Vec<Slot> = Slot::all().filter(|slot| board.running(*slot) > 0 && !is_mine(*slot)).collect();
        if busy.is_empty() {
            self.draining = None;
            return true;
        }
        let since = *self.draining.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.parts.options.drain {
            board.revoke(busy.into_iter());
        }
        self.parts.options.breaks(Mutant::AcknowledgeEarly)
    }

    /// Tells the caches which slots they need. A slot that was taken away is needed until its work has ended: a reconcile must not see
    /// its object disappear.
    fn hold(&self) {
        let Some(table) = &self.table else { return };
        let is_needed = |slot: &Slot| table.is_owned_by(*slot, &self.id) || self.parts.board.running(*slot) > 0;
        self.parts.work.hold(Slot::all().filter(is_needed).map(Slot::number).collect());
    }

    fn is_write_due(&self, is_drained: bool) -> bool {
        Instant::now() >= self.renew_at
            || (is_drained && self.unacknowledged().is_some() && !self.lease.version.is_empty())
    }

    /// Returns the generation that the member has not acknowledged yet, if there is one.
    fn unacknowledged(&self) -> Option<u64> {
        self.table.as_ref().map(|table| table.generation).filter(|generation| *generation > self.record.obeyed)
    }

    /// Creates or renews the Lease, with the newest acknowledgement.
    async fn write(&mut self, is_drained: bool) -> Written {
        let (store, options, board) = (self.parts.store, self.parts.options, self.parts.board);
        let mut record = Record { wrote: board.written(), ..self.record.clone() };
        if is_drained && let Some(generation) = self.unacknowledged() {
            record.obeyed = generation;
        }
        let lease = GroupLease { data: record.encode(), ..self.lease.clone() };
        let sent = board.clock().now();
        let began = Instant::now();
        let request =
            async { if lease.version.is_empty() { store.create(&lease).await } else { store.update(&lease).await } };
        let outcome = timeout(self.request_limit(), request).await.unwrap_or_else(|_| Err(timed_out()));
        match outcome {
            Ok(written) => {
                self.record = record;
                self.lease = written;
                self.renew_at = began + options.retry_period;
                self.begin_term(Term {
                    since: sent,
                    deadline: options.renew_deadline,
                    last_moment: options.last_moment(),
                    ended: false,
                });
                self.parts.progress.update(|state| state.problem = None);
                Written::Yes
            }
            Err(error) => {
                debug!(group = self.parts.group, member = self.id, %error, "failed to write the member's Lease");
                self.parts
                    .progress
                    .update(|state| state.problem = Some(format!("Lease {} was not renewed: {error}", self.id)));
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() {
                    return self.adopt().await;
                }
                Written::Retry
            }
        }
    }

    /// Returns how long a request may take: the next check of the term must not be late.
    fn request_limit(&self) -> Duration {
        let (board, limit) = (self.parts.board, self.parts.options.request_timeout());
        let left = board.term().map(|term| {
            let (deadline, last) = (term.until_deadline(board.clock()), term.until_last_moment(board.clock()));
            if deadline.is_zero() { last } else { deadline }
        });
        left.filter(|left| !left.is_zero()).map_or(limit, |left| left.min(limit))
    }

    /// Begins a new term. If the last one reached its deadline, its slots are opened again, since keys may have been dropped.
    fn begin_term(&mut self, term: Term) {
        let board = self.parts.board;
        let was_over = board.term().is_some_and(|old| old.until_deadline(board.clock()).is_zero());
        if was_over {
            self.keep_term();
        }
        board.set_term(Some(term));
    }

    /// Reads the Lease after a refused write. An edit by hand, or an own write whose response was lost, is accepted.
    async fn adopt(&mut self) -> Written {
        match timeout(self.request_limit(), self.parts.store.get(&self.id)).await {
            Ok(Ok(Some(lease))) if lease.holder == self.id => {
                self.lease = GroupLease { duration: self.parts.options.lease_duration, ..lease };
                Written::Retry
            }
            Ok(Ok(Some(lease))) if self.parts.options.breaks(Mutant::ReuseLease) => {
                self.lease = GroupLease { holder: self.id.clone(), ..lease };
                Written::Retry
            }
            Ok(Ok(Some(_) | None)) if !self.lease.version.is_empty() => Written::Lost,
            // The Lease was never created, or another process has this name.
            Ok(Ok(Some(_))) => Written::Lost,
            Ok(Ok(None) | Err(_)) | Err(_) => Written::Retry,
        }
    }

    /// Returns the slots that can be opened once the caches are current: the term is certain, and no older work is left.
    fn ready_to_open(&self) -> Option<Vec<Slot>> {
        let board = self.parts.board;
        let in_term = board.term().is_some_and(|term| !term.until_deadline(board.clock()).is_zero());
        let slots: Vec<Slot> = self.to_open.iter().copied().filter(|slot| board.running(*slot) == 0).collect();
        (in_term && !self.stopping && !slots.is_empty()).then_some(slots)
    }

    /// Opens slots whose caches are current, if the table still gives them to this member.
    fn open(&mut self, slots: &[Slot]) {
        let ready = self.ready_to_open().unwrap_or_default();
        let (board, Some(table)) = (self.parts.board, &self.table) else { return };
        let opened: Vec<Slot> = slots.iter().copied().filter(|slot| ready.contains(slot)).collect();
        for slot in &opened {
            self.to_open.remove(slot);
            board.open(*slot, table.slot(*slot).since);
        }
        if !opened.is_empty() {
            info!(
                group = self.parts.group,
                generation = table.generation,
                slots = opened.len(),
                "began to work on slots"
            );
            self.parts.progress.gained(&opened);
            self.parts.work.gained(&opened);
        }
    }

    /// Returns the newest versions that other members wrote, by resource.
    fn handed_over(&self) -> BTreeMap<String, u64> {
        let mut wrote = BTreeMap::new();
        if self.parts.options.breaks(Mutant::NoCatchUp) {
            return wrote;
        }
        for lease in self.parts.store.view().values().filter(|lease| lease.name != self.id) {
            for (resource, version) in Record::decode(&lease.data).unwrap_or_default().wrote {
                let newest = wrote.entry(resource).or_insert(version);
                *newest = version.max(*newest);
            }
        }
        wrote
    }

    /// Ends all work at once, and waits for its end: the Lease belongs to this member no more.
    async fn stop_all_work(&mut self) -> End {
        let (board, parts) = (self.parts.board, self.parts);
        warn!(
            group = parts.group,
            member = self.id,
            "the member's Lease was fenced, deleted or changed, stopping its work"
        );
        board.revoke(Slot::all());
        board.set_term(None);
        self.table = None;
        self.to_open.clear();
        loop {
            let changed = board.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            self.report();
            if Slot::all().all(|slot| board.running(slot) == 0) {
                // Another member may write to the objects from now on: they are read again if the slots come back.
                parts.work.hold(SlotSet::default());
                return End::Lost;
            }
            parts.progress.update(|state| {
                state.problem = Some("reconciles still run although the Lease is lost: restart the process".to_owned());
            });
            changed.await;
        }
    }

    /// Gives the Lease back after all work has ended.
    async fn release(&mut self) {
        let store = self.parts.store;
        let record = Record { phase: Phase::Released, wrote: self.parts.board.written(), ..self.record.clone() };
        for _ in 0..RELEASE_ATTEMPTS {
            if self.lease.version.is_empty() {
                break;
            }
            let lease = GroupLease { holder: String::new(), data: record.encode(), ..self.lease.clone() };
            match timeout(self.request_limit(), store.update(&lease)).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => {
                    debug!(member = self.id, %error, "failed to release the member's Lease");
                    if matches!(self.adopt().await, Written::Lost) {
                        break;
                    }
                }
                Err(_) => {
                    self.adopt().await;
                }
            }
        }
        self.parts.board.set_term(None);
        self.report();
    }

    /// Returns the time until the member has to look again, without any event.
    fn wake_after(&self) -> Duration {
        let (board, options) = (self.parts.board, self.parts.options);
        let mut wake = self.renew_at.saturating_duration_since(Instant::now());
        if let Some(term) = board.term() {
            let ends = [term.until_deadline(board.clock()), term.until_last_moment(board.clock())];
            wake = ends.into_iter().filter(|left| !left.is_zero()).fold(wake, Duration::min);
        }
        if let Some(since) = self.draining {
            let left = options.drain.saturating_sub(since.elapsed());
            wake = wake.min(if left.is_zero() { options.retry_period } else { left });
        }
        if let Some(since) = self.leaving {
            wake = wake.min(options.leave.saturating_sub(since.elapsed()).max(Duration::from_millis(1)));
        }
        wake
    }

    /// Reports the state of the member.
    fn report(&self) {
        let (board, id) = (self.parts.board, &self.id);
        let open = Slot::all().filter(|slot| board.is_open(*slot)).count();
        let mine = |slot: Slot| self.table.as_ref().is_some_and(|table| table.is_owned_by(slot, id));
        let draining = Slot::all().filter(|slot| board.running(*slot) > 0 && !mine(*slot)).count();
        let to_open = self.to_open.iter().map(|slot| slot.number()).collect();
        let awaited = self.parts.work.awaited(to_open);
        self.parts.progress.update(|state| {
            state.awaited = awaited;
            state.member.clone_from(id);
            state.table.clone_from(&self.table);
            (state.open, state.opening, state.draining) = (open, self.to_open.len(), draining);
        });
    }
}

fn numbers(slots: &[Slot]) -> SlotSet {
    slots.iter().map(|slot| slot.number()).collect()
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "request for the member's Lease timed out")
}

/// The number of attempts to release a Lease that keeps changing.
const RELEASE_ATTEMPTS: usize = 4;
