//! One informer over several others: the objects of many namespaces, or of many names, in one cache with one set of handlers.
//!
//! The parts are informers of their own, with a watch each. Their objects are shared with the merged cache, not copied. A change of a
//! part is applied to the merged cache by the handler of that part, and one lock orders these changes, also those that
//! come from adding and removing parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use klient_core::{ObjectKey, Resource};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use super::{
    CachedObject, Delta, DeltaBatch, Event, Handle, InformerState, Registration, SharedInformer, Tombstone,
    builder::ObjectFormat,
    processor::{Processor, Task},
    reflector::StatusBoard,
    run::{Lifecycle, run},
    scope::Scope,
};

/// A part of a resource: a namespace, or one object of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartId {
    pub(super) namespace: String,
    pub(super) name: Option<String>,
}

impl PartId {
    fn covers(&self, key: &ObjectKey) -> bool {
        key.namespace().unwrap_or_default() == self.namespace
            && self.name.as_deref().is_none_or(|name| name == key.name())
    }
}

/// The parts and objects that a merged informer should have.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) parts: BTreeSet<PartId>,
    /// The objects, or `None` for all objects of the parts.
    pub(super) keys: Option<Arc<BTreeSet<ObjectKey>>>,
    /// Whether the set of parts is known.
    pub(super) is_known: bool,
}

impl Wanted {
    fn has(&self, key: &ObjectKey) -> bool {
        match &self.keys {
            Some(keys) => keys.contains(key),
            None => self.parts.iter().any(|part| part.covers(key)),
        }
    }
}

/// Creates the informer of one part.
pub(super) type InformerOf<K> = Box<dyn Fn(&PartId) -> SharedInformer<K> + Send + Sync>;

/// Creates an informer over the parts that `wanted` has at any time. `begin` is called when the informer is started, and its output is
/// dropped when it is stopped.
pub(super) fn merge<K: Resource, G: Send + 'static>(
    resource: String,
    wanted: watch::Receiver<Wanted>,
    informer_of: InformerOf<K>,
    begin: impl FnOnce() -> G + Send + 'static,
) -> SharedInformer<K> {
    let board = Arc::new(StatusBoard::new(resource, None));
    let covered = wanted.clone();
    let scope = Scope::of_keys(move |key| covered.borrow().has(key));
    let (processor, tasks) = Processor::new(Arc::clone(&board), scope, None, ObjectFormat::Wire, None);
    let of_task = Arc::clone(&processor);
    let create_task = move |stopped| -> Task {
        let merging = Merging {
            shared: Arc::new(Shared { processor: Arc::clone(&of_task), order: Mutex::default() }),
            board,
            wanted,
            informer_of,
            parts: BTreeMap::new(),
            has_synced: false,
        };
        let running = async move {
            let _begun = begin();
            merging.run().await
        };
        Box::pin(run(of_task, running, tasks, stopped))
    };
    let lifecycle = Lifecycle::NotStarted(Some(Box::new(create_task)));
    SharedInformer { handle: Arc::new(Handle { processor, lifecycle: lifecycle.into(), is_shared: true }) }
}

/// The merged cache, and the lock that orders its changes.
struct Shared<K: Resource> {
    processor: Arc<Processor<K>>,
    order: Mutex<Order>,
}

/// The objects that the merged cache may have at the moment.
#[derive(Default)]
struct Order {
    keys: Option<Arc<BTreeSet<ObjectKey>>>,
}

struct Part<K: Resource> {
    informer: SharedInformer<K>,
    is_active: Arc<AtomicBool>,
    _registration: Registration<K>,
    watcher: AbortHandle,
}

impl<K: Resource> Drop for Part<K> {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// The task of a merged informer.
struct Merging<K: Resource> {
    shared: Arc<Shared<K>>,
    board: Arc<StatusBoard>,
    wanted: watch::Receiver<Wanted>,
    informer_of: InformerOf<K>,
    parts: BTreeMap<PartId, Part<K>>,
    has_synced: bool,
}

impl<K: Resource> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the event of a part.
    fn follow(&self, event: &Event<K>, is_active: &AtomicBool) {
        let order = self.lock();
        let is_wanted = order.keys.as_ref().is_none_or(|keys| keys.contains(event.key()));
        if !is_wanted || !is_active.load(Ordering::Acquire) {
            return;
        }
        let object = event.object().clone();
        let (delta, initial) = match event {
            Event::Added { in_initial_list: true, .. } if order.keys.is_none() => (Delta::Replaced(object), true),
            Event::Added { .. } => (Delta::Added(object), false),
            Event::Updated { .. } if event.is_resync() => return,
            Event::Updated { .. } => (Delta::Updated(object), false),
            Event::Deleted(tombstone) => (Delta::Deleted(tombstone.clone()), false),
        };
        self.apply(vec![delta], initial, false);
        drop(order);
    }

