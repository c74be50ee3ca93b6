//! What becomes of an answer: an object, a list, bytes, a stream or a watch. Here [`Api`](super::Api) and
//! [`RestClient`](super::RestClient) meet.
//!
//! Every call but a watch and a stream ends in bounded time, whatever the server does.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{Method, Uri};
use klient_core::{ApiResource, GroupResource, List, ObjectKey, Resource, Status, TypeMeta};
use klient_proto::{Codec, ListEnd, ManagedFields, RawObject, SplitOptions};

use crate::client::{Client, Deleted, ListStream, Watch, http::body::Body, http::response, http::response::Form};
use crate::{
    Error, ErrorKind,
    writes::{self, Write, WriteEffect},
};

/// A request that is ready to be sent, and what it is about.
pub(in crate::client) struct Call {
    client: Client,
    request: http::Request<Vec<u8>>,
    limit: Option<Duration>,
    /// What the items of a list are.
    items: Option<TypeMeta>,
    about: About,
}

/// What a request is about: for messages, and for the log of writes.
struct About {
    method: Method,
    uri: Uri,
    /// The object that a write stores; `None` if nothing is stored.
    object: Option<(GroupResource, ObjectKey)>,
}

impl Call {
    pub(in crate::client) fn new(client: Client, request: http::Request<Vec<u8>>) -> Self {
        let about = About { method: request.method().clone(), uri: request.uri().clone(), object: None };
        Self { client, request, limit: None, items: None, about }
    }

    /// Sets which object the request is about; without a name, that in the response is.
    pub(super) fn about(mut self, resource: GroupResource, namespace: &str, name: Option<&str>) -> Self {
        self.about.object = Some((resource, ObjectKey::namespaced(namespace, name.unwrap_or_default())));
        self
    }

    /// Sets whether nothing is stored.
    pub(super) fn dry_run(mut self, dry_run: bool) -> Self {
        if dry_run {
            self.about.object = None;
        }
        self
    }

    /// Sets how long it may take in all, tries again included.
    pub(in crate::client) fn limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Sets what the items of a list are: those of built-in kinds do not say it themselves.
    pub(in crate::client) fn items(mut self, resource: &ApiResource) -> Self {
        self.items = Some(resource.types());
        self
    }

    /// An object.
    pub(in crate::client) async fn object<K: Resource>(self) -> Result<K, Error> {
        let managed_fields = self.client.managed_fields();
        let (about, (code, form, body)) = self.answer().await?;
        let decoded: Result<K, Error> = decode(&about, form, &body, managed_fields);
        if let Ok(object) = &decoded {
            about.note_write(object);
        }
        // Some servers tell a failure with the code of a success. A kind known at run time takes any object for its own.
        if (decoded.is_err() || Codec::of::<K>().is_none()) && response::is_status(form, &body) {
            let status = response::status(code, form, &body);
            if !status.is_success() {
                return Err(status.into());
            }
        }
        decoded
    }

    /// An object, or a status that says that it is gone.
    pub(in crate::client) async fn object_or_status<K: Resource>(self) -> Result<Deleted<K>, Error> {
        let managed_fields = self.client.managed_fields();
        let (about, (code, form, body)) = self.answer().await?;
        if response::is_status(form, &body) {
            let status = response::status(code, form, &body);
            if !status.is_success() {
                return Err(status.into());
            }
            about.note_deletion(&status);
            return Ok(Deleted::Status(status));
        }
        let object = decode(&about, form, &body, managed_fields)?;
        about.note_write(&object);
        Ok(Deleted::Object(Box::new(object)))
    }

    /// A status, whatever else a server may send to say that all is well.
    pub(in crate::client) async fn status(self) -> Result<Status, Error> {
        let (_, (code, form, body)) = self.answer().await?;
        let status = response::status(code, form, &body);
        if response::is_status(form, &body) && !status.is_success() { Err(status.into()) } else { Ok(status) }
    }

