//! `Api<K>`: the typed verbs on one kind, in one namespace, in all of them, or outside.

mod built_in;
mod log;
mod metadata;
mod subresource;

use std::{fmt, marker::PhantomData};

use klient_core::{
    ApiResource, ApplyOptions, BuildRequestError, ClusterScope, CreateOptions, DeleteCollectionOptions, DeleteOptions,
    DynamicObject, GetOptions, List, ListOptions, NamespaceScope, Patch, PatchOptions, RequestBuilder, Resource,
    Status, Target, UpdateOptions, WatchOptions, media_type,
};
use klient_proto::{Codec, ListEnd, RawObject, SplitOptions};

pub use self::{log::LogStream, subresource::Subresource};
use crate::client::{Client, ListStream, Watch, call::Call};
use crate::{Error, ErrorKind};

/// The verbs on one kind of object.
///
/// Objects travel as protobuf where the kind has it and as JSON otherwise; nothing else differs.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client};
/// use klient::{Patch, WatchEvent, options::{ListOptions, PatchOptions, WatchOptions}};
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
/// # use klient::{Api, Client};
/// # fn wrong(client: Client) {
/// let nodes: Api<Node> = Api::namespaced(client, "default");
/// # }
/// ```
pub struct Api<K> {
    client: Client,
    resource: ApiResource,
    target: Target,
    form: ObjectForm,
    kind: PhantomData<fn() -> K>,
}

