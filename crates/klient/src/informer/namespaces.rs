//! Sets of namespaces, fixed or changing, and informers over them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use k8s_openapi::api::core::v1::Namespace;
use klient_core::{ApiResource, NamespaceScope, Resource};
use tokio::sync::watch;

use super::{
    Event, InformerFactory, Registration, SharedInformer,
    merged::{PartId, Wanted, merge},
};
use crate::client::{Api, Client};

/// A set of namespaces, fixed or changing while informers use it. Clones refer to the same set.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use klient::{Client, InformerFactory, informer::NamespaceSet};
///
/// # async fn watch(client: Client) -> Result<(), klient::Error> {
/// let tenants = NamespaceSet::selected(client.clone(), "shop.example.com/tenant");
/// let secrets = InformerFactory::new(client).namespaces::<Secret>(&tenants);
/// secrets.start();
/// secrets.wait_for_sync().await?;
/// println!("{} secrets in {:?}", secrets.lister().len(), tenants.names());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NamespaceSet {
    wanted: watch::Sender<Wanted>,
    source: Option<Arc<Selected>>,
}

/// The namespaces that match a selector.
struct Selected {
    informer: SharedInformer<Namespace>,
    _registration: Registration<Namespace>,
}

impl NamespaceSet {
    /// Creates a set of these namespaces. [`set`](Self::set) changes it.
    #[doc(alias = "DefaultNamespaces")]
    pub fn of(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let set = Self { wanted: watch::Sender::new(Wanted::default()), source: None };
        set.set(names);
        set
    }

    /// Creates a set of the namespaces that match a label selector, as they come and go. This needs permission to list and watch
    /// namespaces.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass selectors and texts in place")]
    pub fn selected(client: Client, selector: impl ToString) -> Self {
        let informer = SharedInformer::builder(Api::<Namespace>::cluster(client)).labels(selector.to_string()).build();
        let wanted = watch::Sender::new(Wanted::default());
        let (sender, lister) = (wanted.clone(), informer.store().clone());
        let registration = informer.add_handler(move |_: &Event<Namespace>| {
            let names = lister.list().iter().map(|namespace| namespace.key().name().to_owned()).collect();
            replace(&sender, names);
        });
        Self { wanted, source: Some(Arc::new(Selected { informer, _registration: registration })) }
    }

    /// Replaces the namespaces of the set. A set that was created from a selector changes back with the next change of a namespace.
    pub fn set(&self, names: impl IntoIterator<Item = impl Into<String>>) {
        replace(&self.wanted, names.into_iter().map(Into::into).collect());
    }

    /// Returns the namespaces of the set.
    pub fn names(&self) -> BTreeSet<String> {
        self.wanted.borrow().parts.iter().map(|part| part.namespace.clone()).collect()
    }

    /// Starts the informer of the namespaces. A selector that no namespace matches is known after the first list, too.
    fn begin(&self) -> Option<tokio::task::JoinSet<()>> {
        let source = Arc::clone(self.source.as_ref()?);
        source.informer.start();
        let wanted = self.wanted.clone();
        let mut waiting = tokio::task::JoinSet::new();
        waiting.spawn(async move {
            if source._registration.wait_for_sync().await.is_ok() {
                wanted.send_modify(|wanted| wanted.is_known = true);
            }
        });
        Some(waiting)
    }
}

fn replace(wanted: &watch::Sender<Wanted>, names: BTreeSet<String>) {
    let parts = names.into_iter().map(|namespace| PartId { namespace, name: None }).collect();
    wanted.send_modify(|wanted| (wanted.parts, wanted.is_known) = (parts, true));
}

impl<K: Resource> SharedInformer<K> {
    /// Creates an informer over the namespaces of a set: one cache, one set of handlers and indices, one status. `informer_of`
    /// creates the informer of one namespace.
    ///
    /// Permissions are needed in these namespaces only. When a namespace leaves the set, its objects are announced as deleted.
    /// The informer has synced when all namespaces have. The [status](Self::status) is that of the namespace with the worst one.
    pub fn over_namespaces(set: &NamespaceSet, informer_of: impl Fn(&str) -> Self + Send + Sync + 'static) -> Self {
        // The name of the resource, from an informer that is never started.
        let resource = informer_of("default").status().resource;
        let begun = set.clone();
        let informer_of = Box::new(move |part: &PartId| informer_of(&part.namespace));
        merge(resource, set.wanted.subscribe(), informer_of, move || (begun.begin(), begun))
    }
}

impl InformerFactory {
    /// Returns an informer over the namespaces of a set; see [`SharedInformer::over_namespaces`]. The informers of single namespaces
    /// are shared with other users of this factory. Start the returned informer itself.
    pub fn namespaces<K: Resource<Scope = NamespaceScope>>(&self, set: &NamespaceSet) -> SharedInformer<K> {
        let factory = self.clone();
        SharedInformer::over_namespaces(set, move |namespace| factory.namespace(namespace).namespaced::<K>())
    }

    /// Returns an informer over the namespaces of a set, for a kind that is known only at run time.
    pub fn dynamic_namespaces(
        &self,
        resource: ApiResource,
        set: &NamespaceSet,
    ) -> SharedInformer<klient_core::DynamicObject> {
        let factory = self.clone();
        SharedInformer::over_namespaces(set, move |namespace| factory.namespace(namespace).dynamic(resource.clone()))
    }
}

impl fmt::Debug for NamespaceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamespaceSet").field(&self.names()).finish()
    }
}
