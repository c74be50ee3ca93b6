//! `Api<K>`: the typed verbs on one kind, in one namespace, in all of them, or outside.

use std::{fmt, marker::PhantomData};

use klient_core::{
    ApiResource, ApplyOptions, ClusterScope, CreateOptions, DeleteCollectionOptions, DeleteOptions, DynamicObject,
    GetOptions, List, ListOptions, NamespaceScope, Patch, PatchOptions, RequestBuilder, Resource, Status, Target,
    TypeMeta, UpdateOptions, WatchOptions, media_type, subresource,
};
use klient_proto::{Codec, ListEnd, ManagedFields, RawObject, SplitOptions};

use super::{Client, Watch, answer, answer::Form, list};
use crate::{Error, ErrorKind};

/// The verbs on one kind of object.
///
/// Objects travel as protobuf where the kind has it and as JSON otherwise; nothing else differs.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::client::{Api, Client};
/// use klient::{ListOptions, Patch, PatchOptions, WatchEvent, WatchOptions};
///
/// # async fn scale() -> Result<(), klient::Error> {
/// let deployments: Api<Deployment> = Api::namespaced(Client::infer()?, "shop");
/// let version = deployments.list(&ListOptions::default()).await?.resource_version();
/// let mut watch = deployments.watch(&WatchOptions::after(version)).await?;
/// let two = Patch::Merge(serde_json::json!({"spec": {"replicas": 2}}));
/// deployments.patch("web", &PatchOptions::default(), &two).await?;
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
/// # use klient::client::{Api, Client};
/// # fn wrong(client: Client) {
/// let nodes: Api<Node> = Api::namespaced(client, "default");
/// # }
/// ```
pub struct Api<K> {
    client: Client,
    resource: ApiResource,
    target: Target,
    kind: PhantomData<fn() -> K>,
}

/// What is left of an object after a delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted<K> {
    /// It is still there, waiting for finalizers or its grace period; or this was its last state.
    Object(Box<K>),
    /// It is gone.
    Status(Status),
}

impl<K: Resource<Scope = NamespaceScope>> Api<K> {
    /// Objects in one namespace.
    pub fn namespaced(client: Client, namespace: &str) -> Self {
        Self::at(client, ApiResource::of::<K>(), Target::Namespace(namespace.to_owned()))
    }

    /// Objects in the client's default namespace.
    pub fn default_namespaced(client: Client) -> Self {
        let namespace = client.default_namespace().to_owned();
        Self::namespaced(client, &namespace)
    }

    /// Objects in all namespaces: for lists and watches.
    pub fn all(client: Client) -> Self {
        Self::at(client, ApiResource::of::<K>(), Target::AllNamespaces)
    }
}

impl<K: Resource<Scope = ClusterScope>> Api<K> {
    /// Objects of a cluster-scoped kind.
    pub fn cluster(client: Client) -> Self {
        Self::at(client, ApiResource::of::<K>(), Target::Cluster)
    }
}

impl Api<DynamicObject> {
    /// Objects of a kind known at run time.
    #[doc(alias = "DynamicClient")]
    pub fn dynamic(client: Client, resource: ApiResource, target: Target) -> Self {
        Self::at(client, resource, target)
    }
}

