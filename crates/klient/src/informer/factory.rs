//! The factory: one informer per kind, scope and selector, for all users in the process.
//!
//! The factory does not keep informers running: handles, listers and registrations do. When the last of them is dropped, the
//! watch ends, and the next request for the same objects creates a new informer.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use klient_core::{
    ApiResource, ClusterScope, DynamicObject, NamespaceScope, PartialObjectMeta, Resource, Scope, Target,
};

use super::{Handle, InformerBuilder, InformerState, SharedInformer};
use crate::{
    Error, ErrorKind,
    client::{Api, Client},
};

/// A factory of informers, which returns the same informer for the same objects.
///
/// ```no_run
/// use klient::{Client, InformerFactory, informer::HandlerFuncs};
///
/// # async fn watch() -> Result<(), klient::Error> {
/// let factory = InformerFactory::new(Client::infer()?).namespace("shop");
/// let pods = factory.core_v1().pods();
/// let deployments = factory.apps_v1().deployments().lister();
/// let _registration = pods.add_handler(HandlerFuncs::new().on_add(|pod, _| println!("{}", pod.key())));
/// factory.start();
/// factory.wait_for_sync().await?;
/// println!("{} deployments", deployments.len());
/// factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SharedInformerFactory")]
#[derive(Clone)]
pub struct InformerFactory {
    client: Client,
    namespace: String,
    label_selector: String,
    field_selector: String,
    informers: Arc<Mutex<Informers>>,
}

#[derive(Default)]
struct Informers {
    by_key: HashMap<Key, Entry>,
    closed: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: TypeId,
    resource: ApiResource,
    target: Target,
    label_selector: String,
    field_selector: String,
}

struct Entry {
    /// A `Weak<Handle<K>>`.
    typed: Box<dyn Any + Send>,
    informer: Weak<dyn AnyInformer>,
}

/// An informer of any kind.
trait AnyInformer: Send + Sync {
    fn start(&self);
    fn is_stopped(&self) -> bool;
    fn wait_for_sync(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
    fn stop(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<K: Resource> AnyInformer for Handle<K> {
    fn start(&self) {
        Handle::start(self);
    }

    fn is_stopped(&self) -> bool {
        *self.processor.board.states().borrow() == InformerState::Stopped
    }

    fn wait_for_sync(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
        let informer = SharedInformer { handle: self };
        Box::pin(async move { informer.wait_for_sync().await })
    }

    fn stop(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let informer = SharedInformer { handle: self };
        Box::pin(async move { informer.stop().await })
    }
}

impl InformerFactory {
    /// Creates a factory that uses a client, for objects of all namespaces.
    pub fn new(client: Client) -> Self {
        let (label_selector, field_selector) = (String::new(), String::new());
        Self { client, namespace: String::new(), label_selector, field_selector, informers: Arc::default() }
    }

    /// Returns a factory for objects of one namespace. Both factories share their informers, so that starting or shutting down
    /// one of them affects both.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self.clone() }
    }

    /// Returns a factory for objects that match a label selector. Both factories share their informers.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn labels(&self, selector: impl ToString) -> Self {
        Self { label_selector: selector.to_string(), ..self.clone() }
    }

    /// Returns a factory for objects that match a field selector. Both factories share their informers.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn fields(&self, selector: impl ToString) -> Self {
        Self { field_selector: selector.to_string(), ..self.clone() }
    }

    /// Returns the informer of a namespaced kind.
    pub fn namespaced<K: Resource<Scope = NamespaceScope>>(&self) -> SharedInformer<K> {
        self.of(Api::in_namespace(self.client.clone(), &self.namespace))
    }

    /// Returns the informer of a cluster-scoped kind.
    pub fn cluster<K: Resource<Scope = ClusterScope>>(&self) -> SharedInformer<K> {
        self.of(Api::cluster(self.client.clone()))
    }

    /// Returns the informer of a kind that is known only at run time.
    #[doc(alias = "DynamicSharedInformerFactory")]
    pub fn dynamic(&self, resource: ApiResource) -> SharedInformer<DynamicObject> {
        let target = match resource.scope {
            Scope::Cluster => Target::Cluster,
            Scope::Namespaced => Target::in_namespace(&self.namespace),
        };
        self.of(Api::dynamic(self.client.clone(), resource, target))
    }

    /// Returns the informer of an API's objects that match the factory's selectors.
    #[doc(alias = "ForResource")]
    pub fn of<K: Resource>(&self, api: Api<K>) -> SharedInformer<K> {
        self.of_with(api, |builder| builder)
    }

    /// Returns the informer of the metadata of an API's objects.
    #[doc(alias = "metadatainformer")]
    pub fn metadata_of<K: Resource>(&self, api: &Api<K>) -> SharedInformer<PartialObjectMeta<K>> {
        self.of(api.metadata())
    }

    /// Returns the informer of an API's objects. A new informer is configured by `set_up`; an existing one is returned as it is.
    pub fn of_with<K: Resource>(
        &self,
        api: Api<K>,
        set_up: impl FnOnce(InformerBuilder<Api<K>>) -> InformerBuilder<Api<K>>,
    ) -> SharedInformer<K> {
        let key = Key {
            kind: TypeId::of::<K>(),
            resource: api.resource().clone(),
            target: api.target().clone(),
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
        };
        let mut informers = self.lock();
        let existing = informers.by_key.get(&key).and_then(|entry| entry.typed.downcast_ref::<Weak<Handle<K>>>());
        if let Some(handle) = existing.and_then(Weak::upgrade).filter(|handle| !handle.is_stopped()) {
            return SharedInformer { handle };
        }
        let builder = SharedInformer::builder(api).labels(&self.label_selector).fields(&self.field_selector);
        let informer = set_up(builder).shared().build();
        let weak = Arc::downgrade(&informer.handle);
        let entry = Entry { typed: Box::new(weak.clone()), informer: weak };
        informers.by_key.retain(|_, entry| entry.informer.strong_count() > 0);
        informers.by_key.insert(key, entry);
        informer
    }

    /// Starts all informers that are not started. Informers that are requested later need another call.
    pub fn start(&self) {
        if self.lock().closed {
            tracing::warn!("informer factory is shut down, starting nothing");
            return;
        }
        for informer in self.running() {
            informer.start();
        }
    }

    /// Waits until all informers have their first list.
    #[doc(alias = "WaitForCacheSync")]
    ///
    /// # Errors
    ///
    /// Returns an error if an informer is stopped meanwhile, or the factory is shut down.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        if self.lock().closed {
            return Err(Error::new(ErrorKind::Canceled, "the informer factory is shut down"));
        }
        for informer in self.running() {
            informer.wait_for_sync().await.map_err(|error| error.context("an informer of the factory did not sync"))?;
        }
        Ok(())
    }

    /// Stops all informers, and waits until their handlers have received all events. Nothing can be started afterwards.
    pub async fn shutdown(&self) {
        self.lock().closed = true;
        for informer in self.running() {
            informer.stop().await;
        }
    }

    fn running(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.lock().by_key.values().filter_map(|entry| entry.informer.upgrade()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Informers> {
        self.informers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("informers", &self.running().len()).finish_non_exhaustive()
    }
}
