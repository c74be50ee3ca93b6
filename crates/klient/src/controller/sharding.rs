//! A controller as one replica of several that share its keys.

use std::{collections::BTreeMap, sync::Arc};

use klient_core::{ObjectKey, Resource};

use super::{Controller, ControllerBuilder, Reason, ReasonKind, source::UNCHANGED};
use crate::{
    shard::{Board, ShardKey, Slot},
    workqueue::AddOptions,
};

impl<K: Resource> ControllerBuilder<K> {
    /// Shares the keys of this controller among the replicas of a [`Manager`](crate::Manager) with
    /// [shards](crate::manager::ManagerBuilder::shards). Each key belongs to one replica at a time.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Controller, shard::ShardKey};
    ///
    /// # fn set_up(maps: Api<ConfigMap>) {
    /// let controller = Controller::builder("maps", maps).sharded(ShardKey::namespace());
    /// # }
    /// ```
    #[must_use]
    pub fn sharded(mut self, key: ShardKey<K>) -> Self {
        self.shard_key = Some(Arc::new(key));
        self
    }
}

impl<K: Resource> Controller<K> {
    /// Returns the shard key in words, if the controller is sharded.
    pub(crate) fn shard_key(&self) -> Option<String> {
        self.inner.shard_key.as_ref().map(ToString::to_string)
    }

    /// Returns the slot of a key, if this replica does not work on it now.
    pub(crate) fn closed_slot(&self, key: &ObjectKey) -> Option<Slot> {
        self.inner.keys.gate.closed_slot(key)
    }

    /// Reconciles only keys of slots that are open on the board.
    pub(crate) fn share(&self, board: &Arc<Board>) {
        if let Some(key) = &self.inner.shard_key {
            self.inner.keys.gate.set(Arc::clone(board), Arc::clone(key), self.inner.lister.clone());
        }
    }

    /// Queues all keys of these slots.
    pub(crate) fn gained(&self, slots: &[Slot]) {
        let Some(key) = &self.inner.shard_key else { return };
        let mut gained = [false; Slot::COUNT];
        slots.iter().for_each(|slot| gained[slot.index()] = true);
        let options = AddOptions::default().priority(UNCHANGED);
        for object in &self.inner.lister.list() {
            if gained[key.slot_of(object).index()] {
                self.inner.keys.add(object.key().clone(), Reason::new(ReasonKind::TakenOver), options);
            }
        }
    }

    /// Waits until the caches have the versions that other replicas wrote, by resource.
    pub(crate) async fn catch_up(&self, wrote: &BTreeMap<String, u64>) {
        for source in &self.inner.sources {
            if let Some(version) = wrote.get(source.resource()) {
                // A stopped informer never shows the write.
                let _ = source.wait_for_version(*version).await;
            }
        }
    }
}
