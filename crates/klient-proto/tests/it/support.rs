//! Shared fixtures: sample bodies, hand-written protobuf, and every kind with its type erased.

use std::{borrow::Cow, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use klient_core::{FieldPath, Resource};
use klient_proto::{DecodeError, RawObject};
use serde_json::Value;

use crate::kinds::for_each_kind;

/// The same pod in both encodings, and the same list of three pods, as written by Go's serializers.
pub(crate) const POD_JSON: &[u8] = include_bytes!("../data/pod.json");
pub(crate) const POD_PB: &[u8] = include_bytes!("../data/pod.pb");
pub(crate) const LIST_JSON: &[u8] = include_bytes!("../data/pod_list.json");
pub(crate) const LIST_PB: &[u8] = include_bytes!("../data/pod_list.pb");

/// Encodes a varint independently of the crate.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Encodes a length-delimited field.
pub(crate) fn field(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// Encodes a varint field.
pub(crate) fn int_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

pub(crate) fn path(text: &str) -> FieldPath {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A kind with its type erased, as plain functions.
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Returns the metadata of a decoded object.
    pub(crate) metadata: fn(&RawObject) -> Result<ObjectMeta, DecodeError>,
    /// Decodes an object, and serializes it as JSON.
    pub(crate) through_type: fn(&RawObject) -> Result<Value, DecodeError>,
    pub(crate) to_value: fn(&RawObject) -> Result<Value, DecodeError>,
    pub(crate) value_at: fn(&RawObject, &FieldPath) -> Result<Option<Value>, DecodeError>,
    pub(crate) text_at: TextAt,
}

type TextAt = for<'a> fn(&'a RawObject, &FieldPath) -> Result<Option<Cow<'a, str>>, DecodeError>;

impl Kind {
    pub(crate) fn of<K: Resource>() -> Self {
        Self {
            api_version: K::API_VERSION,
            kind: K::KIND,
            metadata: |raw| raw.decode::<K>().map(|object| object.metadata().clone()),
            through_type: |raw| raw.decode::<K>().map(|object| serde_json::to_value(object).unwrap()),
            to_value: RawObject::to_value::<K>,
            value_at: RawObject::value_at::<K>,
            text_at: RawObject::text_at::<K>,
        }
    }

    pub(crate) fn key(&self) -> (String, String) {
        (self.api_version.to_owned(), self.kind.to_owned())
    }
}

/// Returns all kinds with object metadata.
pub(crate) fn object_kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    macro_rules! add {
        ($kind:ty) => {
            kinds.extend((&Probe::<$kind>(PhantomData)).erased());
        };
    }
    for_each_kind!(add);
    kinds
}

/// Distinguishes kinds with object metadata from those without: the method of the first trait is preferred if it
/// applies, because the second needs one more reference.
struct Probe<K>(PhantomData<K>);

trait WithMetadata {
    fn erased(&self) -> Option<Kind>;
}

impl<K: Resource> WithMetadata for Probe<K> {
    fn erased(&self) -> Option<Kind> {
        Some(Kind::of::<K>())
    }
}

trait WithoutMetadata {
    fn erased(&self) -> Option<Kind>;
}

impl<K> WithoutMetadata for &Probe<K> {
    fn erased(&self) -> Option<Kind> {
        None
    }
}

/// Removes `null` members, as Go's `omitempty` does.
pub(crate) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
