//! Kinds of `meta.k8s.io/v1`: options, and metadata-only objects.
//!
//! `Status` and `DeleteOptions` are k8s-openapi's. The other options are not in it; they are defined here as on the
//! wire, unchecked. Use `klient-core`'s options in programs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Status};

use crate::{
    DecodeError, Envelope, Problem,
    descriptor::{Descriptor, Field, Type},
    envelope::shorten,
    runtime::{FieldValue as _, Message, Reader, Result, WireType, Writer},
};

/// A kind of `meta.k8s.io/v1` with a protobuf form.
pub trait MetaKind: sealed::Sealed {
    /// The kind's name.
    const KIND: &'static str;
}

mod sealed {
    pub trait Sealed: Sized {
        fn read(message: &[u8]) -> crate::runtime::Result<Self>;
        fn to_message(&self) -> Vec<u8>;
    }
}

/// Encodes a body: an envelope with one of these kinds. Options have the group and version of the request.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
///
/// let options = DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
/// let body = klient_proto::meta::encode("v1", &options);
/// assert_eq!(klient_proto::meta::decode::<DeleteOptions>(&body)?, options);
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
pub fn encode<M: MetaKind>(api_version: &str, value: &M) -> Vec<u8> {
    Envelope::wrap(api_version, M::KIND, &value.to_message())
}

/// Decodes a body of one of these kinds, in any group and version.
///
/// # Errors
///
/// Returns an error if the body is malformed or has another kind.
pub fn decode<M: MetaKind>(body: &[u8]) -> Result<M> {
    let envelope = Envelope::open(body)?;
    if envelope.kind != M::KIND {
        let found = format!("{}, expected {}", shorten(envelope.kind), M::KIND);
        return Err(DecodeError::new(Problem::WrongKind(found), 0));
    }
    M::read(envelope.raw).map_err(|error| error.shifted(envelope.raw_offset))
}

macro_rules! meta_kind {
    ($ty:ty, $kind:literal) => {
        impl MetaKind for $ty {
            const KIND: &'static str = $kind;
        }

        impl sealed::Sealed for $ty {
            fn read(message: &[u8]) -> Result<Self> {
                let mut value = <$ty as Message>::new();
                Reader::new(message)
                    .each_remaining_field(|number, wire, r| value.merge_field(number, wire, r))
                    .map_err(|error| error.of_kind($kind, <$ty as Message>::descriptor()))?;
                Ok(value)
            }

            fn to_message(&self) -> Vec<u8> {
                let mut w = Writer::new();
                self.write(&mut w);
                w.finish()
            }
        }
    };
}

/// Defines a struct as on the wire, with its codec. Fields must be in ascending order of their numbers.
macro_rules! wire_struct {
    ($(#[$doc:meta])* $name:ident = $kind:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty = $number:literal $json:literal $shape:ident $wire:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl Message for $name {
            fn new() -> Self {
                Self::default()
            }

            fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
                match number {
                    $($number => self.$field.read_field(wire, r),)*
                    _ => r.skip(wire),
                }
            }

            fn write(&self, w: &mut Writer) {
                // Ascending here means descending in the bytes; readers accept any order.
                $(self.$field.write_field($number, w);)*
            }

            fn descriptor() -> &'static Descriptor {
                static DESCRIPTOR: Descriptor = Descriptor {
                    name: stringify!($name),
                    fields: &[$(Field::$shape($number, $json, Type::$wire)),*],
                };
                &DESCRIPTOR
            }
        }

        meta_kind!($name, $kind);
    };
}

wire_struct! {
    /// Options of a create, as on the wire.
    CreateOptions = "CreateOptions" {
        /// `All`, or nothing.
        dry_run: Vec<String> = 1 "dryRun" list String,
        /// The field manager.
        field_manager: Option<String> = 3 "fieldManager" one String,
        /// How unknown fields are treated.
        field_validation: Option<String> = 4 "fieldValidation" one String,
    }
}

wire_struct! {
    /// Options of an update, as on the wire.
    UpdateOptions = "UpdateOptions" {
        /// `All`, or nothing.
        dry_run: Vec<String> = 1 "dryRun" list String,
        /// The field manager.
        field_manager: Option<String> = 2 "fieldManager" one String,
        /// How unknown fields are treated.
        field_validation: Option<String> = 3 "fieldValidation" one String,
    }
}

wire_struct! {
    /// Options of a patch, as on the wire.
    PatchOptions = "PatchOptions" {
        /// `All`, or nothing.
        dry_run: Vec<String> = 1 "dryRun" list String,
        /// Whether an apply takes fields over from their owners.
        force: Option<bool> = 2 "force" one Bool,
        /// The field manager.
        field_manager: Option<String> = 3 "fieldManager" one String,
        /// How unknown fields are treated.
        field_validation: Option<String> = 4 "fieldValidation" one String,
    }
}

wire_struct! {
    /// Options of a get, as on the wire.
    GetOptions = "GetOptions" {
        /// The required resource version.
        resource_version: Option<String> = 1 "resourceVersion" one String,
    }
}

wire_struct! {
    /// Options of a list or watch, as on the wire.
    ListOptions = "ListOptions" {
        /// The label selector.
        label_selector: Option<String> = 1 "labelSelector" one String,
        /// The field selector.
        field_selector: Option<String> = 2 "fieldSelector" one String,
        /// Whether to watch.
        watch: Option<bool> = 3 "watch" one Bool,
        /// The required resource version.
        resource_version: Option<String> = 4 "resourceVersion" one String,
        /// The time limit of the server.
        timeout_seconds: Option<i64> = 5 "timeoutSeconds" one Int,
        /// The maximum number of objects per page.
        limit: Option<i64> = 7 "limit" one Int,
        /// The token of the previous page.
        continue_token: Option<String> = 8 "continue" one String,
        /// Whether a watch sends bookmarks.
        allow_watch_bookmarks: Option<bool> = 9 "allowWatchBookmarks" one Bool,
        /// How the resource version is compared.
        resource_version_match: Option<String> = 10 "resourceVersionMatch" one String,
        /// Whether a watch starts with the current state.
        send_initial_events: Option<bool> = 11 "sendInitialEvents" one Bool,
        /// The shard of objects to select.
        shard_selector: Option<String> = 15 "shardSelector" one String,
    }
}

wire_struct! {
    /// Options of a table, as on the wire.
    TableOptions = "TableOptions" {
        /// The part of each object that its row contains.
        include_object: Option<String> = 1 "includeObject" one String,
    }
}

/// A metadata-only object of `meta.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialObjectMetadata {
    /// The metadata.
    pub metadata: ObjectMeta,
}

impl Message for PartialObjectMetadata {
    fn new() -> Self {
        Self::default()
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        if number == 1 { self.metadata.read_field(wire, r) } else { r.skip(wire) }
    }

    fn write(&self, w: &mut Writer) {
        self.metadata.write_field(1, w);
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor {
            name: "PartialObjectMetadata",
            fields: &[Field::one(1, "metadata", Type::Message(ObjectMeta::descriptor))],
        };
        &DESCRIPTOR
    }
}

meta_kind!(PartialObjectMetadata, "PartialObjectMetadata");
meta_kind!(DeleteOptions, "DeleteOptions");
meta_kind!(Status, "Status");
