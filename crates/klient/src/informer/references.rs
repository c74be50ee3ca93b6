//! An informer of exactly those objects that others refer to by name.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use klient_core::{NamespaceScope, ObjectKey, Resource};
use tokio::sync::watch;

use super::{
    SharedInformer,
    merged::{PartId, Wanted, merge},
};
use crate::client::{Api, Client};

/// An informer of the Secrets, ConfigMaps or other objects that objects of another kind refer to, and of no others. Clones refer to the
/// same one.
///
/// Each object is watched by its name, for as long as at least one owner refers to it. The program needs permission to list and watch
/// these names only (`resourceNames`). A namespace with more than [`NAMES_PER_NAMESPACE`](Self::NAMES_PER_NAMESPACE) names has one watch
/// instead; [`by_name`](Self::by_name) creates an informer that never does that.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use klient::{Client, ObjectKey, informer::References};
///
/// # async fn reconcile(client: Client) {
/// let secrets: References<Secret> = References::new(client);
/// secrets.informer().start();
/// let website = ObjectKey::namespaced("shop", "web");
/// secrets.set(website, [ObjectKey::namespaced("shop", "web-tls")]); // in the reconciler of a website
/// # }
/// ```
pub struct References<K: Resource> {
    inner: Arc<Inner>,
    informer: SharedInformer<K>,
}

struct Inner {
    state: Mutex<State>,
    wanted: watch::Sender<Wanted>,
    limit: usize,
}

#[derive(Default)]
struct State {
    by_owner: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    counts: BTreeMap<ObjectKey, usize>,
}

impl<K: Resource<Scope = NamespaceScope>> References<K> {
    /// The number of names in a namespace above which the namespace is watched as a whole.
    pub const NAMES_PER_NAMESPACE: usize = 20;

    /// Creates an informer of referenced objects.
    pub fn new(client: Client) -> Self {
        Self::with_limit(client, Self::NAMES_PER_NAMESPACE)
    }

    /// Creates an informer that watches each referenced object by its name, however many there are.
    pub fn by_name(client: Client) -> Self {
        Self::with_limit(client, usize::MAX)
    }

    fn with_limit(client: Client, limit: usize) -> Self {
        let wanted = watch::Sender::new(Wanted { keys: Some(Arc::default()), is_known: true, ..Wanted::default() });
        let resource = klient_core::ApiResource::of::<K>().group_resource().to_string();
        let informer_of = Box::new(move |part: &PartId| {
            let builder = SharedInformer::builder(Api::<K>::namespaced(client.clone(), &part.namespace));
            match &part.name {
                Some(name) => builder.fields(format!("metadata.name={name}")).build(),
                None => builder.build(),
            }
        });
        let informer = merge(resource, wanted.subscribe(), informer_of, || ());
        Self { inner: Arc::new(Inner { state: Mutex::default(), wanted, limit }), informer }
    }
}

impl<K: Resource> References<K> {
    /// Replaces the references of an owner. Objects that no owner refers to any more are not watched, and announced as deleted.
    pub fn set(&self, owner: ObjectKey, keys: impl IntoIterator<Item = ObjectKey>) {
        let new: BTreeSet<ObjectKey> = keys.into_iter().collect();
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match new.is_empty() {
            true => state.by_owner.remove(&owner),
            false => state.by_owner.insert(owner, new.clone()),
        };
        let old = old.unwrap_or_default();
        if old == new {
            return;
        }
        for key in new.difference(&old) {
            *state.counts.entry(key.clone()).or_default() += 1;
        }
        for key in old.difference(&new) {
            if let Some(count) = state.counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    state.counts.remove(key);
                }
            }
        }
        let wanted = state.wanted(self.inner.limit);
        // Under the lock, so that an older set never replaces a newer one.
        self.inner.wanted.send_replace(wanted);
    }

    /// Removes the references of an owner.
    pub fn remove(&self, owner: &ObjectKey) {
        self.set(owner.clone(), []);
    }

    /// Returns the number of objects that are referred to.
    pub fn len(&self) -> usize {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner).counts.len()
    }

    /// Returns whether no object is referred to.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the informer. It is started, read and used as a source of controllers like any other.
    pub fn informer(&self) -> &SharedInformer<K> {
        &self.informer
    }
}

impl State {
    /// Returns the watches for the current references.
    fn wanted(&self, limit: usize) -> Wanted {
        let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for key in self.counts.keys() {
            by_namespace.entry(key.namespace().unwrap_or_default()).or_default().push(key.name());
        }
        let mut parts = BTreeSet::new();
        for (namespace, names) in by_namespace {
            let part = |name: Option<&str>| PartId { namespace: namespace.to_owned(), name: name.map(str::to_owned) };
            if names.len() > limit {
                parts.insert(part(None));
            } else {
                parts.extend(names.into_iter().map(|name| part(Some(name))));
            }
        }
        Wanted { parts, keys: Some(Arc::new(self.counts.keys().cloned().collect())), is_known: true }
    }
}

impl<K: Resource> Clone for References<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), informer: self.informer.clone() }
    }
}

impl<K: Resource> fmt::Debug for References<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("References").field("objects", &self.len()).finish_non_exhaustive()
    }
}
