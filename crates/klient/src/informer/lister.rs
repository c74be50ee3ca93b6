//! Read access to an informer's cache.

use std::{fmt, sync::Arc};

use klient_core::{LabelSelector, ObjectKey, Resource};

use super::{
    Handle, Index, IndexFunc, NAMESPACE_INDEX,
    object::CachedObject,
    store::{Objects, Snapshot},
};
use crate::Error;

/// Read access to an informer's cache. Reads never wait and send no requests.
///
/// A lister keeps the informer running.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::SharedInformer;
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

    /// Returns the informer behind the lister.
    #[cfg(feature = "client")]
    pub(crate) fn handle(&self) -> &Handle<K> {
        &self.handle
    }

    /// Returns the cached object with this key, if any.
    pub fn get(&self, key: &ObjectKey) -> Option<CachedObject<K>> {
        self.handle.processor.store.get(key)
    }

    /// Returns all cached objects.
    pub fn list(&self) -> Objects<CachedObject<K>> {
        self.handle.processor.store.list()
    }

    /// Returns the cached objects whose labels match a selector.
    pub fn select(&self, selector: &LabelSelector) -> Vec<CachedObject<K>> {
        matching(&self.list(), selector)
    }

    /// Returns a snapshot of the cache, for several reads that must be consistent.
    pub fn snapshot(&self) -> Snapshot<CachedObject<K>> {
        self.handle.processor.store.snapshot()
    }

    /// Returns the number of cached objects.
    pub fn len(&self) -> usize {
        self.handle.processor.store.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a lister of one namespace.
    pub fn namespace(&self, namespace: &str) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.to_owned() }
    }

    /// Returns the index with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such index.
    pub fn index(&self, name: &str) -> Result<Index<CachedObject<K>>, Error> {
        self.handle.processor.store.index(name)
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

/// Read access to one namespace of an informer's cache.
pub struct NamespaceLister<K: Resource> {
    lister: Lister<K>,
    namespace: String,
}

impl<K: Resource> NamespaceLister<K> {
    /// Returns the cached object with this name, if any.
    pub fn get(&self, name: &str) -> Option<CachedObject<K>> {
        self.lister.get(&ObjectKey::namespaced(&self.namespace, name))
    }

    /// Returns all cached objects of the namespace.
    ///
    /// The first call adds the [namespace index](NAMESPACE_INDEX) to the store.
    pub fn list(&self) -> Objects<CachedObject<K>> {
        let store = &self.lister.handle.processor.store;
        store.by_index(NAMESPACE_INDEX, &self.namespace).unwrap_or_else(|_| {
            // The first call adds the index. It fails only if another call has added it meanwhile, which is as good.
            let _ = store.add_index(NAMESPACE_INDEX, IndexFunc::namespace());
            store.by_index(NAMESPACE_INDEX, &self.namespace).unwrap_or_default()
        })
    }

    /// Returns the cached objects of the namespace whose labels match a selector.
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
