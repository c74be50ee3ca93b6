//! Reads of an informer's cache.

use std::{fmt, sync::Arc};

use klient_core::{LabelSelector, ObjectKey, Resource};

use super::{
    Handle, Index, IndexFunc, NAMESPACE_INDEX,
    object::CachedObject,
    store::{Objects, Snapshot},
};
use crate::Error;

/// Reads an informer's cache, which it keeps running. Reads never wait, and never ask the server.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::informer::SharedInformer;
///
/// # fn read(informer: &SharedInformer<Pod>) -> Result<(), klient::Error> {
/// let pods = informer.lister();
/// if let Some(web) = pods.namespace("shop").get("web-0") {
///     println!("{:?}", web.decode()?.spec);
/// }
/// for pod in pods.select(&"app=web".parse().unwrap()) {
///     println!("{}", pod.key());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "GenericLister")]
pub struct Lister<K: Resource> {
    handle: Arc<Handle<K>>,
}

impl<K: Resource> Lister<K> {
    pub(super) fn new(handle: Arc<Handle<K>>) -> Self {
        Self { handle }
    }

    /// The object with this key, if the cache has it.
    pub fn get(&self, key: &ObjectKey) -> Option<CachedObject<K>> {
        self.handle.shared.store.get(key)
    }

    /// All objects, as they are now.
    pub fn list(&self) -> Objects<CachedObject<K>> {
        self.handle.shared.store.list()
    }

    /// The objects with the labels that a selector asks for.
    pub fn select(&self, selector: &LabelSelector) -> Vec<CachedObject<K>> {
        matching(&self.list(), selector)
    }

    /// The cache as it is now, for reads that must fit together.
    pub fn snapshot(&self) -> Snapshot<CachedObject<K>> {
        self.handle.shared.store.snapshot()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.handle.shared.store.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads one namespace.
    pub fn namespace(&self, namespace: &str) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.to_owned() }
    }

    /// The index of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn index(&self, name: &str) -> Result<Index<CachedObject<K>>, Error> {
        self.handle.shared.store.index(name)
    }
}

impl<K: Resource> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<K: Resource> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.len()).finish()
    }
}

/// Reads one namespace of an informer's cache.
pub struct NamespaceLister<K: Resource> {
    lister: Lister<K>,
    namespace: String,
}

impl<K: Resource> NamespaceLister<K> {
    /// The object of that name, if the cache has it.
    pub fn get(&self, name: &str) -> Option<CachedObject<K>> {
        self.lister.get(&ObjectKey::namespaced(&self.namespace, name))
    }

    /// All objects of the namespace, as they are now.
    pub fn list(&self) -> Objects<CachedObject<K>> {
        let store = &self.lister.handle.shared.store;
        store.by_index(NAMESPACE_INDEX, &self.namespace).unwrap_or_else(|_| {
            // Nobody has asked by namespace before. If somebody else does at the same moment, one index is enough.
            let _ = store.add_index(NAMESPACE_INDEX, IndexFunc::namespace());
            store.by_index(NAMESPACE_INDEX, &self.namespace).unwrap_or_default()
        })
    }

    /// The objects of the namespace with the labels that a selector asks for.
    pub fn select(&self, selector: &LabelSelector) -> Vec<CachedObject<K>> {
        matching(&self.list(), selector)
    }
}

impl<K: Resource> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish()
    }
}

fn matching<K: Resource>(objects: &Objects<CachedObject<K>>, selector: &LabelSelector) -> Vec<CachedObject<K>> {
    let everything = selector.is_everything();
    objects.iter().filter(|object| everything || object.matches(selector)).cloned().collect()
}
