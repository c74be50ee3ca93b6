//! `Shards`: the handle that users hold, and its run as a part of a manager.

use std::{collections::BTreeMap, fmt, sync::Arc};

use klient_core::ObjectKey;
use tokio::sync::watch;

use super::{
    ShardOptions, ShardStatus,
    board::Board,
    group::{self, Name},
    lease::GroupStore,
    lease_store::LeaseStore,
    member::Work,
    progress::Progress,
    slot::Slot,
};
use crate::{Error, ErrorKind, client::Client, informer::narrow::SlotSet, metrics::Registry, retry::random};

/// The membership of this process in a group of replicas that share the keys of controllers. Clones refer to the same one.
///
/// A [`Manager`](crate::Manager) with shards runs its [sharded](crate::controller::ControllerBuilder::sharded) controllers on every replica,
/// each for a part of the keys. All state is in Leases of one namespace: one for the group, and one for each member.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::{Api, Client, Controller, Manager, controller::{Outcome, Request}};
/// use klient::shard::{ShardKey, ShardOptions, Shards};
///
/// async fn reconcile(request: Request<ConfigMap>) -> Result<Outcome, klient::Error> {
///     println!("{} is mine", request.key());
///     Ok(Outcome::Done)
/// }
///
/// # async fn run() -> Result<(), klient::Error> {
/// let client = Client::infer()?;
/// let maps: Api<ConfigMap> = Api::all(client.clone());
/// let controller = Controller::builder("maps", maps).sharded(ShardKey::object()).reconcile(reconcile);
/// let shards = Shards::new(client, "shop", "maps", ShardOptions::default())?.identity("pod-7");
/// Manager::builder().shards(shards).controller(controller).build().await?.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Shards {
    inner: Arc<Inner>,
}

struct Inner {
    store: LeaseStore,
    group: String,
    identity: String,
    process: String,
    options: ShardOptions,
    board: Arc<Board>,
    progress: Progress,
}

impl Shards {
    /// Creates the membership of this process in a group. The group's Leases are in `namespace`.
    ///
    /// This process needs permission to get, list, watch, create, update and delete Leases there.
    ///
    /// # Errors
    ///
    /// Returns a [`Config`](ErrorKind::Config) error if the group's name is not a DNS label of at most 40 characters, or if the timings
    /// leave no room for each other.
    pub fn new(client: Client, namespace: &str, group: &str, options: ShardOptions) -> Result<Self, Error> {
        options.check()?;
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends_well = !group.starts_with('-') && !group.ends_with('-');
        if group.is_empty() || group.len() > 40 || !group.bytes().all(is_valid) || !ends_well {
            let message = format!(
                "invalid name of a group of replicas {group:?}: expected at most 40 lower-case letters, digits and hyphens"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let registry = options.registry.clone().unwrap_or_else(|| Registry::global().clone());
        let inner = Inner {
            store: LeaseStore::new(client, namespace, group),
            group: group.to_owned(),
            identity: String::new(),
            process: format!("{group}-{}", suffix()),
            board: Board::new(options.clock.clone()),
            progress: Progress::new(&registry, group),
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sets the name of this replica for people, such as that of its pod. It need not be unique: members have names of their own.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.identity = identity.into();
        }
        self
    }

    /// Returns the group's current status, as this process sees it.
    pub fn status(&self) -> ShardStatus {
        ShardStatus::new(&self.inner.group, &self.inner.store.view(), &self.inner.progress, &self.inner.board)
    }

    /// Waits until a condition of the status holds.
    ///
    /// ```no_run
    /// # async fn wait(shards: klient::shard::Shards) {
    /// shards.wait_until(|status| status.open > 0).await;
    /// # }
    /// ```
    pub async fn wait_until(&self, holds: impl Fn(&ShardStatus) -> bool) {
        let (mut progress, mut store) = (self.inner.progress.changes(), self.inner.store.changes());
        loop {
            progress.borrow_and_update();
            store.borrow_and_update();
            if holds(&self.status()) {
                return;
            }
            tokio::select! {
                _ = progress.changed() => {}
                _ = store.changed() => {}
            }
        }
    }

    /// Returns the member that owns an object that is shared by its [key](super::ShardKey::object), as far as this process knows.
    pub fn owner_of(&self, key: &ObjectKey) -> Option<String> {
        self.owner_of_slot(Slot::of(key))
    }

    /// Returns the member that owns a slot, as far as this process knows. While a slot moves, that is the member that finishes its
    /// work.
    pub fn owner_of_slot(&self, slot: Slot) -> Option<String> {
        self.inner.progress.state().table.and_then(|table| table.slot(slot).holder().map(str::to_owned))
    }

    /// Returns the slots that this process works on.
    pub(crate) fn board(&self) -> &Arc<Board> {
        &self.inner.board
    }

    /// Takes part in the group until `leave` is set and the slots of this process are handed over.
    pub(crate) async fn run(
        &self,
        work: &(impl SharedWork + ?Sized),
        keys: &BTreeMap<String, String>,
        leave: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let Inner { store, group, identity, process, options, board, progress } = &*self.inner;
        let work = Limited { work, options };
        let name = Name { group, process, identity };
        group::run((store, &work), name, keys, options, (board, progress), leave).await
    }
}

/// The controllers that share keys.
pub(crate) trait SharedWork: Sync {
    /// Sets the slots whose objects narrowed caches should have.
    fn hold(&self, slots: SlotSet);

    /// Waits until narrowed caches have the objects of slots.
    fn fill(&self, slots: SlotSet) -> impl Future<Output = ()> + Send;

    /// Returns which narrowed cache does not have the objects of slots.
    fn awaited(&self, slots: SlotSet) -> Option<String>;

    /// Waits until the caches show writes of other replicas, by resource and version.
    fn catch_up(&self, wrote: BTreeMap<String, u64>) -> impl Future<Output = ()> + Send;

    /// Queues the keys of slots that are open now.
    fn gained(&self, slots: &[Slot]);
}

/// Work for whose caches to show writes the replica waits only for a limited time: a stalled watch must not stop it.
struct Limited<'a, W: ?Sized> {
    work: &'a W,
    options: &'a ShardOptions,
}

impl<W: SharedWork + ?Sized> Work for Limited<'_, W> {
    fn hold(&self, slots: SlotSet) {
        self.work.hold(slots);
    }

    fn awaited(&self, slots: SlotSet) -> Option<String> {
        self.work.awaited(slots)
    }

    async fn catch_up(&self, slots: SlotSet, wrote: BTreeMap<String, u64>) {
        // Without a limit: objects that were never listed would look deleted.
        self.work.fill(slots).await;
        let limit = self.options.catch_up;
        if tokio::time::timeout(limit, self.work.catch_up(wrote)).await.is_err() {
            tracing::warn!(?limit, "caches do not show the writes of the last owner of the keys, reconciling anyway");
        }
    }

    fn gained(&self, slots: &[Slot]) {
        self.work.gained(slots);
    }
}

/// Returns ten random letters and digits.
fn suffix() -> String {
    let digit = |_| char::from_digit((random() * 36.0) as u32, 36).unwrap_or('0');
    (0..10).map(digit).collect()
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards")
            .field("group", &self.inner.group)
            .field("process", &self.inner.process)
            .finish_non_exhaustive()
    }
}
