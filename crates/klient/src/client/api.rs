//! `Api<K>`: the verbs on one kind, in one namespace, in all of them, or cluster-wide.

mod built_in;
mod log;
mod subresource;

use std::{fmt, marker::PhantomData, sync::Arc};

use klient_core::{
    ApiResource, ClusterScope, DynamicObject, NamespaceScope, PartialObjectMeta, Patch, Resource, Status, Target,
};
use serde::Serialize;

pub use self::{log::LogStream, subresource::Subresource};
use super::{
    Client,
    endpoint::{Endpoint, Payload},
    verbs,
};

/// The verbs on one kind of object.
///
/// Each verb returns a request with chain methods for its options, which is sent when it is awaited. Objects travel as
/// protobuf where the kind has it, and as JSON otherwise.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client, Patch, WatchEvent};
/// use serde_json::json;
///
/// # async fn scale() -> klient::Result<()> {
/// let deployments: Api<Deployment> = Api::namespaced(Client::infer()?, "shop");
/// let list = deployments.list().labels("app=web").await?;
/// deployments.patch("web", Patch::merge(json!({"spec": {"replicas": 2}}))).await?;
///
/// let mut watch = deployments.watch().after(list.resource_version()).await?;
/// while let Some(event) = watch.next().await {
///     if let WatchEvent::Modified(deployment) = event? {
///         println!("{:?} replicas", deployment.spec.replicas);
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// A cluster-scoped kind has no namespaced API:
///
/// ```compile_fail
/// # use k8s_openapi::api::core::v1::Node;
/// # use klient::{Api, Client};
/// # fn wrong(client: Client) {
/// let nodes: Api<Node> = Api::namespaced(client, "default");
/// # }
/// ```
#[doc(alias = "Interface")]
pub struct Api<K> {
    endpoint: Arc<Endpoint>,
    kind: PhantomData<fn() -> K>,
}

/// The result of a delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted<K> {
    /// The last state of the object. It still exists if it waits for finalizers or its grace period.
    Object(Box<K>),
    /// The object is deleted.
    Status(Status),
}

impl<K> Api<K> {
    pub(in crate::client) fn with_endpoint(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, kind: PhantomData }
    }
}

impl<K: Resource<Scope = NamespaceScope>> Api<K> {
    /// Returns the objects in one namespace.
    pub fn namespaced(client: Client, namespace: &str) -> Self {
        Self::new(client, ApiResource::of::<K>(), Target::Namespace(namespace.to_owned()))
    }

    /// Returns the objects in one namespace, or in all of them if it is empty, as in client-go.
    pub fn in_namespace(client: Client, namespace: &str) -> Self {
        Self::new(client, ApiResource::of::<K>(), Target::in_namespace(namespace))
    }

    /// Returns the objects in the client's default namespace.
    pub fn default_namespaced(client: Client) -> Self {
        let namespace = client.default_namespace().to_owned();
        Self::namespaced(client, &namespace)
    }

    /// Returns the objects in all namespaces: for lists and watches.
    pub fn all(client: Client) -> Self {
        Self::new(client, ApiResource::of::<K>(), Target::AllNamespaces)
    }
}

impl<K: Resource<Scope = ClusterScope>> Api<K> {
    /// Returns the objects of a cluster-scoped kind.
    pub fn cluster(client: Client) -> Self {
        Self::new(client, ApiResource::of::<K>(), Target::Cluster)
    }
}

impl Api<DynamicObject> {
    /// Returns the objects of a kind known at run time.
    #[doc(alias = "DynamicClient")]
    pub fn dynamic(client: Client, resource: ApiResource, target: Target) -> Self {
        Self::new(client, resource, target)
    }
}

impl<K: Resource> Api<K> {
    fn new(client: Client, resource: ApiResource, target: Target) -> Self {
        Self::from_endpoint(Arc::new(Endpoint::new(client, resource, target)))
    }

