//! Controllers of any kind, as introspection sees them.

use klient_core::{GroupResource, ObjectKey, Resource};

use super::part::Part;
use crate::{
    controller::{Controller, ControllerStatus},
    introspection::{ControllerReport, KeyReport, KeyStory},
    shard::Slot,
};

/// A controller that can explain its keys.
pub(crate) trait Inspect: Part {
    fn explain(&self, key: &ObjectKey) -> KeyStory;
    fn report(&self) -> ControllerReport;
    fn numbers(&self) -> ControllerStatus;
    fn search(&self, text: &str, limit: usize) -> Vec<KeyReport>;

    /// Returns the slot of a key, if another replica is responsible for it.
    fn closed_slot(&self, key: &ObjectKey) -> Option<Slot>;

    /// Returns the objects that the recent turns of a key wrote more than once.
    fn rewritten(&self, key: &ObjectKey) -> Vec<(GroupResource, ObjectKey)>;
}

impl<K: Resource> Inspect for Controller<K> {
    fn explain(&self, key: &ObjectKey) -> KeyStory {
        Controller::explain(self, key)
    }

    fn report(&self) -> ControllerReport {
        Controller::report(self)
    }

    fn numbers(&self) -> ControllerStatus {
        self.status()
    }

    fn search(&self, text: &str, limit: usize) -> Vec<KeyReport> {
        self.search_keys(text, limit)
    }

    fn closed_slot(&self, key: &ObjectKey) -> Option<Slot> {
        Controller::closed_slot(self, key)
    }

    fn rewritten(&self, key: &ObjectKey) -> Vec<(GroupResource, ObjectKey)> {
        Controller::rewritten(self, key)
    }
}