/// How much of an object travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectForm {
    Whole,
    Metadata,
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

    /// Objects in one namespace, or in all of them if it is empty, as in client-go.
    pub fn in_namespace(client: Client, namespace: &str) -> Self {
        Self::at(client, ApiResource::of::<K>(), Target::in_namespace(namespace))
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
        Self { client, resource, target, form: ObjectForm::Whole, kind: PhantomData }
    }

    /// The client that this asks through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The resource that this asks for.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Where the objects are that this asks for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, or for any other reason a server or connection gives.
    pub async fn get(&self, name: &str, options: &GetOptions) -> Result<K, Error> {
        self.call(self.request().get(name, options)?).object().await
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
        let list = self.call(self.list_request().list(options)?).items(&self.resource).list().await?;
        self.check_form(list.types.as_ref().map_or("", |types| types.kind.as_str()))?;
        Ok(list)
    }

    /// Reads many objects, and gives them out as they arrive.
    ///
    /// # Errors
    ///
    /// If the list cannot be started.
    pub async fn list_stream(&self, options: &ListOptions, split: SplitOptions) -> Result<ListStream<K>, Error> {
        self.call(self.list_request().list(options)?).items(&self.resource).list_stream(split).await
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
        mut sink: impl FnMut(Result<RawObject, Error>),
    ) -> Result<ListEnd, Error> {
        let mut stream = self.list_stream(options, split).await?;
        // As long as it takes, while it goes on: silence ends it.
        while let Some(item) = stream.next_raw().await {
            match item {
                Err(error) if stream.is_broken() => return Err(error),
                item => sink(item),
            }
        }
        let end = stream.end().ok_or_else(|| Error::new(ErrorKind::Decode, "the list has no end"))?;
        self.check_form(&end.kind)?;
        Ok(end)
    }

    /// Follows changes, until the server ends the watch.
    ///
    /// # Errors
    ///
    /// If the watch cannot be started.
    pub async fn watch(&self, options: &WatchOptions) -> Result<Watch<K>, Error> {
        self.call(self.request().accept(self.accept(Answer::Watch)).watch(options)?).watch().await
    }

    /// Follows changes; the options say what becomes of the bytes of each object.
    ///
    /// # Errors
    ///
    /// If the watch cannot be started.
    pub async fn watch_with(&self, options: &WatchOptions, split: SplitOptions) -> Result<Watch<K>, Error> {
        self.call(self.request().accept(self.accept(Answer::Watch)).watch(options)?).watch_with(split).await
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

    /// Changes a part of an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, if the patch does not fit, or for any other reason a server or connection gives.
    pub async fn patch(&self, name: &str, options: &PatchOptions, patch: &Patch) -> Result<K, Error> {
        self.call(self.request().patch(name, options, patch)?).object().await
    }

    /// Applies fields to an object on the server's side: makes it if it is not there.
    ///
    /// # Errors
    ///
    /// On a conflict with another field manager, or for any other reason a server or connection gives.
    pub async fn apply(&self, name: &str, options: &ApplyOptions, fields: &serde_json::Value) -> Result<K, Error> {
        self.call(self.request().apply(name, options, fields.to_string().into_bytes())?).object().await
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// If there is no such object, if preconditions do not hold, or for any other reason a server or connection gives.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted<K>, Error> {
        self.call(self.request().delete(name, options)?).object_or_status().await
    }

    /// Deletes all objects that a list with these options would show.
    ///
    /// # Errors
    ///
    /// For any reason a server or connection gives; some objects may be deleted then.
    pub async fn delete_collection(&self, options: &DeleteCollectionOptions) -> Result<(), Error> {
        // The answer is the list of what was deleted, as large as the collection: read and let go.
        self.call(self.request().delete_collection(options)?).discard().await
    }

    fn call(&self, request: http::Request<Vec<u8>>) -> Call {
        Call::new(self.client.clone(), request)
    }

    /// A builder of requests that asks for answers in the form that suits the kind.
    fn request(&self) -> RequestBuilder<'_> {
        RequestBuilder::new(&self.resource, self.target.clone()).accept(self.accept(Answer::Object))
    }

    fn list_request(&self) -> RequestBuilder<'_> {
        self.request().accept(self.accept(Answer::List))
    }

    fn accept(&self, answer: Answer) -> &'static str {
        let protobuf = self.client.prefers_protobuf();
        match (self.form, answer) {
            (ObjectForm::Metadata, answer) => metadata::accept(answer, protobuf),
            (ObjectForm::Whole, _) if !protobuf || Codec::of::<K>().is_none() => media_type::JSON,
            (ObjectForm::Whole, Answer::Watch) => media_type::ACCEPT_PROTOBUF_OR_JSON_WATCH,
            (ObjectForm::Whole, Answer::Object | Answer::List) => media_type::ACCEPT_PROTOBUF_OR_JSON,
        }
    }

    /// Refuses whole objects where metadata was asked for: items of a list do not say what they are.
    fn check_form(&self, list_kind: &str) -> Result<(), Error> {
        if self.form == ObjectForm::Metadata && list_kind != "PartialObjectMetadataList" {
            let what = format!("asked for the metadata of {}, got {list_kind}", self.resource.group_resource());
            return Err(Error::new(ErrorKind::Decode, what));
        }
        Ok(())
    }

    /// Sends an object and gets one back.
    async fn write(
        &self,
        object: &K,
        build: impl Fn(RequestBuilder<'_>, Vec<u8>) -> Result<http::Request<Vec<u8>>, BuildRequestError>,
    ) -> Result<K, Error> {
        if self.form == ObjectForm::Metadata {
            let what = "metadata alone can be read, patched and deleted, but not created or updated";
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        self.write_as(object, build, Call::object).await
    }

    /// Sends a body, as JSON where the server does not take protobuf.
    async fn write_as<B: Resource, T, F: Future<Output = Result<T, Error>>>(
        &self,
        object: &B,
        build: impl Fn(RequestBuilder<'_>, Vec<u8>) -> Result<http::Request<Vec<u8>>, BuildRequestError>,
        finish: impl Fn(Call) -> F,
    ) -> Result<T, Error> {
        if self.client.sends_protobuf() && Codec::of::<B>().is_some() {
            let body = klient_proto::encode_body(object)?;
            match finish(self.call(build(self.request().content_type(media_type::PROTOBUF), body)?)).await {
                // The server has refused the form before looking at the object: nothing was done.
                Err(error) if error.status().is_some_and(Status::is_unsupported_media_type) => {
                    self.client.protobuf_was_refused();
                }
                outcome => return outcome,
            }
        }
        let body = serde_json::to_vec(object).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the object cannot be written as JSON").with_source(error)
        })?;
        finish(self.call(build(self.request(), body)?)).await
    }
}

/// What an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Object,
    List,
    Watch,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            resource: self.resource.clone(),
            target: self.target.clone(),
            form: self.form,
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("resource", &self.resource).field("target", &self.target).finish()
    }
}

pub(in crate::client) fn name_of<K: Resource>(object: &K) -> Result<&str, Error> {
    let name = object.metadata().name.as_deref().filter(|name| !name.is_empty());
    name.ok_or_else(|| Error::new(ErrorKind::Invalid, "the object has no name"))
}