    /// Any JSON.
    pub(in crate::client) async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        let (about, (code, form, body)) = self.answer().await?;
        // Whatever the header says: servers send some of their JSON as plain text.
        serde_json::from_slice(&body).map_err(|error| {
            // Not what was asked for: perhaps the server tells a failure with the code of a success.
            let status = response::status(code, form, &body);
            if response::is_status(form, &body) && !status.is_success() {
                return status.into();
            }
            let what = if form == Form::Json { "malformed JSON" } else { "it is not JSON" };
            undecodable(Error::new(ErrorKind::Decode, what).with_source(error), &about)
        })
    }

    /// The bytes, whatever they are.
    pub(in crate::client) async fn bytes(self) -> Result<Bytes, Error> {
        let (_, (_, _, body)) = self.answer().await?;
        Ok(body)
    }

    /// Nothing of it; the answer is read and let go, however large it is.
    pub(in crate::client) async fn discard(self) -> Result<(), Error> {
        let Self { client, request, limit, about, .. } = self;
        let reading = async {
            let mut body = client.send(request).await?.into_body();
            within(client.timeout(), &about, async {
                while body.chunk().await?.is_some() {}
                Ok(())
            })
            .await
        };
        within_limit(limit, &about, reading).await
    }

    /// A list, in memory.
    pub(in crate::client) async fn list<K: Resource>(self) -> Result<List<K>, Error> {
        let Self { client, request, limit, items: types, about } = self;
        let reading = async {
            let split = SplitOptions::default().managed_fields(client.managed_fields());
            let mut stream = ListStream::<K>::new(client.send(request).await?, split, client.timeout())?.items(types);
            within(client.timeout(), &about, async {
                let mut items = Vec::new();
                while let Some(item) = stream.next().await {
                    items.push(item?);
                }
                Ok((items, stream.end()))
            })
            .await
        };
        let (items, end) = within_limit(limit, &about, reading)
            .await
            .map_err(|error| if error.kind() == ErrorKind::Decode { undecodable(error, &about) } else { error })?;
        let ListEnd { api_version, kind, metadata, .. } =
            end.ok_or_else(|| undecodable(Error::new(ErrorKind::Decode, "the list has no end"), &about))?;
        Ok(List { types: Some(TypeMeta::new(api_version, kind)), metadata, items })
    }

    /// A list, as it arrives.
    pub(in crate::client) async fn list_stream<K: Resource>(self, split: SplitOptions) -> Result<ListStream<K>, Error> {
        let (silence, types) = (self.client.timeout(), self.items.clone());
        Ok(ListStream::new(self.head().await?, split, silence)?.items(types))
    }

    /// A watch.
    pub(in crate::client) async fn watch<K: Resource>(self) -> Result<Watch<K>, Error> {
        let split = SplitOptions::default().managed_fields(self.client.managed_fields());
        self.watch_with(split).await
    }

    /// A watch, with a say in what becomes of the bytes of each object.
    pub(in crate::client) async fn watch_with<K: Resource>(self, split: SplitOptions) -> Result<Watch<K>, Error> {
        Watch::new(self.head().await?, split)
    }

    /// The answer with its body still to come.
    pub(in crate::client) async fn head(self) -> Result<http::Response<Body>, Error> {
        within_limit(self.limit, &self.about, self.client.send(self.request)).await
    }

    async fn answer(self) -> Result<(About, (http::StatusCode, Form, Bytes)), Error> {
        let Self { client, request, limit, about, .. } = self;
        let reading = async {
            let response = client.send(request).await?;
            let (code, form) = (response.status(), Form::of(&response));
            let body = within(client.timeout(), &about, response.into_body().collect(MAX_OBJECT)).await?;
            Ok((code, form, body))
        };
        let answer = within_limit(limit, &about, reading).await?;
        Ok((about, answer))
    }
}

fn decode<K: Resource>(about: &About, form: Form, body: &[u8], managed_fields: ManagedFields) -> Result<K, Error> {
    let decoded = match form {
        Form::Protobuf if Codec::of::<K>().is_some() => {
            klient_proto::decode_body_with(body, managed_fields).map_err(Error::from)
        }
        // The metadata of any kind.
        Form::Protobuf => {
            RawObject::from_protobuf_body(body, managed_fields).and_then(|object| object.decode()).map_err(Error::from)
        }
        // Cut out of the text first: that is quicker than to read them and throw them away.
        Form::Json if managed_fields == ManagedFields::Drop => {
            RawObject::from_json(body, managed_fields).and_then(|object| object.decode()).map_err(Error::from)
        }
        Form::Json => serde_json::from_slice(body)
            .map_err(|error| Error::new(ErrorKind::Decode, "malformed JSON").with_source(error)),
        Form::Other => Err(Error::new(ErrorKind::Decode, "it is neither protobuf nor JSON")),
    };
    decoded.map_err(|error| undecodable(error, about))
}

fn undecodable(error: Error, about: &About) -> Error {
    error.context(format!("the answer to {about} cannot be decoded"))
}

async fn within_limit<T>(
    limit: Option<Duration>,
    about: &About,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match limit {
        Some(limit) => within(limit, about, work).await,
        None => work.await,
    }
}

async fn within<T>(limit: Duration, about: &About, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Timeout, format!("the answer to {about} took over {} s", limit.as_secs_f32())))
    })
}

impl About {
    /// Records a write for the controller that waits until its cache shows it.
    fn note_write<K: Resource>(&self, object: &K) {
        if self.method == Method::GET || self.method == Method::HEAD {
            return;
        }
        writes::note(|| {
            let (resource, key) = self.object.clone()?;
            let key = if key.name().is_empty() { ObjectKey::of(object) } else { key };
            let version = object.metadata().resource_version.as_deref()?;
            Some(Write { resource, key, effect: WriteEffect::Stored(version.into()) })
        });
    }

    fn note_deletion(&self, status: &Status) {
        writes::note(|| {
            let (resource, key) = self.object.clone()?;
            let uid = status.details.as_ref().map(|details| details.uid.clone()).filter(|uid| !uid.is_empty());
            Some(Write { resource, key, effect: WriteEffect::Deleted { uid } })
        });
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the query, which may be long.
        write!(f, "{} {}", self.method, self.uri.path())
    }
}

/// Far above what a server stores.
const MAX_OBJECT: usize = 64 << 20;
