//! An object in wire format: one allocation of exact size, read in place.
//!
//! Creating one only finds its metadata and checks the outer framing. Names, labels and single fields are read from the
//! bytes on demand, and a typed object is decoded on request.

mod field;
mod json;
mod metadata;
mod protobuf;
mod transcode;

pub use metadata::{Identity, MetadataEntries, OwnerReferences, Strings};

use std::{borrow::Cow, fmt, sync::Arc};

use jiff::Timestamp;
use klient_core::{FieldPath, ObjectKey, Resource};
use serde_json::Value;

use crate::{
    Codec, DecodeError, Envelope, ManagedFields, Problem,
    error::json_reason,
    meta::PartialObjectMetadata,
    runtime::{Message as _, Reader, Result},
};

/// An object stored as protobuf or JSON bytes.
///
/// Cheap to clone: clones share the bytes.
///
/// ```
/// use klient_proto::{ManagedFields, RawObject};
/// # use k8s_openapi::api::core::v1::Pod;
///
/// let text = br#"{"metadata":{"name":"web-0","namespace":"shop","managedFields":[{"manager":"kubelet"}],
///                 "labels":{"app":"web"}},"spec":{"nodeName":"node-7","containers":[]}}"#;
/// let pod = RawObject::from_json(text, ManagedFields::Drop)?;
/// assert_eq!(pod.key().to_string(), "shop/web-0");
/// assert_eq!(pod.label("app").as_deref(), Some("web"));
/// assert_eq!(pod.text_at::<Pod>(&"spec.nodeName".parse().unwrap())?.as_deref(), Some("node-7"));
/// assert_eq!(pod.decode::<Pod>()?.spec.unwrap().node_name.as_deref(), Some("node-7"));
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RawObject {
    bytes: Arc<[u8]>,
    /// The position of the metadata: the JSON object with its braces, or the bare protobuf message.
    metadata: Span,
    encoding: Encoding,
}

/// The encoding of a raw object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON text.
    Json,
    /// The kind's protobuf message, without envelope.
    Protobuf,
    /// A `PartialObjectMetadata` message, for a metadata-only object.
    ProtobufMetadata,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Creates a span. Objects are far smaller than 4 GiB; splitters and constructors reject larger ones.
    fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
    }
}

impl RawObject {
    /// Creates an object from JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object with an object for metadata, or if an identifying field is not
    /// a string.
    pub fn from_json(text: &[u8], managed_fields: ManagedFields) -> Result<Self> {
        RawObjectFactory::new(managed_fields).json(text)
    }

    /// Creates an object from a bare protobuf message.
    ///
    /// # Errors
    ///
    /// Returns an error if the message or its metadata is malformed.
    pub fn from_protobuf(message: &[u8], managed_fields: ManagedFields) -> Result<Self> {
        RawObjectFactory::new(managed_fields).protobuf(message, Encoding::Protobuf)
    }

    /// Creates an object from a protobuf body: an envelope with one object.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_protobuf`](Self::from_protobuf), and an error if the envelope is malformed.
    pub fn from_protobuf_body(body: &[u8], managed_fields: ManagedFields) -> Result<Self> {
        RawObjectFactory::new(managed_fields).protobuf_body(body)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the encoding of the bytes.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the namespace and name.
    pub fn key(&self) -> ObjectKey {
        let identity = self.identity();
        ObjectKey::namespaced(&identity.namespace, &identity.name)
    }

    /// Returns name, namespace, uid and resource version in one pass.
    pub fn identity(&self) -> Identity<'_> {
        Identity::read(self.metadata_bytes(), self.encoding)
    }

