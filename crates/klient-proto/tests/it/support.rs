//! What the other files share: the sample bodies, protobuf by hand, and every kind with its type erased.

use std::{borrow::Cow, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use klient_core::{FieldPath, Resource};
use klient_proto::{DecodeError, RawObject};
use serde_json::Value;

use crate::kinds::for_each_kind;

/// The same pod in both forms, and the same list of three pods, as Go's own serializers wrote them.
pub(crate) const POD_JSON: &[u8] = include_bytes!("../data/pod.json");
pub(crate) const POD_PB: &[u8] = include_bytes!("../data/pod.pb");
pub(crate) const LIST_JSON: &[u8] = include_bytes!("../data/pod_list.json");
pub(crate) const LIST_PB: &[u8] = include_bytes!("../data/pod_list.pb");

/// A varint, written independently of the crate.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A length-delimited field.
pub(crate) fn field(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A varint field.
pub(crate) fn int_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

pub(crate) fn path(text: &str) -> FieldPath {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A kind with its type erased: what tests need of it as plain functions.
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The metadata of an object that is decoded into its type.
    pub(crate) metadata: fn(&RawObject) -> Result<ObjectMeta, DecodeError>,
    /// An object through its type: decoded, then serialized as JSON.
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

/// All kinds that are objects: those with object metadata.
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

/// Tells kinds with object metadata from those without: the method of the first trait is preferred where it applies,
/// since the second needs one more reference.
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

/// The object as JSON has it after Go's `omitempty`: members that are `null` are not there.
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
