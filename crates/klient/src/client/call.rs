//! Sends a request and decodes the response: an object, a list, bytes, a stream or a watch. [`Api`](super::Api) and
//! [`RestClient`](super::RestClient) share this code.
//!
//! Every call except watches and streams ends in bounded time, whatever the server does.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{Method, Uri};
use klient_core::{ApiResource, GroupResource, List, ObjectKey, Resource, Status, TypeMeta};
use klient_proto::{Codec, ListEnd, ManagedFields, RawObject, SplitOptions};

use crate::client::{Client, Deleted, ListStream, Watch, http::body::Body, http::response, http::response::Encoding};
use crate::{
    Error, ErrorKind,
    recording::RequestNote,
    writes::{self, StoredState, Write, WriteEffect},
};

/// A request that is ready to be sent, with the object that it is about.
pub(in crate::client) struct Call {
    client: Client,
    request: http::Request<Vec<u8>>,
    limit: Option<Duration>,
    /// The type of the items of a list.
    items: Option<TypeMeta>,
    about: Subject,
}

/// The subject of a request, for error messages and for the log of writes.
struct Subject {
    method: Method,
    uri: Uri,
    /// The object that a write stores, or `None` if nothing is stored.
    object: Option<(GroupResource, ObjectKey)>,
}

impl Call {
    pub(in crate::client) fn new(client: Client, request: http::Request<Vec<u8>>) -> Self {
        let about = Subject { method: request.method().clone(), uri: request.uri().clone(), object: None };
        Self { client, request, limit: None, items: None, about }
    }

    /// Sets the object that the request is about. Without a name, it is taken from the response.
    pub(super) fn about(mut self, resource: GroupResource, namespace: &str, name: Option<&str>) -> Self {
        self.about.object = Some((resource, ObjectKey::namespaced(namespace, name.unwrap_or_default())));
        self
    }

    /// Sets whether the request is a dry run, which stores nothing.
    pub(super) fn dry_run(mut self, dry_run: bool) -> Self {
        if dry_run {
            self.about.object = None;
        }
        self
    }

    /// Sets the time limit of the whole call, retries included.
    pub(in crate::client) fn limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the type of the items of a list, because items of built-in kinds do not contain it.
    pub(in crate::client) fn items(mut self, resource: &ApiResource) -> Self {
        self.items = Some(resource.types());
        self
    }

    /// Sends the request and decodes an object.
    pub(in crate::client) async fn object<K: Resource>(self) -> Result<K, Error> {
        let managed_fields = self.client.managed_fields();
        let (about, (code, encoding, body)) = self.read_as::<K>().await?;
        let decoded: Result<K, Error> = decode(&about, encoding, &body, managed_fields);
        if let Ok(object) = &decoded {
            about.note_write(object);
        }
        // Some servers report a failure with a success code. A kind known at run time decodes any object, a `Status`
        // included.
        if (decoded.is_err() || Codec::of::<K>().is_none()) && response::is_status(encoding, &body) {
            let status = response::status(code, encoding, &body);
            if !status.is_success() {
                return Err(status.into());
            }
        }
        decoded
    }

    /// Sends the request and decodes an object, or a status that reports its deletion.
    pub(in crate::client) async fn object_or_status<K: Resource>(self) -> Result<Deleted<K>, Error> {
        let managed_fields = self.client.managed_fields();
        let (about, (code, encoding, body)) = self.read_as::<K>().await?;
        if response::is_status(encoding, &body) {
            let status = response::status(code, encoding, &body);
            if !status.is_success() {
                return Err(status.into());
            }
            about.note_deletion(&status);
            return Ok(Deleted::Status(status));
        }
        let object = decode(&about, encoding, &body, managed_fields)?;
        about.note_write(&object);
        Ok(Deleted::Object(Box::new(object)))
    }

