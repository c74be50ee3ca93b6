//! The table of kinds with a protobuf codec, and the lookup of a generic function's codec without a trait bound.
//!
//! A codec is found by the kind's constants at compile time, so that an optimized binary links only the codecs of the
//! kinds that it uses. The type itself is checked: a custom type that is named `v1` `Pod` has no codec.

use std::any::{Any, TypeId};

use crate::{
    descriptor::Descriptor,
    error::DecodeError,
    generated,
    runtime::{Message, Reader, Result, Writer},
};

/// The protobuf codec of one kind, with its Rust type erased.
pub struct Codec {
    /// The kind's `apiVersion`, such as `apps/v1`.
    pub api_version: &'static str,
    /// The kind's name, such as `Deployment`.
    pub kind: &'static str,
    /// The fields of the kind's message.
    pub descriptor: fn() -> &'static Descriptor,
    pub(crate) type_id: fn() -> TypeId,
    /// Decodes into an `Option` of the type.
    pub(crate) decode: fn(&mut Reader<'_>, &mut dyn Any) -> Result<()>,
    pub(crate) encode: fn(&dyn Any, &mut Writer),
}

impl Codec {
    /// Returns the codec of a kind, by type.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// assert_eq!(klient_proto::Codec::of::<Pod>().map(|codec| codec.kind), Some("Pod"));
    /// ```
    pub fn of<K: k8s_openapi::Resource + 'static>() -> Option<&'static Self> {
        generated::of::<K>().filter(|codec| (codec.type_id)() == TypeId::of::<K>())
    }

    /// Returns the codec of a kind known at run time. Using this links the codecs of all kinds.
    pub fn find(api_version: &str, kind: &str) -> Option<&'static Self> {
        Self::all().iter().find(|codec| codec.api_version == api_version && codec.kind == kind).copied()
    }

    /// Returns the codecs of all kinds of the enabled Kubernetes version.
    pub fn all() -> &'static [&'static Self] {
        generated::ALL
    }

    pub(crate) fn decode<K: 'static>(&self, reader: &mut Reader<'_>) -> Result<K> {
        let mut slot: Option<K> = None;
        (self.decode)(reader, &mut slot).map_err(|error| error.of_kind(self.kind, (self.descriptor)()))?;
        // The codec was found by type, so the slot has the right type. A slot of another type is not filled.
        slot.ok_or_else(|| crate::no_codec(self.api_version, self.kind))
    }

    pub(crate) fn encode<K: 'static>(&self, object: &K) -> Vec<u8> {
        let mut writer = Writer::new();
        (self.encode)(object, &mut writer);
        writer.finish()
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codec({} {})", self.api_version, self.kind)
    }
}

/// Decodes a whole message into a slot, if the slot is of its type.
pub(crate) fn decode_into<T: Message + 'static>(r: &mut Reader<'_>, slot: &mut dyn Any) -> Result<()> {
    if let Some(slot) = slot.downcast_mut::<Option<T>>() {
        merge(slot.insert(T::new()), r)?;
    }
    Ok(())
}

/// Decodes the fields of an outermost message.
pub(crate) fn merge<T: Message>(message: &mut T, r: &mut Reader<'_>) -> Result<()> {
    r.each_remaining_field(|number, wire, r| message.merge_field(number, wire, r))
}

/// Encodes a message, if it is of this type.
pub(crate) fn encode_from<T: Message + 'static>(object: &dyn Any, w: &mut Writer) {
    if let Some(object) = object.downcast_ref::<T>() {
        object.write(w);
    }
}

/// Returns whether two texts are equal, at compile time.
pub(crate) const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Defines a static codec per kind, the list of them, and the lookup by a type's constants.
macro_rules! codecs {
    ($($(#[$cfg:meta])? $id:literal $name:ident: $api_version:literal, $kind:literal => $ty:ty;)*) => {
        $($(#[$cfg])? static $name: Codec = Codec {
            api_version: $api_version,
            kind: $kind,
            descriptor: <$ty as crate::runtime::Message>::descriptor,
            type_id: std::any::TypeId::of::<$ty>,
            decode: crate::codec::decode_into::<$ty>,
            encode: crate::codec::encode_from::<$ty>,
        };)*

        pub(crate) static ALL: &[&Codec] = &[$($(#[$cfg])? &$name),*];

        const fn id(api_version: &str, kind: &str) -> u16 {
            $($(#[$cfg])? if same(kind, $kind) && same(api_version, $api_version) { return $id; })*
            0
        }

        // The match is on a constant of the type, so that only one arm is compiled.
        pub(crate) fn of<K: k8s_openapi::Resource>() -> Option<&'static Codec> {
            match const { id(K::API_VERSION, K::KIND) } {
                $($(#[$cfg])? $id => Some(&$name),)*
                _ => None,
            }
        }
    };
}
pub(crate) use codecs;

#[cold]
pub(crate) fn no_codec(api_version: &str, kind: &str) -> DecodeError {
    DecodeError::new(crate::Problem::NoCodec(format!("{api_version} {kind}")), 0)
}
