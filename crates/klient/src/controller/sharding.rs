//! A controller as one replica of several that share its keys.

use std::{collections::BTreeMap, sync::Arc};

use klient_core::{ObjectKey, Resource};

use super::{Controller, ControllerBuilder, Reason, ReasonKind, source::UNCHANGED};
use crate::{
    Error, ErrorKind,
    informer::{
        InformerState,
        narrow::{Narrow, SlotSet},
    },
    shard::{Board, ByShardKey, ShardKey, Slot},
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

    /// Caches only the objects that belong to this replica, instead of all objects. A replica of *n* needs 1/*n* of the memory, and a key
    /// begins later on its next replica: after a list of the most recent state.
    ///
    /// With [`ShardKey::uid`], servers with the feature `ShardedListAndWatch` send only these objects. Otherwise, all objects arrive, and those
    /// of other replicas are dropped before they are stored. Only the informer of the controller's own kind is narrowed: other sources have all
    /// objects. It must be an informer of the controller's own: build the controller from an [`Api`](crate::Api), or from an informer that
    /// was not started. The lister of such an informer has only this replica's objects.
    ///
    /// With [`ShardKey::object`] and [`ShardKey::namespace`], deletions are reconciled as usual. With other shard keys they are not, since an object
    /// that is not cached may belong to another replica: use a [finalizer](crate::finalizer) to act on deletions.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Api, Controller, shard::ShardKey};
    ///
    /// # fn set_up(maps: Api<ConfigMap>) {
    /// let controller = Controller::builder("maps", maps).sharded(ShardKey::uid()).cache_own_shard();
    /// # }
    /// ```
    ///
    /// Building the [manager](crate::manager::ManagerBuilder::build) fails if the informer cannot be narrowed.
    #[must_use]
    pub fn cache_own_shard(mut self) -> Self {
        self.caches_own_shard = true;
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
            let is_narrowed = self.inner.narrow.get().is_some();
            self.inner.keys.gate.set(Arc::clone(board), Arc::clone(key), self.inner.lister.clone(), is_narrowed);
        }
    }

    /// Narrows the cache of the controller's own kind, if the controller wants that. It has nothing until slots are held.
    pub(crate) fn narrow(&self, board: &Arc<Board>) -> Result<(), Error> {
        if !self.inner.caches_own_shard {
            return Ok(());
        }
        let refused = |reason: &str| {
            let message = format!("controller {:?} cannot cache only its own shard: {reason}", self.name());
            Error::new(ErrorKind::Config, message)
        };
        let Some(key) = &self.inner.shard_key else { return Err(refused("call `sharded` on its builder")) };
        let division = ByShardKey { key: Arc::clone(key), board: Arc::clone(board) };
        let narrow = Arc::new(Narrow::new(division));
        self.inner.lister.handle().narrow(Arc::clone(&narrow)).map_err(|reason| {
            refused(&format!("{reason}: build the controller from an `Api` or from a new informer"))
        })?;
        self.inner.narrow.get_or_init(|| narrow);
        Ok(())
    }

    /// Sets the slots whose objects a narrowed cache should have.
    pub(crate) fn hold(&self, slots: SlotSet) {
        if let Some(narrow) = self.inner.narrow.get() {
            narrow.want(slots);
        }
    }

    /// Waits until a narrowed cache has the objects of slots.
    pub(crate) async fn fill(&self, slots: SlotSet) {
        if let Some(narrow) = self.inner.narrow.get() {
            narrow.wait_until_listed(&slots).await;
        }
    }

    /// Returns what is waited for if a narrowed cache does not have the objects of slots.
    pub(crate) fn awaited(&self, slots: SlotSet) -> Option<String> {
        let unlisted = self.inner.narrow.get()?.unlisted(&slots);
        if unlisted == 0 {
            return None;
        }
        let status = self.inner.sources.first()?.status();
        let error = match status.state {
            InformerState::Synced | InformerState::Idle => String::new(),
            _ => status.last_error.map(|error| format!(": {error}")).unwrap_or_default(),
        };
        Some(format!("a list of the {} of {unlisted} slots for controller {:?}{error}", status.resource, self.name()))
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
        // A narrowed cache was read after its slots had come to this replica, and need not show writes to objects of other slots.
        let narrowed = usize::from(self.inner.narrow.get().is_some());
        for source in self.inner.sources.iter().skip(narrowed) {
            if let Some(version) = wrote.get(source.resource()) {
                // A stopped informer never shows the write.
                let _ = source.wait_for_version(*version).await;
            }
        }
    }
}
