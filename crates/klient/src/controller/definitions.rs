//! Sources that follow custom resource definitions: added when a definition is established, removed when it is deleted.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use klient_core::{ApiResource, DynamicObject, GroupVersionKind, Resource, Scope};

use super::{Controller, Keys};
use crate::{
    Error, InformerFactory,
    client::{Api, Client},
    informer::{CachedObject, Event, SharedInformer},
};

impl<K: Resource> Controller<K> {
    /// Follows custom resource definitions until the signal is ready: adds a [source](Self::add_source) for each definition that
    /// `select` accepts, and removes it when the definition is deleted or not accepted any more.
    ///
    /// The sources have the names of the definitions. They watch the version that is stored.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use klient::{Client, Controller, ObjectKey};
    ///
    /// # async fn follow(controller: Controller<ConfigMap>, client: Client, stop: impl Future<Output = ()>) -> klient::Result<()> {
    /// controller
    ///     .follow_definitions(
    ///         client,
    ///         |definition| definition.spec.group == "shop.example.com",
    ///         |event, keys| keys.add(ObjectKey::namespaced("shop", "inventory")),
    ///         stop,
    ///     )
    ///     .await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a source with the name of a definition was added before.
    pub async fn follow_definitions(
        &self,
        client: Client,
        select: impl Fn(&CustomResourceDefinition) -> bool + Send,
        map: impl Fn(&Event<DynamicObject>, &mut Keys<'_>) + Send + Sync + 'static,
        signal: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let map = Arc::new(map);
        let factory = InformerFactory::new(client.clone());
        let definitions = SharedInformer::new(Api::<CustomResourceDefinition>::cluster(client));
        let mut events = definitions.events();
        definitions.start();
        let mut followed: BTreeMap<String, ApiResource> = BTreeMap::new();
        tokio::pin!(signal);
        let outcome = loop {
            let event = tokio::select! {
                biased;
                () = &mut signal => break Ok(()),
                event = events.next() => match event {
                    Some(event) => event,
                    None => break Ok(()),
                },
            };
            let name = event.key().name().to_owned();
            let wanted = match &event {
                Event::Deleted(_) => None,
                other => resource_of(other.object(), &select),
            };
            if followed.get(&name) == wanted.as_ref() {
                continue;
            }
            if followed.remove(&name).is_some() {
                self.remove_source(&name);
            }
            if let Some(resource) = wanted {
                let map = Arc::clone(&map);
                let source = factory.dynamic(resource.clone());
                if let Err(error) = self.add_source(name.clone(), source, move |event, keys| map(event, keys)) {
                    break Err(error);
                }
                followed.insert(name, resource);
            }
        };
        for name in followed.keys() {
            self.remove_source(name);
        }
        outcome
    }
}

/// Returns the resource of a definition that is accepted. A definition that cannot be decoded has none.
fn resource_of(
    definition: &CachedObject<CustomResourceDefinition>,
    select: &impl Fn(&CustomResourceDefinition) -> bool,
) -> Option<ApiResource> {
    let definition = definition.decode().ok().filter(|definition| select(definition))?;
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage && version.served);
    let version = stored.or_else(|| spec.versions.iter().find(|version| version.served))?;
    let scope = if spec.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    let gvk = GroupVersionKind::new(spec.group.clone(), version.name.clone(), spec.names.kind.clone());
    Some(ApiResource::new(gvk, spec.names.plural.clone(), scope))
}
