//! One informer per kind, scope and selector, for everyone in the process.
//!
//! The factory does not keep informers running: handles, listers and registrations do. When the last one is gone, the watch
//! ends, and whoever asks next gets a new informer.

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

/// Gives out informers: the same one to all who ask for the same objects.
///
/// ```no_run
/// use klient::Client;
/// use klient::informer::{HandlerFuncs, InformerFactory};
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
    shared: Arc<Mutex<Informers>>,
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

/// What is done with informers of whatever kind.
trait AnyInformer: Send + Sync {
    fn start(&self);
    fn is_over(&self) -> bool;
    fn wait_for_sync(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
    fn stop(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<K: Resource> AnyInformer for Handle<K> {
    fn start(&self) {
        Handle::start(self);
    }

    fn is_over(&self) -> bool {
        *self.shared.board.states().borrow() == InformerState::Stopped
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
    /// Informers that ask through a client, for objects of all namespaces.
    pub fn new(client: Client) -> Self {
        let (label_selector, field_selector) = (String::new(), String::new());
        Self { client, namespace: String::new(), label_selector, field_selector, shared: Arc::default() }
    }

    /// A factory for objects of one namespace. It shares its informers with this one: start and shutdown are for both.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self.clone() }
    }

    /// A factory for objects with these labels; otherwise as [`namespace`](Self::namespace).
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn labels(&self, selector: impl ToString) -> Self {
        Self { label_selector: selector.to_string(), ..self.clone() }
    }

    /// A factory for objects with these field values; otherwise as [`namespace`](Self::namespace).
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that selectors and texts can be given in place")]
    pub fn fields(&self, selector: impl ToString) -> Self {
        Self { field_selector: selector.to_string(), ..self.clone() }
    }

    /// The informer of a namespaced kind.
    pub fn namespaced<K: Resource<Scope = NamespaceScope>>(&self) -> SharedInformer<K> {
        self.of(Api::in_namespace(self.client.clone(), &self.namespace))
    }

    /// The informer of a cluster-scoped kind.
    pub fn cluster<K: Resource<Scope = ClusterScope>>(&self) -> SharedInformer<K> {
        self.of(Api::cluster(self.client.clone()))
    }

    /// The informer of a kind known at run time.
    pub fn dynamic(&self, resource: ApiResource) -> SharedInformer<DynamicObject> {
        let target = match resource.scope {
            Scope::Cluster => Target::Cluster,
            Scope::Namespaced => Target::in_namespace(&self.namespace),
        };
        self.of(Api::dynamic(self.client.clone(), resource, target))
    }

    /// The informer of what an API shows, as far as the factory's selectors match.
    pub fn of<K: Resource>(&self, api: Api<K>) -> SharedInformer<K> {
        self.of_with(api, |builder| builder)
    }

    /// The informer of the metadata of what an API shows.
    pub fn metadata_of<K: Resource>(&self, api: &Api<K>) -> SharedInformer<PartialObjectMeta<K>> {
        self.of(api.metadata())
    }

    /// The informer of what an API shows; set up further, if nobody has asked for it before.
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
        let known = informers.by_key.get(&key).and_then(|entry| entry.typed.downcast_ref::<Weak<Handle<K>>>());
        if let Some(handle) = known.and_then(Weak::upgrade).filter(|handle| !handle.is_over()) {
            return SharedInformer { handle };
        }
        let builder = SharedInformer::builder(api).labels(&self.label_selector).fields(&self.field_selector);
        let informer = set_up(builder).build();
        let weak = Arc::downgrade(&informer.handle);
        let entry = Entry { typed: Box::new(weak.clone()), informer: weak };
        informers.by_key.retain(|_, entry| entry.informer.strong_count() > 0);
        informers.by_key.insert(key, entry);
        informer
    }

    /// Starts every informer that is not started. Of those asked for later, each needs another call.
    pub fn start(&self) {
        if self.lock().closed {
            tracing::warn!("the informer factory is shut down: nothing is started");
            return;
        }
        for informer in self.informers() {
            informer.start();
        }
    }

    /// Waits until every informer that was asked for has its first list.
    ///
    /// # Errors
    ///
    /// If one is stopped meanwhile.
    pub async fn wait_for_sync(&self) -> Result<(), Error> {
        if self.lock().closed {
            return Err(Error::new(ErrorKind::Canceled, "the informer factory is shut down"));
        }
        for informer in self.informers() {
            informer.wait_for_sync().await.map_err(|error| error.context("an informer did not sync"))?;
        }
        Ok(())
    }

    /// Stops all informers, once their handlers have been told everything, and starts none any more.
    pub async fn shutdown(&self) {
        self.lock().closed = true;
        for informer in self.informers() {
            informer.stop().await;
        }
    }

    fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.lock().by_key.values().filter_map(|entry| entry.informer.upgrade()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Informers> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("informers", &self.informers().len()).finish_non_exhaustive()
    }
}