    /// Returns `metadata.name`, empty if absent.
    pub fn name(&self) -> Cow<'_, str> {
        self.identity().name
    }

    /// Returns `metadata.namespace`.
    pub fn namespace(&self) -> Option<Cow<'_, str>> {
        Some(self.identity().namespace).filter(|namespace| !namespace.is_empty())
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> Option<Cow<'_, str>> {
        Some(self.identity().uid).filter(|uid| !uid.is_empty())
    }

    /// Returns `metadata.resourceVersion`.
    pub fn resource_version(&self) -> Option<Cow<'_, str>> {
        Some(self.identity().resource_version).filter(|version| !version.is_empty())
    }

    /// Returns `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        metadata::generation(self.metadata_bytes(), self.encoding)
    }

    /// Returns `metadata.creationTimestamp`.
    pub fn creation_timestamp(&self) -> Option<Timestamp> {
        metadata::creation_timestamp(self.metadata_bytes(), self.encoding)
    }

    /// Returns `metadata.deletionTimestamp`, the time at which deletion was requested.
    pub fn deletion_timestamp(&self) -> Option<Timestamp> {
        metadata::deletion_timestamp(self.metadata_bytes(), self.encoding)
    }

    /// Returns `metadata.labels`, in the order of the bytes.
    pub fn labels(&self) -> MetadataEntries<'_> {
        MetadataEntries::labels(self.metadata_bytes(), self.encoding)
    }

    /// Returns the value of one label.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.labels().filter(|(found, _)| found == key).last().map(|(_, value)| value)
    }

    /// Returns `metadata.annotations`, in the order of the bytes.
    pub fn annotations(&self) -> MetadataEntries<'_> {
        MetadataEntries::annotations(self.metadata_bytes(), self.encoding)
    }

    /// Returns the value of one annotation.
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.annotations().filter(|(found, _)| found == key).last().map(|(_, value)| value)
    }

    /// Returns `metadata.ownerReferences`, without malformed ones.
    pub fn owner_references(&self) -> OwnerReferences<'_> {
        OwnerReferences::read(self.metadata_bytes(), self.encoding)
    }

    /// Returns `metadata.finalizers`.
    pub fn finalizers(&self) -> Strings<'_> {
        Strings::finalizers(self.metadata_bytes(), self.encoding)
    }

    /// Decodes the typed object.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field if the bytes are not a `K`, or an error if they are protobuf and `K` has
    /// no codec.
    pub fn decode<K: Resource>(&self) -> Result<K> {
        match self.encoding {
            Encoding::Json => serde_json::from_slice(&self.bytes).map_err(|error| json_error(&error)),
            Encoding::Protobuf => crate::decode(&self.bytes, ManagedFields::Keep),
            Encoding::ProtobufMetadata => {
                let mut metadata = <K as k8s_openapi::Metadata>::Ty::new();
                Reader::new(self.metadata_bytes())
                    .each_remaining_field(|number, wire, r| metadata.merge_field(number, wire, r))?;
                let empty = serde_json::json!({"metadata": {}});
                let mut object: K = serde_json::from_value(empty).map_err(|error| json_error(&error))?;
                *object.metadata_mut() = metadata;
                Ok(object)
            }
        }
    }

    /// Converts the object to a JSON value, and adds `apiVersion` and `kind` if the bytes do not contain them.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are malformed, or if they are protobuf and `K` has no codec.
    pub fn to_value<K: Resource>(&self) -> Result<Value> {
        self.to_value_of(Codec::of::<K>(), K::API_VERSION, K::KIND)
    }

    /// Converts the object of a kind known at run time; see [`to_value`](Self::to_value).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`to_value`](Self::to_value).
    pub fn to_value_of(&self, codec: Option<&'static Codec>, api_version: &str, kind: &str) -> Result<Value> {
        let mut value = match self.encoding {
            Encoding::Json => serde_json::from_slice(&self.bytes).map_err(|error| json_error(&error))?,
            _ => transcode::to_value(&self.bytes, self.descriptor(codec, api_version, kind)?)?,
        };
        if let Some(object) = value.as_object_mut() {
            for (key, text) in [("apiVersion", api_version), ("kind", kind)] {
                if !text.is_empty() && !object.contains_key(key) {
                    object.insert(key.to_owned(), Value::from(text));
                }
            }
        }
        Ok(value)
    }

    /// Returns the value at a field path, read from the bytes without decoding the rest; `None` if it is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes before the value are malformed, or if they are protobuf and `K` has no codec.
    pub fn value_at<K: Resource>(&self, path: &FieldPath) -> Result<Option<Value>> {
        match self.encoding {
            Encoding::Json => field::json_at(&self.bytes, path)?.map_or(Ok(None), |text| json::parse(text).map(Some)),
            _ => match field::protobuf_at(&self.bytes, self.descriptor_of::<K>()?, path)? {
                Some(found) => transcode::found_to_value(&found),
                None => Ok(None),
            },
        }
    }

    /// Returns the string, number or boolean at a field path as text, as field selectors compare it; `None` if it is
    /// not set, or is a list, map or message.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`value_at`](Self::value_at).
    pub fn text_at<K: Resource>(&self, path: &FieldPath) -> Result<Option<Cow<'_, str>>> {
        match self.encoding {
            Encoding::Json => Ok(field::json_at(&self.bytes, path)?.and_then(json::scalar_text)),
            _ => match field::protobuf_at(&self.bytes, self.descriptor_of::<K>()?, path)? {
                Some(found) => transcode::found_to_text(&found),
                None => Ok(None),
            },
        }
    }

    fn metadata_bytes(&self) -> &[u8] {
        self.bytes.get(self.metadata.start as usize..self.metadata.end as usize).unwrap_or_default()
    }

    fn descriptor_of<K: Resource>(&self) -> Result<&'static crate::descriptor::Descriptor> {
        self.descriptor(Codec::of::<K>(), K::API_VERSION, K::KIND)
    }

    fn descriptor(
        &self,
        codec: Option<&'static Codec>,
        api_version: &str,
        kind: &str,
    ) -> Result<&'static crate::descriptor::Descriptor> {
        match codec {
            _ if self.encoding == Encoding::ProtobufMetadata => Ok(PartialObjectMetadata::descriptor()),
            Some(codec) => Ok((codec.descriptor)()),
            None => Err(crate::no_codec(api_version, kind)),
        }
    }
}

