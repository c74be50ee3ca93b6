//! `ScaleClient`: the replicas of any scalable kind.

use k8s_openapi::api::autoscaling::v1::Scale;
use klient_core::{ApiResource, DynamicObject, Patch, ResourceExt as _, Target};
use serde_json::json;

use crate::client::{Api, Client, verbs};

/// A client of the `scale` subresource of any kind, custom resources included.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::StatefulSet;
/// use klient::{Client, client::ScaleClient, resource::ApiResource};
///
/// # async fn scale(client: Client) -> Result<(), klient::Error> {
/// ScaleClient::new(client, "shop").set_replicas(&ApiResource::of::<StatefulSet>(), "db", 3).await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ScalesGetter")]
#[derive(Clone, Debug)]
pub struct ScaleClient {
    client: Client,
    namespace: String,
}

impl ScaleClient {
    /// Creates a client for the objects in a namespace.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// Reads the current and the desired number of replicas.
    pub fn get(&self, resource: &ApiResource, name: &str) -> verbs::Get<Scale> {
        self.api(resource).scale().get(name)
    }

    /// Replaces the scale of the object of the same name. Fails with a conflict if `scale` is not the current version.
    pub fn update<'a>(&self, resource: &ApiResource, scale: &'a Scale) -> verbs::Update<'a, Scale> {
        self.api(resource).scale().update(scale.name(), scale)
    }

    /// Patches the scale of an object.
    pub fn patch(&self, resource: &ApiResource, name: &str, patch: Patch) -> verbs::Patch<Scale> {
        self.api(resource).scale().patch(name, patch)
    }

    /// Sets the desired number of replicas.
    pub fn set_replicas(&self, resource: &ApiResource, name: &str, replicas: i32) -> verbs::Patch<Scale> {
        self.patch(resource, name, Patch::merge(json!({"spec": {"replicas": replicas}})))
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::dynamic(self.client.clone(), resource.clone(), Target::Namespace(self.namespace.clone()))
    }
}
