//! A narrowed cache: which objects the reflector stores, and when it reads the whole state because other slots are wanted.
//!
//! A server may select the objects itself. It may also ignore the selector without notice, so that each object is checked here
//! as well. A reflector of a whole cache has none of this, and pays for one branch per object.

use std::{collections::HashMap, sync::Arc, time::Duration};

use klient_core::{ObjectKey, ResourceVersion};
use tokio::sync::watch;

use super::{ListWatch, Reflector, ReflectorStore, RelistReason, Step, unreadable::ReadState};
use crate::{
    Error, ErrorKind,
    informer::{
        delta_fifo::{Delta, Tombstone},
        narrow::{Listed, Narrow, Wanted},
        store::{Keyed, ThreadSafeStore},
    },
};

/// The time after which an object that left the slots is checked again, if work on its slot was running.
const SWEEP: Duration = Duration::from_millis(100);

/// The reflector's side of a narrowed cache.
pub(super) struct Narrowing<T> {
    narrow: Arc<Narrow<T>>,
    known: ThreadSafeStore<T>,
    /// The slots that the store has.
    listed: Listed,
    /// The slots of the read of the whole state that is running. Between two reads, those that the store has.
    reading: Listed,
    /// Stored objects that have left the slots, with the slot that they had: work on that slot may still read them.
    strays: HashMap<ObjectKey, u8, foldhash::fast::RandomState>,
    /// Whether the server refused the selector.
    selector_refused: bool,
}

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Stores only the objects of the slots that are wanted.
    pub(in crate::informer) fn narrowed(mut self, narrow: Option<Arc<Narrow<S::Object>>>) -> Self {
        self.narrowing = narrow.zip(self.store.known_objects()).map(|(narrow, known)| {
            let (listed, reading) = (Listed::default(), Listed::default());
            Box::new(Narrowing { narrow, known, listed, reading, strays: HashMap::default(), selector_refused: false })
        });
        self
    }

    /// Returns whether there is nothing to read.
    pub(super) fn wants_nothing(&self) -> bool {
        self.narrowing.as_ref().is_some_and(|narrowing| narrowing.narrow.wanted().slots.is_empty())
    }

    /// Waits until objects are wanted, with an empty store.
    pub(super) async fn idle(&mut self) -> Step<L::Watch> {
        self.sweep();
        if self.version.is_empty() {
            // The cache is complete, so that the users that wait for it go on.
            self.begin_read();
            self.replace(ReadState::default(), ResourceVersion::default(), RelistReason::Initial);
        } else {
            self.drop_unwanted();
        }
        let mut wanted = self.wanted_changes();
        while self.wants_nothing() {
            wait_for_change(&mut wanted, false).await;
        }
        Step::Begin(RelistReason::Resharded)
    }

    /// Notes which slots the read of the whole state that begins now is about.
    pub(super) fn begin_read(&mut self) {
        if let Some(narrowing) = &mut self.narrowing {
            let wanted = narrowing.narrow.wanted();
            narrowing.reading = Listed { slots: wanted.slots, generation: wanted.generation };
        }
    }

    /// Notes that the store has the objects of the slots whose read has ended.
    pub(super) fn end_read(&mut self) {
        if let Some(narrowing) = &mut self.narrowing {
            narrowing.listed = narrowing.reading;
            narrowing.narrow.set_listed(narrowing.listed);
            self.sweep();
        }
    }

    /// Returns whether the read that runs is about slots that the store does not have. Only the most recent state is certain to
    /// have what their last owner wrote.
    pub(super) fn reads_new_slots(&self) -> bool {
        self.narrowing.as_ref().is_some_and(|narrowing| narrowing.narrow.wanted().has_grown_since(&narrowing.listed))
    }

    /// Returns the text by which the server can select the objects.
    pub(super) fn shard_selector(&self) -> Option<String> {
        let narrowing = self.narrowing.as_ref().filter(|narrowing| !narrowing.selector_refused)?;
        narrowing.narrow.division.selector(&narrowing.reading.slots)
    }

    /// Returns whether a list failed because of the selector, and stops to send it then: objects are checked here anyway.
    pub(super) fn is_selector_refused(&mut self, error: &Error) -> bool {
        let is_sent = self.shard_selector().is_some();
        match &mut self.narrowing {
            Some(narrowing) if is_sent && error.kind() == ErrorKind::Invalid => {
                tracing::info!(resource = self.source.describe(), %error, "server refused the shard selector, filtering here");
                narrowing.selector_refused = true;
                true
            }
            _ => false,
        }
    }

    /// Returns whether an object of the read that runs is stored.
    #[inline]
    pub(super) fn keeps(&mut self, object: &S::Object) -> bool {
        match &mut self.narrowing {
            None => true,
            Some(narrowing) => {
                let keeps = narrowing.keeps(object);
                self.board.dropped(!keeps);
                keeps
            }
        }
    }

    /// Returns whether the object of an event is stored, or the deletion of an object is.
    #[inline]
    pub(super) fn keeps_event(&mut self, object: &S::Object, is_deletion: bool) -> bool {
        self.narrowing.is_none() || self.keeps_narrowed_event(object, is_deletion)
    }

    fn keeps_narrowed_event(&mut self, object: &S::Object, is_deletion: bool) -> bool {
        let Some(narrowing) = &mut self.narrowing else { return true };
        let key = object.key();
        if narrowing.has(object) {
            narrowing.strays.remove(key);
            return true;
        }
        let is_fixed = narrowing.narrow.division.slot_of_key(key).is_some();
        // The object may have had another slot before. The fifo ignores deletions of objects that it does not know.
        if is_deletion && !is_fixed {
            narrowing.strays.remove(key);
            return true;
        }
        if !is_fixed && self.fifo.is_queued(key) {
            self.flush();
        }
        self.keeps(object)
    }

    /// Returns the receiver of changes of the wanted slots, if the cache is narrowed.
    pub(super) fn wanted_changes(&self) -> Option<watch::Receiver<Wanted>> {
        self.narrowing.as_ref().map(|narrowing| narrowing.narrow.changes())
    }

    /// Returns whether an object that left the slots waits to be dropped.
    pub(super) fn has_strays(&self) -> bool {
        self.narrowing.as_ref().is_some_and(|narrowing| !narrowing.strays.is_empty())
    }

    /// Drops the objects of slots that are not wanted. Returns the next step if other slots are wanted, or if the server can send less.
    /// Everything that arrived must be in the store.
    #[inline]
    pub(super) fn follow_wanted(&mut self) -> Option<Step<L::Watch>> {
        if self.narrowing.is_none() { None } else { self.follow_narrowed() }
    }

    fn follow_narrowed(&mut self) -> Option<Step<L::Watch>> {
        self.sweep();
        let narrowing = self.narrowing.as_ref()?;
        let wanted = narrowing.narrow.wanted();
        let (has_grown, has_changed) =
            (wanted.has_grown_since(&narrowing.listed), wanted.slots != narrowing.listed.slots);
        drop(wanted);
        if has_grown || self.wants_nothing() {
            return Some(Step::Begin(RelistReason::Resharded));
        }
        if !has_changed {
            return None;
        }
        self.drop_unwanted();
        self.shard_selector().map(|_| Step::Watch)
    }

    /// Drops the objects of slots that are not wanted any more.
    fn drop_unwanted(&mut self) {
        let Some(narrowing) = &mut self.narrowing else { return };
        let wanted = narrowing.narrow.wanted().slots;
        let slots = narrowing.listed.slots.iter().filter(|slot| wanted.has(*slot)).collect();
        narrowing.listed.slots = slots;
        narrowing.reading = narrowing.listed;
        narrowing.narrow.set_listed(narrowing.listed);
        let unwanted: Vec<_> = narrowing
            .known
            .list()
            .iter()
            .filter(|object| !narrowing.has(object) && !narrowing.strays.contains_key(object.key()))
            .cloned()
            .collect();
        if !unwanted.is_empty() {
            tracing::debug!(
                resource = self.source.describe(),
                objects = unwanted.len(),
                "dropping objects of other replicas"
            );
            unwanted.into_iter().for_each(|object| self.fifo.push(Delta::Deleted(Tombstone::LastKnown(object))));
            self.flush();
        }
    }

    /// Drops the objects that have left the slots, once no work on their last slot can read them.
    fn sweep(&mut self) {
        let Some(narrowing) = &mut self.narrowing else { return };
        if narrowing.strays.is_empty() {
            return;
        }
        let Narrowing { narrow, known, strays, .. } = &mut **narrowing;
        let left = strays.extract_if(|_, slot| !narrow.division.is_in_use(*slot));
        let left: Vec<_> = left.filter_map(|(key, _)| known.get(&key)).collect();
        if !left.is_empty() {
            left.into_iter().for_each(|object| self.fifo.push(Delta::Deleted(Tombstone::LastKnown(object))));
            self.flush();
        }
    }
}

