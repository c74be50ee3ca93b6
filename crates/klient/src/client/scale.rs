//! `ScaleClient`: replicas of any kind that can be scaled.

use k8s_openapi::api::autoscaling::v1::Scale;
use klient_core::{ApiResource, DynamicObject, GetOptions, Patch, PatchOptions, Target, UpdateOptions};
use serde_json::json;

use crate::Error;
use crate::client::{Api, Client};

/// Reads and sets the replicas of objects of any kind with a `scale` subresource, custom resources included.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::StatefulSet;
/// use klient::resource::ApiResource;
/// use klient::{Client, client::ScaleClient};
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
    /// Objects in a namespace.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// How many replicas there are and should be.
    ///
    /// # Errors
    ///
    /// If there is no such object, if it cannot be scaled, or for any other reason a server or connection gives.
    pub async fn get(&self, resource: &ApiResource, name: &str) -> Result<Scale, Error> {
        self.api(resource).scale().get(name, &GetOptions::default()).await
    }

    /// Replaces what should be, as it was read; fails with a conflict if that is not the newest.
    ///
    /// # Errors
    ///
    /// On a conflict, and as [`get`](Self::get).
    pub async fn update(&self, resource: &ApiResource, scale: &Scale, options: &UpdateOptions) -> Result<Scale, Error> {
        let name = super::api::name_of(scale)?;
        self.api(resource).scale().update(name, options, scale).await
    }

    /// Changes a part of it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn patch(
        &self,
        resource: &ApiResource,
        name: &str,
        options: &PatchOptions,
        patch: &Patch,
    ) -> Result<Scale, Error> {
        self.api(resource).scale().patch(name, options, patch).await
    }

    /// Sets how many replicas there should be, whatever was asked for before.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn set_replicas(&self, resource: &ApiResource, name: &str, replicas: i32) -> Result<Scale, Error> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.patch(resource, name, &PatchOptions::default(), &patch).await
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::dynamic(self.client.clone(), resource.clone(), Target::Namespace(self.namespace.clone()))
    }
}