impl<K: Resource> Api<K> {
    fn at(client: Client, resource: ApiResource, target: Target) -> Self {
        Self { client, resource, target, kind: PhantomData }
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, or for any other reason a server or connection gives.
    pub async fn get(&self, name: &str, options: &GetOptions) -> Result<K, Error> {
        self.object(self.request().get(name, options)?).await
    }

    /// Reads an object, or finds that there is none.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), except that a missing object is `None`.
    pub async fn get_opt(&self, name: &str, options: &GetOptions) -> Result<Option<K>, Error> {
        match self.get(name, options).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads many objects into memory.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); also if one object cannot be decoded.
    pub async fn list(&self, options: &ListOptions) -> Result<List<K>, Error> {
        let mut items = Vec::new();
        let mut failed = None;
        let split = SplitOptions::default().managed_fields(ManagedFields::Keep);
        let end = self.split_list(options, split, |item| match item.and_then(|object| object.decode()) {
            Ok(object) => items.push(object),
            Err(error) => failed = failed.take().or(Some(error)),
        });
        let end = self.in_time(end).await?;
        if let Some(error) = failed {
            return Err(Error::from(error).context(format!("an item of {} cannot be decoded", end.kind)));
        }
        let types = Some(TypeMeta::new(end.api_version, end.kind));
        Ok(List { types, metadata: end.metadata, items })
    }

    /// Reads many objects in wire form; `sink` gets each as soon as its last byte has arrived.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); an object that cannot be read is an error for `sink`, and the rest goes on.
    pub async fn list_raw(
        &self,
        options: &ListOptions,
        split: SplitOptions,
        sink: impl FnMut(Result<RawObject, klient_proto::DecodeError>),
    ) -> Result<ListEnd, Error> {
        // As long as it takes, while it goes on: silence ends it.
        self.split_list(options, split, sink).await
    }

    /// Follows changes, until the server ends the watch.
    ///
    /// # Errors
    ///
    /// If the watch cannot be started.
    pub async fn watch(&self, options: &WatchOptions) -> Result<Watch<K>, Error> {
        let accept = if self.is_protobuf() { ACCEPT_WATCH } else { media_type::JSON };
        let request = self.request().accept(accept).watch(options)?;
        let response = self.client.send(request).await?;
        Watch::new(response, SplitOptions::default().managed_fields(ManagedFields::Keep))
    }

    /// Makes an object; returns what the server made of it.
    ///
    /// # Errors
    ///
    /// If there is one of that name, if it is invalid, or for any other reason a server or connection gives.
    pub async fn create(&self, options: &CreateOptions, object: &K) -> Result<K, Error> {
        self.write(object, |request, body| request.create(options, body)).await
    }

    /// Replaces an object; fails with a conflict if its version is not the newest.
    ///
    /// # Errors
    ///
    /// On a conflict, or for any other reason a server or connection gives.
    pub async fn update(&self, options: &UpdateOptions, object: &K) -> Result<K, Error> {
        let name = name_of(object)?;
        self.write(object, |request, body| request.update(name, options, body)).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub async fn update_status(&self, options: &UpdateOptions, object: &K) -> Result<K, Error> {
        let name = name_of(object)?;
        self.write(object, |request, body| request.subresource(subresource::STATUS).update(name, options, body)).await
    }

    /// Changes a part of an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, if the patch does not fit, or for any other reason a server or connection gives.
    pub async fn patch(&self, name: &str, options: &PatchOptions, patch: &Patch) -> Result<K, Error> {
        self.object(self.request().patch(name, options, patch)?).await
    }

    /// Applies fields to an object on the server's side: makes it if it is not there.
    ///
    /// # Errors
    ///
    /// On a conflict with another field manager, or for any other reason a server or connection gives.
    pub async fn apply(&self, name: &str, options: &ApplyOptions, fields: &serde_json::Value) -> Result<K, Error> {
        self.object(self.request().apply(name, options, fields.to_string().into_bytes())?).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, if preconditions do not hold, or for any other reason a server or connection gives.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted<K>, Error> {
        let response = self.client.send(self.request().delete(name, options)?).await?;
        let form = Form::of(&response);
        let code = response.status();
        let body = self.in_time(response.into_body().collect(MAX_OBJECT)).await?;
        if answer::is_status(form, &body) {
            let status = answer::status(code, form, &body);
            return if status.is_success() { Ok(Deleted::Status(status)) } else { Err(status.into()) };
        }
        Ok(Deleted::Object(Box::new(self.decode(form, &body)?)))
    }

    /// Deletes all objects that a list with these options would show.
    ///
    /// # Errors
    ///
    /// For any reason a server or connection gives; some objects may be deleted then.
    pub async fn delete_collection(&self, options: &DeleteCollectionOptions) -> Result<(), Error> {
        let response = self.client.send(self.request().delete_collection(options)?).await?;
        // The answer is the list of what was deleted, as large as the collection: read and let go.
        let mut body = response.into_body();
        self.in_time(async {
            while body.chunk().await?.is_some() {}
            Ok(())
        })
        .await
    }

    async fn split_list(
        &self,
        options: &ListOptions,
        split: SplitOptions,
        sink: impl FnMut(Result<RawObject, klient_proto::DecodeError>),
    ) -> Result<ListEnd, Error> {
        let response = self.client.send(self.request().list(options)?).await?;
        list::split(response, split, self.client.timeout(), sink).await
    }

    /// A builder of requests that asks for answers in the form that suits the kind.
    fn request(&self) -> RequestBuilder<'_> {
        let accept = if self.is_protobuf() { media_type::ACCEPT_PROTOBUF_OR_JSON } else { media_type::JSON };
        RequestBuilder::new(&self.resource, self.target.clone()).accept(accept)
    }

    fn is_protobuf(&self) -> bool {
        self.client.prefers_protobuf() && Codec::of::<K>().is_some()
    }

    /// Sends an object, as JSON where the server does not take protobuf.
    async fn write(
        &self,
        object: &K,
        build: impl Fn(RequestBuilder<'_>, Vec<u8>) -> Result<http::Request<Vec<u8>>, klient_core::BuildRequestError>,
    ) -> Result<K, Error> {
        if self.is_protobuf() {
            let body = klient_proto::encode_body(object)?;
            match self.object(build(self.request().content_type(media_type::PROTOBUF), body)?).await {
                // The server has refused the form before looking at the object: nothing was done.
                Err(error) if error.status().is_some_and(Status::is_unsupported_media_type) => {}
                outcome => return outcome,
            }
        }
        let body = serde_json::to_vec(object).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the object cannot be written as JSON").with_source(error)
        })?;
        self.object(build(self.request(), body)?).await
    }

    /// Sends a request whose answer is one object.
    async fn object(&self, request: http::Request<Vec<u8>>) -> Result<K, Error> {
        let response = self.client.send(request).await?;
        let form = Form::of(&response);
        let code = response.status();
        let body = self.in_time(response.into_body().collect(MAX_OBJECT)).await?;
        let decoded = self.decode(form, &body);
        // Some servers tell a failure with the code of a success. A kind known at run time takes any object for its own.
        if (decoded.is_err() || Codec::of::<K>().is_none()) && answer::is_status(form, &body) {
            let status = answer::status(code, form, &body);
            if !status.is_success() {
                return Err(status.into());
            }
        }
        decoded
    }

    fn decode(&self, form: Form, body: &[u8]) -> Result<K, Error> {
        let decoded = match form {
            Form::Protobuf => klient_proto::decode_body(body).map_err(Error::from),
            Form::Json => serde_json::from_slice(body)
                .map_err(|error| Error::new(ErrorKind::Decode, "malformed JSON").with_source(error)),
            Form::Other => Err(Error::new(ErrorKind::Decode, "the answer is neither protobuf nor JSON")),
        };
        decoded.map_err(|error| {
            error.context(format!("the server's {} cannot be decoded", self.resource.group_resource()))
        })
    }

    /// Bounds the time that an answer may take to arrive in full.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.client.timeout();
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            let what = format!("the answer about {} took over {} s", self.resource.group_resource(), limit.as_secs());
            Err(Error::new(ErrorKind::Timeout, what))
        })
    }
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            resource: self.resource.clone(),
            target: self.target.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("resource", &self.resource).field("target", &self.target).finish()
    }
}

fn name_of<K: Resource>(object: &K) -> Result<&str, Error> {
    let name = object.metadata().name.as_deref().filter(|name| !name.is_empty());
    name.ok_or_else(|| Error::new(ErrorKind::Invalid, "the object to update has no name"))
}

const ACCEPT_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch,application/json";
/// Far above what a server stores.
const MAX_OBJECT: usize = 64 << 20;
