//! The board: the slots that this process may work on at the moment, and how much work runs on each.
//!
//! Workers begin a turn with [`begin`](Board::begin), which counts it until its [`Turn`] is dropped. The member closes slots, waits
//! until no turn of them is left, and only then acknowledges the table that takes them away. A turn of a slot that was revoked, or
//! of a term that has expired, is not polled again.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use klient_core::ObjectKey;
use tokio::sync::{Notify, futures::Notified, watch};

use super::slot::Slot;
use crate::election::{Clock, Term};

/// The slots that this process may work on.
pub(crate) struct Board {
    cells: Vec<Cell>,
    /// The time for which this process's Lease is certain. `None` before it is a member.
    term: watch::Sender<Option<Term>>,
    clock: Clock,
    /// Notified when the last turn of a closed slot has ended, and when slots are revoked.
    changed: Notify,
    /// The newest version that reconciles wrote, by resource.
    wrote: Mutex<BTreeMap<String, u64>>,
    /// The number of objects whose slot was seen to change, and the last one.
    changed_keys: Mutex<(u64, Option<ObjectKey>)>,
}

/// One slot: flags and the number of turns in one word, so that a turn never begins on a slot that was closed before.
#[derive(Default)]
struct Cell {
    word: AtomicU32,
    /// The generation of the table that gave the slot to this process.
    granted: AtomicU64,
}

/// New turns may begin.
const OPEN: u32 = 1 << 31;
/// Running turns are dropped.
const REVOKED: u32 = 1 << 30;
const COUNT: u32 = REVOKED - 1;

/// A turn that is running on a slot. The slot is in use until it is dropped.
pub(crate) struct Turn {
    board: Arc<Board>,
    slot: Slot,
}

/// The right to work on a slot. It is checked before every poll; it does not count as work.
#[derive(Clone)]
pub(crate) struct SlotPermit {
    board: Arc<Board>,
    slot: Slot,
    token: u64,
}

impl Board {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        let cells = Slot::all().map(|_| Cell::default()).collect();
        let term = watch::Sender::new(None);
        Arc::new(Self {
            cells,
            term,
            clock,
            changed: Notify::new(),
            wrote: Mutex::default(),
            changed_keys: Mutex::default(),
        })
    }

    /// Begins a turn on a slot, unless the slot is closed or this process's term has reached its deadline.
    pub(crate) fn begin(self: &Arc<Self>, slot: Slot) -> Option<Turn> {
        let before = self.cell(slot).word.fetch_add(1, Ordering::SeqCst);
        // From here on the turn counts; if it may not run, dropping it takes it back.
        let turn = Turn { board: Arc::clone(self), slot };
        let in_term = (*self.term.borrow()).is_some_and(|term| !term.until_deadline(&self.clock).is_zero());
        (before & OPEN != 0 && in_term).then_some(turn)
    }

    /// Returns whether new turns may begin on a slot.
    pub(crate) fn is_open(&self, slot: Slot) -> bool {
        self.cell(slot).word.load(Ordering::SeqCst) & OPEN != 0
    }

    /// Returns whether work on a slot may be polled.
    fn may_run(&self, slot: Slot) -> bool {
        let revoked = self.cell(slot).word.load(Ordering::SeqCst) & REVOKED != 0;
        !revoked && (*self.term.borrow()).is_some_and(|term| !term.until_last_moment(&self.clock).is_zero())
    }

    /// Opens a slot that a table gave to this process. No turn of it may be left.
    pub(super) fn open(&self, slot: Slot, granted: u64) {
        let cell = self.cell(slot);
        cell.granted.store(granted, Ordering::SeqCst);
        cell.word.fetch_and(COUNT, Ordering::SeqCst);
        cell.word.fetch_or(OPEN, Ordering::SeqCst);
    }

    /// Lets no more turns begin on a slot.
    pub(super) fn close(&self, slot: Slot) {
        self.cell(slot).word.fetch_and(!OPEN, Ordering::SeqCst);
    }

    /// Closes a slot, and drops the turns that are running on it.
    pub(super) fn revoke(&self, slots: impl Iterator<Item = Slot>) {
        let mut is_news = false;
        for slot in slots {
            let word = &self.cell(slot).word;
            word.fetch_and(!OPEN, Ordering::SeqCst);
            is_news |= word.fetch_or(REVOKED, Ordering::SeqCst) & REVOKED == 0;
        }
        // A slot that is revoked again wakes no one: the member would wake itself.
        if is_news {
            self.changed.notify_waiters();
        }
    }

    /// Returns the number of turns that are running on a slot.
    pub(crate) fn running(&self, slot: Slot) -> u32 {
        self.cell(slot).word.load(Ordering::SeqCst) & COUNT
    }

    /// Waits until the last turn of some closed slot ends, or slots are revoked. Call it before reading the numbers.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Sets the time for which the Lease is certain.
    pub(super) fn set_term(&self, term: Option<Term>) {
        self.term.send_replace(term);
    }

    pub(super) fn term(&self) -> Option<Term> {
        *self.term.borrow()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Notes the version of a write.
    pub(super) fn wrote(&self, resource: &str, version: u64) {
        let mut wrote = self.wrote.lock().unwrap_or_else(PoisonError::into_inner);
        match wrote.get_mut(resource) {
            Some(newest) => *newest = version.max(*newest),
            None => drop(wrote.insert(resource.to_owned(), version)),
        }
    }

    pub(super) fn written(&self) -> BTreeMap<String, u64> {
        self.wrote.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the shard key of an object has changed, so that the object has another slot.
    pub(crate) fn key_changed(&self, key: &ObjectKey, from: Slot, to: Slot) {
        tracing::warn!(%key, %from, %to, "shard key of an object changed");
        let mut changed = self.changed_keys.lock().unwrap_or_else(PoisonError::into_inner);
        changed.0 += 1;
        changed.1 = Some(key.clone());
    }

    pub(super) fn changed_keys(&self) -> (u64, Option<ObjectKey>) {
        self.changed_keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn cell(&self, slot: Slot) -> &Cell {
        // There is a cell for each slot.
        &self.cells[slot.index()]
    }
}

impl Turn {
    /// Returns the right under which the turn runs.
    pub(crate) fn permit(&self) -> SlotPermit {
        let token = self.board.cell(self.slot).granted.load(Ordering::SeqCst);
        SlotPermit { board: Arc::clone(&self.board), slot: self.slot, token }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let before = self.board.cell(self.slot).word.fetch_sub(1, Ordering::SeqCst);
        if before & OPEN == 0 && before & COUNT == 1 {
            self.board.changed.notify_waiters();
        }
    }
}

impl SlotPermit {
    /// Returns whether work may be polled.
    pub(crate) fn is_valid(&self) -> bool {
        self.board.may_run(self.slot)
    }

    /// Waits until work must not be polled any more, except that the end of a term may go unnoticed: the member revokes then.
    pub(crate) async fn revoked(&self) {
        loop {
            let changed = self.board.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_valid() {
                return;
            }
            changed.await;
        }
    }

    /// Notes the version of a write.
    pub(crate) fn wrote(&self, resource: &str, version: u64) {
        self.board.wrote(resource, version);
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }
}

impl fmt::Debug for SlotPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotPermit").field("slot", &self.slot).field("token", &self.token).finish_non_exhaustive()
    }
}
