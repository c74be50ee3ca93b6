//! Objects that cannot be read: a transform that fails, or bytes that are not an object.
//!
//! Such an object was not deleted, and must not look deleted. The cache keeps the last state that could be read until the server
//! sends a readable one, reports the deletion, or sends a list that can be read in full and does not contain the object.

use foldhash::quality::RandomState;
use hashbrown::HashSet;
use klient_core::ObjectKey;

use super::{ListWatch, Reflector, ReflectorStore};
use crate::{
    Error,
    informer::{
        delta_fifo::{Delta, Tombstone},
        store::Keyed,
    },
};

/// The whole state of the server, as far as it could be read.
pub(super) struct ReadState<T> {
    pub(super) objects: Vec<T>,
    /// The keys of objects that could not be stored.
    pub(super) unreadable: HashSet<ObjectKey, RandomState>,
    /// Whether the keys of all objects are known.
    pub(super) is_complete: bool,
}

impl<T> Default for ReadState<T> {
    fn default() -> Self {
        Self { objects: Vec::new(), unreadable: HashSet::default(), is_complete: true }
    }
}

impl<L: ListWatch, S: ReflectorStore> Reflector<L, S> {
    /// Returns the objects that could be read, with the last known state of those that could not.
    pub(super) fn keep_last_known(&mut self, state: ReadState<S::Object>) -> Vec<S::Object> {
        let ReadState { mut objects, mut unreadable, is_complete } = state;
        let known = self.store.known_objects();
        if let Some(known) = &known {
            objects.extend(unreadable.iter().filter_map(|key| known.get(key)));
        }
        if let (false, Some(known)) = (is_complete, &known) {
            // Any known object that is not in the list may be the one that could not be read.
            let listed: HashSet<&ObjectKey, RandomState> = objects.iter().map(Keyed::key).collect();
            let narrowing = self.narrowing.as_deref();
            let may_be_listed =
                |object: &&S::Object| !listed.contains(object.key()) && narrowing.is_none_or(|n| n.may_keep(object));
            let kept: Vec<_> = known.list().iter().filter(may_be_listed).cloned().collect();
            drop(listed);
            unreadable.extend(kept.iter().map(|object| object.key().clone()));
            objects.extend(kept);
        }
        if !(self.unreadable.is_empty() && unreadable.is_empty()) {
            self.unreadable = unreadable;
            self.board.set_unreadable(&self.unreadable);
        }
        objects
    }

    /// Records an object or event that cannot be read. The others are not affected.
    pub(super) fn report_unreadable(&self, error: &Error) {
        tracing::error!(resource = self.source.describe(), %error, "object cannot be read, keeping its last known state");
        self.board.unreadable(error);
        self.call_error_handler(error);
    }

    /// Keeps the last known state of an object whose new state cannot be read.
    pub(super) fn keep_unreadable(&mut self, key: ObjectKey, error: &Error) {
        self.report_unreadable(error);
        if self.unreadable.insert(key) {
            self.board.set_unreadable(&self.unreadable);
        }
    }

    /// Deletes an object whose final state cannot be read.
    pub(super) fn delete_unreadable(&mut self, key: &ObjectKey, error: &Error) {
        self.report_unreadable(error);
        self.note_readable(key);
        // The store has the last known state of the object only after the deltas before this one.
        self.flush();
        if let Some(known) = self.store.known_objects().and_then(|known| known.get(key)) {
            self.fifo.push(Delta::Deleted(Tombstone::LastKnown(known)));
        }
    }

    /// Notes that the current state of an object could be read, or that the object was deleted.
    pub(super) fn note_readable(&mut self, key: &ObjectKey) {
        if !self.unreadable.is_empty() && self.unreadable.remove(key) {
            self.board.set_unreadable(&self.unreadable);
        }
    }
}