    /// Sends the request and decodes a status. Any other body of a success becomes a success status.
    pub(in crate::client) async fn status(self) -> Result<Status, Error> {
        let (_, (code, encoding, body)) = self.read().await?;
        let status = response::status(code, encoding, &body);
        if response::is_status(encoding, &body) && !status.is_success() { Err(status.into()) } else { Ok(status) }
    }

    /// Sends the request and decodes any JSON.
    pub(in crate::client) async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        let (about, (code, encoding, body)) = self.read().await?;
        // The content type is ignored, because servers send some of their JSON as plain text.
        serde_json::from_slice(&body).map_err(|error| {
            // The server may have reported a failure with a success code.
            let status = response::status(code, encoding, &body);
            if response::is_status(encoding, &body) && !status.is_success() {
                return status.into();
            }
            let what = if encoding == Encoding::Json { "malformed JSON" } else { "expected JSON" };
            undecodable(Error::new(ErrorKind::Decode, what).with_source(error), &about)
        })
    }

    /// Sends the request and returns the body as bytes.
    pub(in crate::client) async fn bytes(self) -> Result<Bytes, Error> {
        let (_, (_, _, body)) = self.read().await?;
        Ok(body)
    }

    /// Sends the request, then reads and discards the response, whatever its size.
    pub(in crate::client) async fn discard(self) -> Result<(), Error> {
        let note = self.note();
        let Self { client, request, limit, about, .. } = self;
        let reading = async {
            let mut body = client.send(request).await?.into_body();
            within(client.timeout(), &about, async {
                while body.chunk().await?.is_some() {}
                Ok(())
            })
            .await
        };
        let read = within_limit(limit, &about, reading).await;
        RequestNote::end_unread(note, read.as_ref().map(|()| http::StatusCode::OK));
        read
    }

    /// Sends the request and collects a list.
    pub(in crate::client) async fn list<K: Resource>(self) -> Result<List<K>, Error> {
        let note = self.note();
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
        let read = within_limit(limit, &about, reading).await;
        RequestNote::end_unread(note, read.as_ref().map(|_| http::StatusCode::OK));
        let (items, end) =
            read.map_err(|error| if error.kind() == ErrorKind::Decode { undecodable(error, &about) } else { error })?;
        let ListEnd { api_version, kind, metadata, .. } =
            end.ok_or_else(|| undecodable(Error::new(ErrorKind::Decode, "list is incomplete"), &about))?;
        Ok(List { types: Some(TypeMeta::new(api_version, kind)), metadata, items })
    }

    /// Sends the request and returns the objects of a list as they arrive.
    pub(in crate::client) async fn list_stream<K: Resource>(self, split: SplitOptions) -> Result<ListStream<K>, Error> {
        let (time_limit, types) = (self.client.timeout(), self.items.clone());
        Ok(ListStream::new(self.head().await?, split, time_limit)?.items(types))
    }

    /// Sends the request and returns a watch.
    pub(in crate::client) async fn watch<K: Resource>(self) -> Result<Watch<K>, Error> {
        let split = SplitOptions::default().managed_fields(self.client.managed_fields());
        self.watch_with(split).await
    }

    /// Sends the request and returns a watch that prepares the bytes of each object as `split` says.
    pub(in crate::client) async fn watch_with<K: Resource>(self, split: SplitOptions) -> Result<Watch<K>, Error> {
        let time_limit = self.client.timeout();
        Watch::new(self.head().await?, split, time_limit)
    }

    /// Sends the request and returns the head of the response, with its body still to be read.
    pub(in crate::client) async fn head(self) -> Result<http::Response<Body>, Error> {
        let note = self.note();
        let head = within_limit(self.limit, &self.about, self.client.send(self.request)).await;
        RequestNote::end_unread(note, head.as_ref().map(http::Response::status));
        head
    }

    /// Sends the request and reads the response, and records both if the task runs a recorded reconcile.
    async fn read_as<K: Resource>(self) -> Result<(Subject, (http::StatusCode, Encoding, Bytes)), Error> {
        let note = self.note();
        let read = self.read_unrecorded().await;
        let Some(note) = note else { return read };
        let to_json = |body: &[u8]| RawObject::from_protobuf_body(body, ManagedFields::Drop).ok()?.to_value::<K>().ok();
        let outcome = read.as_ref().map(|(_, (code, encoding, body))| {
            let object =
                if *encoding == Encoding::Protobuf { to_json(body) } else { serde_json::from_slice(body).ok() };
            (code.as_u16(), object)
        });
        note.end(outcome, to_json);
        read
    }

    /// Sends the request and reads the response. Only the code is recorded.
    async fn read(self) -> Result<(Subject, (http::StatusCode, Encoding, Bytes)), Error> {
        let note = self.note();
        let read = self.read_unrecorded().await;
        RequestNote::end_unread(note, read.as_ref().map(|(_, (code, ..))| *code));
        read
    }

    /// Returns a note of this request, if the task runs a recorded reconcile.
    fn note(&self) -> Option<Box<RequestNote>> {
        RequestNote::begin(self.request.method(), self.request.uri(), self.request.body())
    }

    async fn read_unrecorded(self) -> Result<(Subject, (http::StatusCode, Encoding, Bytes)), Error> {
        let Self { client, request, limit, about, .. } = self;
        let reading = async {
            let response = client.send(request).await?;
            let (code, encoding) = (response.status(), Encoding::of(&response));
            let body = within(client.timeout(), &about, response.into_body().collect(MAX_OBJECT)).await?;
            Ok((code, encoding, body))
        };
        let parts = within_limit(limit, &about, reading).await?;
        Ok((about, parts))
    }
}

