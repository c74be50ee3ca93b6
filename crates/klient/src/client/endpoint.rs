//! The place that a request goes to: a client, a resource, a namespace, and perhaps a subresource.
//!
//! [`Api`](crate::Api) and [`Subresource`](super::Subresource) hold one, and every request of theirs shares it. It chooses the
//! media types: protobuf where the kind has it, JSON otherwise.

use http::{Method, Request};
use klient_core::{ApiResource, BuildRequestError, RequestBuilder, Resource, Status, Target, TypeMeta, media_type};
use klient_proto::Codec;

use super::{Client, call::Call};
use crate::{Error, ErrorKind};

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) target: Target,
    pub(super) subresource: Option<String>,
    pub(super) payload: Payload,
}

/// How much of each object travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Object,
    Metadata,
}

/// The shape of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    List,
    Watch,
}

type Built = Result<Request<Vec<u8>>, BuildRequestError>;

impl Endpoint {
    pub(super) fn new(client: Client, resource: ApiResource, target: Target) -> Self {
        Self { client, resource, target, subresource: None, payload: Payload::Object }
    }

    /// Returns the namespace, if it is a single one.
    pub(super) fn namespace(&self) -> Option<&str> {
        match &self.target {
            Target::Namespace(namespace) => Some(namespace),
            Target::AllNamespaces | Target::Cluster => None,
        }
    }

    /// Returns a request builder that accepts the best media type for a response with objects of kind `K`.
    pub(super) fn builder<K: Resource>(&self, shape: Shape) -> RequestBuilder<'_> {
        let builder = RequestBuilder::new(&self.resource, self.target.clone()).accept(self.accept::<K>(shape));
        match &self.subresource {
            Some(subresource) => builder.subresource(subresource.clone()),
            None => builder,
        }
    }

    /// Wraps a request that is about the object `name`; about none, or one that is still to be named, without a name.
    pub(super) fn call(&self, request: Request<Vec<u8>>, name: Option<&str>) -> Call {
        let is_read = request.method() == Method::GET;
        let call = Call::new(self.client.clone(), request);
        if is_read {
            return call;
        }
        call.about(self.resource.group_resource(), self.namespace().unwrap_or_default(), name)
    }

    /// Sends `object` as the body of a write: as protobuf if the server takes it, as JSON otherwise.
    pub(super) async fn write<B: Resource, T, F: Future<Output = Result<T, Error>>>(
        &self,
        object: &B,
        name: Option<&str>,
        build: impl Fn(RequestBuilder<'_>, Vec<u8>) -> Built,
        finish: impl Fn(Call) -> F,
    ) -> Result<T, Error> {
        if self.payload == Payload::Metadata {
            let message = "metadata-only objects can be read, patched and deleted, but not created or updated";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let builder = self.builder::<B>(Shape::Object);
        if self.client.sends_protobuf() && Codec::of::<B>().is_some() {
            let body = klient_proto::encode_body(object)?;
            let request = build(builder.clone().content_type(media_type::PROTOBUF), body)?;
            match finish(self.call(request, name)).await {
                // The server refused the media type before it looked at the object, so nothing was written.
                Err(error) if error.status().is_some_and(Status::is_unsupported_media_type) => {
                    self.client.protobuf_was_refused();
                }
                outcome => return outcome,
            }
        }
        let body = self.to_json(object)?;
        finish(self.call(build(builder, body)?, name)).await
    }

    /// Serializes an object, with `apiVersion` and `kind` even if its type leaves them out.
    fn to_json<B: Resource>(&self, object: &B) -> Result<Vec<u8>, Error> {
        let cannot = |error| Error::new(ErrorKind::Invalid, "cannot serialize object as JSON").with_source(error);
        let body = serde_json::to_vec(object).map_err(cannot)?;
        if Codec::of::<B>().is_some() {
            return Ok(body);
        }
        let types = match B::KIND {
            "" => self.resource.types(),
            kind => TypeMeta::new(B::API_VERSION, kind),
        };
        with_types(body, &types).map_err(cannot)
    }

    fn accept<K: Resource>(&self, shape: Shape) -> &'static str {
        let protobuf = self.client.prefers_protobuf();
        match (self.payload, shape) {
            (Payload::Metadata, shape) => accept_metadata(shape, protobuf),
            (Payload::Object, _) if !protobuf || Codec::of::<K>().is_none() => media_type::JSON,
            (Payload::Object, Shape::Watch) => media_type::ACCEPT_PROTOBUF_OR_JSON_WATCH,
            (Payload::Object, Shape::Object | Shape::List) => media_type::ACCEPT_PROTOBUF_OR_JSON,
        }
    }

    /// Refuses whole objects where only metadata was requested: items of a list do not carry their kind.
    pub(super) fn check_list_kind(&self, list_kind: &str) -> Result<(), Error> {
        if self.payload == Payload::Metadata && list_kind != "PartialObjectMetadataList" {
            let message = format!(
                "requested metadata of {}, but the server responded with a {list_kind}",
                self.resource.group_resource()
            );
            return Err(Error::new(ErrorKind::Decode, message));
        }
        Ok(())
    }
}

/// Adds the fields `apiVersion` and `kind` to a serialized object that lacks them.
fn with_types(body: Vec<u8>, types: &TypeMeta) -> Result<Vec<u8>, serde_json::Error> {
    if body.first() != Some(&b'{') {
        return Err(serde::ser::Error::custom("expected a JSON object"));
    }
    let present: TypeMeta = serde_json::from_slice(&body)?;
    let missing = [
        ("apiVersion", &types.api_version, present.api_version.is_empty()),
        ("kind", &types.kind, present.kind.is_empty()),
    ];
    let mut added = Vec::new();
    for (field, value, _) in missing.into_iter().filter(|(_, value, is_missing)| *is_missing && !value.is_empty()) {
        serde_json::to_writer(&mut added, field)?;
        added.push(b':');
        serde_json::to_writer(&mut added, value)?;
        added.push(b',');
    }
    if added.is_empty() {
        return Ok(body);
    }
    let fields = &body[1..];
    if fields.starts_with(b"}") {
        added.pop();
    }
    Ok([b"{", &added[..], fields].concat())
}

/// Returns the `Accept` header for metadata. Protobuf serves custom resources as well: metadata is a built-in kind.
fn accept_metadata(shape: Shape, protobuf: bool) -> &'static str {
    match (shape, protobuf) {
        (Shape::List, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        ),
        (Shape::List, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (Shape::Watch, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch,",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        ),
        (Shape::Object, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        ),
        (Shape::Object | Shape::Watch, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_object_gets_the_types_that_it_lacks() {
        let types = TypeMeta::new("shop.example.com/v1", "Widget");
        for (body, expected) in [
            (r#"{"spec":{}}"#, r#"{"apiVersion":"shop.example.com/v1","kind":"Widget","spec":{}}"#),
            ("{}", r#"{"apiVersion":"shop.example.com/v1","kind":"Widget"}"#),
            (r#"{"kind":"Widget","a":1}"#, r#"{"apiVersion":"shop.example.com/v1","kind":"Widget","a":1}"#),
            (r#"{"apiVersion":"v2","kind":"Other"}"#, r#"{"apiVersion":"v2","kind":"Other"}"#),
        ] {
            assert_eq!(with_types(body.into(), &types).unwrap(), expected.as_bytes(), "{body}");
        }
        assert!(with_types(b"[]".to_vec(), &types).is_err());
    }
}
