//! Subresources: what belongs to an object and has an address of its own, such as `status` and `scale`.

use std::{fmt, marker::PhantomData, sync::Arc};

use k8s_openapi::api::autoscaling::v1::Scale;
use klient_core::{Patch, Resource, subresource};
use serde::Serialize;

use super::Api;
use crate::client::{
    endpoint::{Endpoint, Payload},
    verbs,
};

/// The verbs on one subresource of the objects of an [`Api`]. Its bodies are of kind `S`.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Patch};
/// use serde_json::json;
///
/// # async fn scale(deployments: Api<Deployment>) -> klient::Result<()> {
/// let scale = deployments.scale().patch("web", Patch::merge(json!({"spec": {"replicas": 3}}))).await?;
/// println!("{:?}", scale.status);
/// # Ok(())
/// # }
/// ```
pub struct Subresource<S> {
    pub(super) endpoint: Arc<Endpoint>,
    kind: PhantomData<fn() -> S>,
}

impl<K: Resource> Api<K> {
    /// Returns a subresource by name. `S` is the kind that is read from and written to it;
    /// [`DynamicObject`](klient_core::DynamicObject) works for any.
    pub fn subresource<S: Resource>(&self, name: &str) -> Subresource<S> {
        let endpoint = Endpoint {
            subresource: Some(name.to_owned()),
            payload: Payload::Object,
            ..Endpoint::clone(&self.endpoint)
        };
        Subresource { endpoint: Arc::new(endpoint), kind: PhantomData }
    }

    /// Returns the subresource `scale`: how many replicas there are and should be.
    pub fn scale(&self) -> Subresource<Scale> {
        self.subresource(subresource::SCALE)
    }

    /// Returns the subresource `status`: reads and writes carry whole objects, and writes change only the status.
    pub fn status(&self) -> Subresource<K> {
        self.subresource(subresource::STATUS)
    }

    /// Replaces the status of an object.
    #[doc(alias = "replace_status")]
    pub fn update_status<'a>(&self, object: &'a K) -> verbs::Update<'a, K> {
        verbs::Update::new(self.status().endpoint, object)
    }
}

impl<S: Resource> Subresource<S> {
    /// Reads the subresource of an object.
    pub fn get(&self, name: &str) -> verbs::Get<S> {
        verbs::Get::new(Arc::clone(&self.endpoint), name)
    }

    /// Posts to the subresource of an object. The response is of the same kind, as that of a token request is.
    pub fn create<'a>(&self, name: &str, body: &'a S) -> verbs::Create<'a, S> {
        verbs::Create::below(Arc::clone(&self.endpoint), name, body)
    }

    /// Posts to the subresource of an object. The response is a status, as that of an eviction is.
    pub fn post<'a>(&self, name: &str, body: &'a S) -> verbs::Post<'a, S> {
        self.create(name, body).post()
    }

    /// Replaces the subresource of an object.
    pub fn update<'a>(&self, name: &str, body: &'a S) -> verbs::Update<'a, S> {
        verbs::Update::named(Arc::clone(&self.endpoint), name, body)
    }

    /// Changes a part of the subresource of an object.
    pub fn patch(&self, name: &str, patch: Patch) -> verbs::Patch<S> {
        verbs::Patch::new(Arc::clone(&self.endpoint), name, patch)
    }

    /// Applies a configuration to the subresource of an object, on the server's side. Its name is in `metadata`.
    pub fn apply(&self, configuration: &impl Serialize) -> verbs::Apply<S> {
        verbs::Apply::new(Arc::clone(&self.endpoint), configuration)
    }

    /// Deletes the subresource of an object, where it can be deleted.
    pub fn delete(&self, name: &str) -> verbs::Delete<S> {
        verbs::Delete::new(Arc::clone(&self.endpoint), name)
    }
}

impl<S> Clone for Subresource<S> {
    fn clone(&self) -> Self {
        Self { endpoint: Arc::clone(&self.endpoint), kind: PhantomData }
    }
}

impl<S> fmt::Debug for Subresource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { resource, target, subresource, .. } = &*self.endpoint;
        f.debug_struct("Subresource")
            .field("resource", resource)
            .field("target", target)
            .field("subresource", subresource)
            .finish_non_exhaustive()
    }
}