fn decode<K: Resource>(
    about: &Subject,
    encoding: Encoding,
    body: &[u8],
    managed_fields: ManagedFields,
) -> Result<K, Error> {
    let decoded = match encoding {
        Encoding::Protobuf if Codec::of::<K>().is_some() => {
            klient_proto::decode_body_with(body, managed_fields).map_err(Error::from)
        }
        // Metadata-only objects have the same wire format for every kind.
        Encoding::Protobuf => {
            RawObject::from_protobuf_body(body, managed_fields).and_then(|object| object.decode()).map_err(Error::from)
        }
        // Removing the fields from the text is faster than decoding and dropping them.
        Encoding::Json if managed_fields == ManagedFields::Drop => {
            RawObject::from_json(body, managed_fields).and_then(|object| object.decode()).map_err(Error::from)
        }
        Encoding::Json => serde_json::from_slice(body)
            .map_err(|error| Error::new(ErrorKind::Decode, "malformed JSON").with_source(error)),
        Encoding::Other => Err(Error::new(ErrorKind::Decode, "expected protobuf or JSON")),
    };
    decoded.map_err(|error| undecodable(error, about))
}

fn undecodable(error: Error, about: &Subject) -> Error {
    error.context(format!("cannot decode response to {about}"))
}

async fn within_limit<T>(
    limit: Option<Duration>,
    about: &Subject,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match limit {
        Some(limit) => within(limit, about, work).await,
        None => work.await,
    }
}

async fn within<T>(limit: Duration, about: &Subject, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Timeout, format!("no complete response to {about} within {} s", limit.as_secs_f32())))
    })
}

impl Subject {
    /// Records a write for controllers that wait until their cache contains it.
    fn note_write<K: Resource>(&self, object: &K) {
        if self.method == Method::GET || self.method == Method::HEAD {
            return;
        }
        writes::note(|| {
            let (resource, key) = self.object.clone()?;
            let key = if key.name().is_empty() { ObjectKey::of(object) } else { key };
            let effect = WriteEffect::Stored(StoredState::of(object, &resource)?);
            Some(Write { resource, key, effect })
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

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query is left out, because it may be long.
        write!(f, "{} {}", self.method, self.uri.path())
    }
}

/// Far above the size of any stored object.
const MAX_OBJECT: usize = 64 << 20;