    fn apply(&self, deltas: Vec<Delta<CachedObject<K>>>, in_initial_list: bool, first: bool) {
        // The version of the merged cache is the newest that any part has shown: parts have no common one.
        let known = self.processor.store.resource_version();
        let newest = deltas.last().map(|delta| delta.object().resource_version());
        let version = newest.filter(|newest| newest.is_newer_than(&known) || known.as_str().is_empty());
        let batch = DeltaBatch { deltas, version, in_initial_list, replaced: false };
        self.processor.apply_part(batch, first);
    }
}

impl<K: Resource> Merging<K> {
    async fn run(mut self) -> Infallible {
        let mut watchers = JoinSet::new();
        let (changed, mut changes) = watch::channel(());
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            changes.borrow_and_update();
            for id in wanted.parts.iter().filter(|id| !self.parts.contains_key(id)).cloned().collect::<Vec<_>>() {
                let part = self.start(&id, &mut watchers, &changed);
                self.parts.insert(id, part);
            }
            self.set_keys(&wanted);
            self.remove_unwanted(&wanted);
            self.report(&wanted);
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() {
                    // The set of parts does not change any more.
                    let _ = changes.changed().await;
                },
                _ = changes.changed() => {}
                Some(_) = watchers.join_next(), if !watchers.is_empty() => {}
            }
        }
    }

    /// Starts the informer of a part.
    fn start(&self, id: &PartId, watchers: &mut JoinSet<()>, changed: &watch::Sender<()>) -> Part<K> {
        let informer = (self.informer_of)(id);
        let is_active = Arc::new(AtomicBool::new(true));
        let (shared, active) = (Arc::clone(&self.shared), Arc::clone(&is_active));
        let registration = informer.add_handler(move |event: &Event<K>| shared.follow(event, &active));
        let mut states = informer.states();
        let changed = changed.clone();
        let mut synced = registration.synced();
        let watcher = watchers.spawn(async move {
            loop {
                tokio::select! {
                    state = states.changed() => if state.is_err() { return },
                    is_synced = synced.changed() => if is_synced.is_err() { return },
                }
                changed.send_replace(());
            }
        });
        informer.start();
        Part { informer, is_active, _registration: registration, watcher }
    }

    /// Adds objects that are wanted now, and removes those that are not.
    fn set_keys(&self, wanted: &Wanted) {
        let Some(keys) = &wanted.keys else { return };
        let mut order = self.shared.lock();
        let before = order.keys.replace(Arc::clone(keys)).unwrap_or_default();
        let mut deltas = Vec::new();
        for key in keys.difference(&before) {
            let parts = self.parts.iter().filter(|(id, _)| id.covers(key));
            let found = parts.filter_map(|(_, part)| part.informer.store().get(key)).next();
            deltas.extend(found.map(Delta::Added));
        }
        for key in before.difference(keys) {
            let known = self.shared.processor.store.get(key);
            deltas.extend(known.map(|object| Delta::Deleted(Tombstone::LastKnown(object))));
        }
        if !deltas.is_empty() {
            self.shared.apply(deltas, false, false);
        }
    }

    /// Removes parts that are not wanted, once the parts that replace them have their objects.
    fn remove_unwanted(&mut self, wanted: &Wanted) {
        let parts = &self.parts;
        let is_replaced = |id: &PartId| {
            let mut others = wanted.parts.iter().filter(|other| other.namespace == id.namespace);
            others.all(|other| parts.get(other).is_some_and(|part| part._registration.has_synced()))
        };
        let unwanted: Vec<PartId> =
            parts.keys().filter(|id| !wanted.parts.contains(id) && is_replaced(id)).cloned().collect();
        for id in unwanted {
            let Some(part) = self.parts.remove(&id) else { continue };
            let order = self.shared.lock();
            part.is_active.store(false, Ordering::Release);
            let objects = part.informer.store().list();
            let still_covered = |key: &ObjectKey| self.parts.keys().any(|other| other.covers(key));
            let gone = objects.iter().filter(|object| !still_covered(object.key()));
            let deltas: Vec<_> = gone
                .filter_map(|object| self.shared.processor.store.get(object.key()))
                .map(|object| Delta::Deleted(Tombstone::LastKnown(object)))
                .collect();
            if !deltas.is_empty() {
                self.shared.apply(deltas, false, false);
            }
            drop(order);
        }
    }

    /// Merges the status of the parts, and notes when all of them have their first list.
    fn report(&mut self, wanted: &Wanted) {
        let is_complete = wanted.is_known && self.parts.values().all(|part| part._registration.has_synced());
        if is_complete && !self.has_synced {
            self.has_synced = true;
            let _order = self.shared.lock();
            self.shared.apply(Vec::new(), true, true);
        }
        let statuses: Vec<_> = self.parts.iter().map(|(id, part)| (&*id.namespace, part.informer.status())).collect();
        let state = if wanted.is_known && self.has_synced { InformerState::Synced } else { InformerState::Syncing };
        self.board.merge(state, &statuses);
    }
}
