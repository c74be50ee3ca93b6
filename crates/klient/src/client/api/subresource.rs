//! Subresources: what hangs below an object and has a kind of its own.

use std::{fmt, marker::PhantomData};

use k8s_openapi::api::autoscaling::v1::Scale;
use klient_core::{
    ApplyOptions, CreateOptions, DeleteOptions, GetOptions, Patch, PatchOptions, RequestBuilder, Resource, Status,
    UpdateOptions, media_type, subresource,
};
use klient_proto::Codec;

use super::{Api, Deleted, name_of};
use crate::{Error, client::call::Call};

/// The verbs on one subresource of the objects of an [`Api`]; its bodies are of kind `S`.
///
/// ```no_run
/// use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
/// use klient::{Api, Client};
/// use klient::{Patch, options::PatchOptions, request::subresource};
///
/// # async fn scale(deployments: Api<Deployment>) -> Result<(), klient::Error> {
/// let three = Patch::Merge(serde_json::json!({"spec": {"replicas": 3}}));
/// let scale: Scale = deployments.subresource(subresource::SCALE).patch("web", &PatchOptions::default(), &three).await?;
/// # Ok(())
/// # }
/// ```
pub struct Subresource<'a, K, S> {
    api: &'a Api<K>,
    name: &'a str,
    kind: PhantomData<fn() -> S>,
}

impl<K: Resource> Api<K> {
    /// A subresource by name, and the kind that is read from and written to it:
    /// [`DynamicObject`](klient_core::DynamicObject) will do for any.
    pub fn subresource<'a, S: Resource>(&'a self, name: &'a str) -> Subresource<'a, K, S> {
        Subresource { api: self, name, kind: PhantomData }
    }

    /// How many replicas there are and should be.
    pub fn scale(&self) -> Subresource<'_, K, Scale> {
        self.subresource(subresource::SCALE)
    }

    /// What a controller reports about the object; reads and writes give whole objects.
    pub fn status(&self) -> Subresource<'_, K, K> {
        self.subresource(subresource::STATUS)
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub async fn update_status(&self, options: &UpdateOptions, object: &K) -> Result<K, Error> {
        self.status().update(name_of(object)?, options, object).await
    }
}

impl<'a, K: Resource, S: Resource> Subresource<'a, K, S> {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// If there is no such object or subresource, or for any other reason a server or connection gives.
    pub async fn get(&self, object: &str, options: &GetOptions) -> Result<S, Error> {
        self.call(self.request().get(object, options)?).object().await
    }

    /// Posts to it; the answer is of the same kind, as that of a token request is.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); also if the body is invalid.
    pub async fn create(&self, object: &str, options: &CreateOptions, body: &S) -> Result<S, Error> {
        let build = |request: RequestBuilder<'_>, body| self.below(request).create_subresource(object, options, body);
        self.api.write_as(body, build, Call::object).await
    }

    /// Posts to it; the answer only says that it was done, as that of an eviction does.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub async fn post(&self, object: &str, options: &CreateOptions, body: &S) -> Result<Status, Error> {
        let build = |request: RequestBuilder<'_>, body| self.below(request).create_subresource(object, options, body);
        self.api.write_as(body, build, Call::status).await
    }

    /// Replaces it.
    ///
    /// # Errors
    ///
    /// On a conflict, or for any other reason a server or connection gives.
    pub async fn update(&self, object: &str, options: &UpdateOptions, body: &S) -> Result<S, Error> {
        let build = |request: RequestBuilder<'_>, body| self.below(request).update(object, options, body);
        self.api.write_as(body, build, Call::object).await
    }

    /// Changes a part of it.
    ///
    /// # Errors
    ///
    /// If the patch does not fit, or for any other reason a server or connection gives.
    pub async fn patch(&self, object: &str, options: &PatchOptions, patch: &Patch) -> Result<S, Error> {
        self.call(self.request().patch(object, options, patch)?).object().await
    }

    /// Applies fields to it on the server's side.
    ///
    /// # Errors
    ///
    /// On a conflict with another field manager, or for any other reason a server or connection gives.
    pub async fn apply(&self, object: &str, options: &ApplyOptions, fields: &serde_json::Value) -> Result<S, Error> {
        self.call(self.request().apply(object, options, fields.to_string().into_bytes())?).object().await
    }

    /// Deletes it, where a subresource knows that.
    ///
    /// # Errors
    ///
    /// For any reason a server or connection gives.
    pub async fn delete(&self, object: &str, options: &DeleteOptions) -> Result<Deleted<S>, Error> {
        self.call(self.request().delete(object, options)?).object_or_status().await
    }

    fn call(&self, request: http::Request<Vec<u8>>) -> Call {
        self.api.call(request)
    }

    fn request(&self) -> RequestBuilder<'a> {
        self.below(self.api.request())
    }

    fn below<'r>(&self, request: RequestBuilder<'r>) -> RequestBuilder<'r> {
        let both = self.api.client.prefers_protobuf() && Codec::of::<S>().is_some();
        let accept = if both { media_type::ACCEPT_PROTOBUF_OR_JSON } else { media_type::JSON };
        request.subresource(self.name.to_owned()).accept(accept)
    }
}

impl<K, S> fmt::Debug for Subresource<'_, K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subresource").field("of", self.api).field("name", &self.name).finish()
    }
}