impl<T: Keyed> Narrowing<T> {
    /// Returns whether the store should have an object.
    fn has(&self, object: &T) -> bool {
        self.reading.slots.has(self.narrow.division.slot_of(object))
    }

    /// Returns whether an object is stored: it has one of the slots, or it had one and work on that slot may read it.
    fn keeps(&mut self, object: &T) -> bool {
        if self.has(object) {
            self.strays.remove(object.key());
            return true;
        }
        if self.narrow.division.slot_of_key(object.key()).is_some() {
            return false;
        }
        let Some(known) = self.known.get(object.key()) else { return false };
        let (from, to) = (self.narrow.division.slot_of(&known), self.narrow.division.slot_of(object));
        if from != to && !self.strays.contains_key(object.key()) {
            self.narrow.division.left(object.key(), from, to);
        }
        self.strays.entry(object.key().clone()).or_insert(from);
        true
    }

    /// Returns whether a known object that a list may lack is kept.
    pub(super) fn may_keep(&self, object: &T) -> bool {
        self.has(object) || self.strays.contains_key(object.key())
    }
}

/// Waits until the wanted slots change, or it is time to check the objects that left. A whole cache waits forever.
pub(super) async fn wait_for_change(wanted: &mut Option<watch::Receiver<Wanted>>, has_strays: bool) {
    let Some(wanted) = wanted else { return std::future::pending().await };
    tokio::select! {
        biased;
        // The sender is part of the reflector that waits here.
        _ = wanted.changed() => {}
        () = tokio::time::sleep(SWEEP), if has_strays => {}
    }
}