    pub(super) fn from_endpoint(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, kind: PhantomData }
    }

    /// Returns the place that the requests go to.
    #[cfg(feature = "streams")]
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Returns the client that sends the requests.
    pub fn client(&self) -> &Client {
        &self.endpoint.client
    }

    /// Returns the resource.
    pub fn resource(&self) -> &ApiResource {
        &self.endpoint.resource
    }

    /// Returns the namespace or scope.
    pub fn target(&self) -> &Target {
        &self.endpoint.target
    }

    /// Returns the same objects, of which only the metadata travels: a fraction of the bytes, for any kind.
    ///
    /// They can be read, watched, patched and deleted.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Secret;
    /// use klient::{Api, Client, ResourceExt};
    ///
    /// # async fn names(client: Client) -> klient::Result<()> {
    /// let secrets = Api::<Secret>::all(client).metadata();
    /// for secret in &secrets.list().await? {
    ///     println!("{}", secret.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "MetadataClient")]
    pub fn metadata(&self) -> Api<PartialObjectMeta<K>> {
        Api::from_endpoint(Arc::new(Endpoint { payload: Payload::Metadata, ..Endpoint::clone(&self.endpoint) }))
    }

    /// Reads an object. A missing one is an error; see [`get_opt`](Self::get_opt).
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn get(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let pod = pods.get("web").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, name: &str) -> verbs::Get<K> {
        verbs::Get::new(Arc::clone(&self.endpoint), name)
    }

    /// Reads an object that may not exist.
    pub fn get_opt(&self, name: &str) -> verbs::GetOptional<K> {
        self.get(name).optional()
    }

    /// Reads many objects.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn list(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let pods = pods.list().labels("app=web").fields("spec.nodeName=node-1").await?;
    /// println!("{} pods at version {}", pods.items.len(), pods.resource_version());
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> verbs::List<K> {
        verbs::List::new(Arc::clone(&self.endpoint))
    }

    /// Follows changes, until the server ends the watch. An informer or [`verbs::Watch::retrying`] goes on after that.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn watch(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let list = pods.list().await?;
    /// let mut watch = pods.watch().after(list.resource_version()).await?;
    /// while let Some(event) = watch.next().await {
    ///     println!("{:?}", event?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self) -> verbs::Watch<K> {
        verbs::Watch::new(Arc::clone(&self.endpoint))
    }

    /// Creates an object, and returns it as the server stored it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn create(pods: klient::Api<Pod>, pod: Pod) -> klient::Result<()> {
    /// let stored = pods.create(&pod).manager("my-operator").dry_run().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create<'a>(&self, object: &'a K) -> verbs::Create<'a, K> {
        verbs::Create::new(Arc::clone(&self.endpoint), object)
    }

    /// Replaces an object, and returns it as the server stored it.
    ///
    /// Fails with a conflict if the object carries a resource version that is not the current one: read it again, and
    /// repeat the change; see [`retry_on_conflict`](crate::retry::retry_on_conflict).
    #[doc(alias = "replace")]
    pub fn update<'a>(&self, object: &'a K) -> verbs::Update<'a, K> {
        verbs::Update::new(Arc::clone(&self.endpoint), object)
    }

    /// Changes a part of an object, and returns the object as the server stored it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use klient::Patch;
    /// # use serde_json::json;
    /// # async fn patch(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// pods.patch("web", Patch::merge(json!({"metadata": {"labels": {"app": "shop"}}}))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch(&self, name: &str, patch: Patch) -> verbs::Patch<K> {
        verbs::Patch::new(Arc::clone(&self.endpoint), name, patch)
    }

    /// Applies fields to an object on the server's side, and creates the object if it does not exist.
    ///
    /// `configuration` is anything that serializes to the fields that the manager wants to own, with `apiVersion`, `kind` and the name in
    /// `metadata`: a typed configuration of `klient-apply`, or JSON.
    /// A field manager is required. Fails with a conflict if another manager owns one of the fields, unless forced.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use serde_json::json;
    /// # async fn apply(maps: klient::Api<ConfigMap>) -> klient::Result<()> {
    /// let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}});
    /// maps.apply(&settings).manager("my-operator").force().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply(&self, configuration: &impl Serialize) -> verbs::Apply<K> {
        verbs::Apply::new(Arc::clone(&self.endpoint), configuration)
    }

    /// Deletes an object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn delete(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// pods.delete("web").foreground().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self, name: &str) -> verbs::Delete<K> {
        verbs::Delete::new(Arc::clone(&self.endpoint), name)
    }

    /// Deletes all objects that match. If this fails, some of them may have been deleted.
    pub fn delete_collection(&self) -> verbs::DeleteCollection<K> {
        verbs::DeleteCollection::new(Arc::clone(&self.endpoint))
    }
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self { endpoint: Arc::clone(&self.endpoint), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { resource, target, .. } = &*self.endpoint;
        f.debug_struct("Api").field("resource", resource).field("target", target).finish_non_exhaustive()
    }
}
