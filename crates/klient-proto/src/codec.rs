//! The table of kinds: which have a protobuf form, and how a generic function finds its kind's without any bound.
//!
//! A codec is found by the kind's constants at compile time, so an optimised binary links only the codecs of kinds that
//! it names. The type itself is checked before use: a type of yours that merely calls itself `v1` `Pod` has no codec.

use std::any::{Any, TypeId};

use crate::{
    descriptor::Descriptor,
    error::DecodeError,
    generated,
    runtime::{Message, Reader, Result, Writer},
};

/// The protobuf form of one kind, with its Rust type erased.
pub struct Codec {
    /// The kind's `apiVersion`, as `apps/v1`.
    pub api_version: &'static str,
    /// The kind's name, as `Deployment`.
    pub kind: &'static str,
    /// The fields of the kind's message.
    pub descriptor: fn() -> &'static Descriptor,
    pub(crate) type_id: fn() -> TypeId,
    /// Reads into an `Option` of the type.
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
        // The codec was found by type, so the slot was its own; anything else is not decoded at all.
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

/// Reads a whole message into a slot, if the slot is of its type.
pub(crate) fn decode_into<T: Message + 'static>(r: &mut Reader<'_>, slot: &mut dyn Any) -> Result<()> {
    if let Some(slot) = slot.downcast_mut::<Option<T>>() {
        merge(slot.insert(T::new()), r)?;
    }
    Ok(())
}

/// Reads the fields of an outermost message.
pub(crate) fn merge<T: Message>(message: &mut T, r: &mut Reader<'_>) -> Result<()> {
    r.each_remaining_field(|number, wire, r| message.merge_field(number, wire, r))
}

/// Writes a message, if it is of this type.
pub(crate) fn encode_from<T: Message + 'static>(object: &dyn Any, w: &mut Writer) {
    if let Some(object) = object.downcast_ref::<T>() {
        object.write(w);
    }
}

/// Returns whether two texts are the same, at compile time.
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

        // The match is on a constant of the type, so that only one arm is left when this is compiled for it.
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
