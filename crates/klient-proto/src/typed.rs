//! Encoding and decoding of typed objects as protobuf, bare or in an envelope.

use k8s_openapi::{ListableResource, Resource, apimachinery::pkg::apis::meta::v1::ListMeta};

use crate::{
    Codec, DecodeError, Envelope, Problem, codec,
    envelope::shorten,
    runtime::{FieldValue as _, Reader, Result, Writer},
};

/// Whether `metadata.managedFields` is decoded.
///
/// It is half of a typical object and costs more to decode than the rest, because it becomes a tree of JSON values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManagedFields {
    /// The fields are decoded.
    #[default]
    Keep,
    /// The fields are skipped.
    Drop,
}

/// Decodes a bare message, as in lists and raw objects.
///
/// # Errors
///
/// Returns an error that names the field if the bytes are malformed, or an error if `K` has no codec.
pub fn decode<K: Resource + 'static>(message: &[u8], managed_fields: ManagedFields) -> Result<K> {
    let codec = codec_of::<K>()?;
    let mut reader = Reader::new(message);
    if managed_fields == ManagedFields::Drop {
        reader = reader.without_managed_fields();
    }
    codec.decode(&mut reader)
}

/// Decodes a body: an envelope with one object.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("settings".into());
/// let body = klient_proto::encode_body(&config)?;
/// assert_eq!(klient_proto::decode_body::<ConfigMap>(&body)?, config);
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
///
/// # Errors
///
/// Returns the errors of [`decode`], and an error if the envelope has another kind.
pub fn decode_body<K: Resource + 'static>(body: &[u8]) -> Result<K> {
    decode_body_with(body, ManagedFields::Keep)
}

/// Decodes a body, with or without `metadata.managedFields`.
///
/// # Errors
///
/// Returns the errors of [`decode_body`].
pub fn decode_body_with<K: Resource + 'static>(body: &[u8], managed_fields: ManagedFields) -> Result<K> {
    let envelope = Envelope::open(body)?;
    check_kind(&envelope, K::API_VERSION, K::KIND)?;
    decode(envelope.raw, managed_fields).map_err(|error| error.shifted(envelope.raw_offset))
}

/// Decodes the body of a list.
///
/// # Errors
///
/// Returns the errors of [`decode_body`]. The splitters of this crate skip a malformed item instead, and hold only one
/// object at a time.
pub fn decode_list_body<K: ListableResource + 'static>(body: &[u8]) -> Result<(ListMeta, Vec<K>)> {
    let envelope = Envelope::open(body)?;
    check_kind(&envelope, K::API_VERSION, K::LIST_KIND)?;
    let codec = codec_of::<K>()?;
    let (mut metadata, mut items) = (ListMeta::default(), Vec::new());
    let outcome = Reader::new(envelope.raw).each_remaining_field(|number, wire, r| {
        match number {
            1 => metadata.read_field(wire, r)?,
            2 => {
                let bytes = r.bytes(wire)?;
                let start = r.offset() - bytes.len();
                r.charge(size_of::<K>())?;
                items.push(r.apart(bytes, |r| codec.decode(r)).map_err(|error| error.shifted(start))?);
            }
            _ => r.skip(wire)?,
        }
        Ok(())
    });
    outcome.map_err(|error| error.shifted(envelope.raw_offset))?;
    Ok((metadata, items))
}

/// Encodes an object as a bare message.
///
/// # Errors
///
/// Returns an error if `K` has no codec.
pub fn encode<K: Resource + 'static>(object: &K) -> Result<Vec<u8>> {
    Ok(codec_of::<K>()?.encode(object))
}

/// Encodes an object as a body: a message in its envelope.
///
/// # Errors
///
/// Returns an error if `K` has no codec.
pub fn encode_body<K: Resource + 'static>(object: &K) -> Result<Vec<u8>> {
    Ok(Envelope::wrap(K::API_VERSION, K::KIND, &encode(object)?))
}

/// Encodes a list as a body, from the bare messages of its items.
pub fn encode_list_body<'a>(
    api_version: &str,
    list_kind: &str,
    metadata: &ListMeta,
    items: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let mut w = Writer::new();
    for item in items.rev() {
        w.bytes_field(2, item);
    }
    metadata.write_field(1, &mut w);
    Envelope::wrap(api_version, list_kind, &w.finish())
}

fn codec_of<K: Resource + 'static>() -> Result<&'static Codec> {
    Codec::of::<K>().ok_or_else(|| codec::no_codec(K::API_VERSION, K::KIND))
}

fn check_kind(envelope: &Envelope<'_>, api_version: &str, kind: &str) -> Result<()> {
    if envelope.api_version == api_version && envelope.kind == kind {
        return Ok(());
    }
    let found = format!("{} {}, expected {api_version} {kind}", shorten(envelope.api_version), shorten(envelope.kind));
    Err(DecodeError::new(Problem::WrongKind(found), 0))
}
