//! `ScaleClient`: replicas of any kind that can be scaled.

use k8s_openapi::api::autoscaling::v1::Scale;
use klient_core::{ApiResource, DynamicObject, Patch, ResourceExt as _, Target};
use serde_json::json;

use crate::client::{Api, Client, verbs};

/// Reads and sets the replicas of objects of any kind with a `scale` subresource, custom resources included.
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
    /// Returns a client for the objects in a namespace.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// Reads how many replicas there are and should be.
    pub fn get(&self, resource: &ApiResource, name: &str) -> verbs::Get<Scale> {
        self.api(resource).scale().get(name)
    }

    /// Replaces the scale of the object that `scale` is named after. Fails with a conflict if it is not the current version.
    pub fn update<'a>(&self, resource: &ApiResource, scale: &'a Scale) -> verbs::Update<'a, Scale> {
        self.api(resource).scale().update(scale.name(), scale)
    }

    /// Changes a part of the scale of an object.
    pub fn patch(&self, resource: &ApiResource, name: &str, patch: Patch) -> verbs::Patch<Scale> {
        self.api(resource).scale().patch(name, patch)
    }

    /// Sets how many replicas there should be.
    pub fn set_replicas(&self, resource: &ApiResource, name: &str, replicas: i32) -> verbs::Patch<Scale> {
        self.patch(resource, name, Patch::merge(json!({"spec": {"replicas": replicas}})))
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::dynamic(self.client.clone(), resource.clone(), Target::Namespace(self.namespace.clone()))
    }
}