// `Debug` never prints contents, because they may be a Secret's.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity();
        f.debug_struct("RawObject")
            .field("key", &self.key())
            .field("resource_version", &identity.resource_version)
            .field("encoding", &self.encoding)
            .field("len", &self.bytes.len())
            .finish()
    }
}

/// A constructor of raw objects, with one scratch buffer for all.
pub(crate) struct RawObjectFactory {
    managed_fields: ManagedFields,
    scratch: Vec<u8>,
}

impl RawObjectFactory {
    pub(crate) fn new(managed_fields: ManagedFields) -> Self {
        Self { managed_fields, scratch: Vec::new() }
    }

    pub(crate) fn json(&mut self, text: &[u8]) -> Result<RawObject> {
        json::make(text, self.managed_fields, &mut self.scratch)
    }

    pub(crate) fn protobuf(&mut self, message: &[u8], encoding: Encoding) -> Result<RawObject> {
        protobuf::make(message, encoding, self.managed_fields, &mut self.scratch)
    }

    pub(crate) fn protobuf_body(&mut self, body: &[u8]) -> Result<RawObject> {
        let envelope = Envelope::open(body)?;
        let encoding = encoding_of(envelope.kind);
        self.protobuf(envelope.raw, encoding).map_err(|error| error.shifted(envelope.raw_offset))
    }
}

/// Returns the encoding of an envelope's content of this kind.
pub(crate) fn encoding_of(kind: &str) -> Encoding {
    match kind {
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Encoding::ProtobufMetadata,
        _ => Encoding::Protobuf,
    }
}

#[cold]
fn json_error(error: &serde_json::Error) -> DecodeError {
    DecodeError::new(Problem::Json(json_reason(error)), 0)
}
