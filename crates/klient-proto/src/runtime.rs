//! The runtime of the generated codecs: a reader, a writer, and the encoding of each Rust type as a field.
//!
//! Invariants: no input makes this code panic, recurse without limit, or allocate out of proportion to its length.

mod collections;
mod field_set;
mod reader;
mod scalars;
mod schema;
mod special;
mod text;
mod writer;

pub(crate) use collections::{read_string_list, read_string_list_map, write_string_list, write_string_list_map};
pub(crate) use reader::{Reader, WireType};
pub(crate) use scalars::read_unless_zero;
pub(crate) use writer::Writer;

use crate::{descriptor::Descriptor, error::DecodeError};

pub(crate) type Result<T> = std::result::Result<T, DecodeError>;

/// A struct with a protobuf encoding.
pub(crate) trait Message: Sized {
    /// Whether an empty message means absent, as for Go's zero time.
    const EMPTY_IS_ABSENT: bool = false;

    /// Returns the message without any field.
    fn new() -> Self;

    /// Marks the message as present, even if it is empty, for Rust types that distinguish this.
    #[inline]
    fn begin(&mut self) {}

    /// Reads the value of one field. An unknown field is skipped.
    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()>;

    /// Writes all fields, highest number first.
    fn write(&self, w: &mut Writer);

    /// Returns the shape of the message.
    fn descriptor() -> &'static Descriptor;
}

impl<T: Message> Message for Box<T> {
    fn new() -> Self {
        Self::new(T::new())
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        (**self).merge_field(number, wire, r)
    }

    fn write(&self, w: &mut Writer) {
        (**self).write(w);
    }

    fn descriptor() -> &'static Descriptor {
        T::descriptor()
    }
}

/// A Rust type as the value of a field.
pub(crate) trait FieldValue: Sized {
    /// Returns the value before any field is read.
    fn empty() -> Self;

    /// Reads one occurrence of the field.
    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()>;

    /// Writes the field: once, never, or once per item.
    fn write_field(&self, number: u32, w: &mut Writer);
}

impl<T: Message> FieldValue for T {
    fn empty() -> Self {
        T::new()
    }

    fn read_field(&mut self, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        self.begin();
        r.each_field(wire, |number, wire, r| self.merge_field(number, wire, r))
    }

    fn write_field(&self, number: u32, w: &mut Writer) {
        w.message(number, |w| self.write(w));
    }
}

/// Defines the codec of a message without fields, whose Rust type wraps a JSON value.
macro_rules! empty_message {
    ($ty:ty, $name:literal) => {
        impl Message for $ty {
            fn new() -> Self {
                Self(serde_json::Value::Object(serde_json::Map::new()))
            }
            fn begin(&mut self) {
                // A required field of this type is `null` until the message is read.
                *self = Self::new();
            }
            fn merge_field(&mut self, _: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
                r.skip(wire)
            }
            fn write(&self, _: &mut Writer) {}
            fn descriptor() -> &'static Descriptor {
                static DESCRIPTOR: Descriptor = Descriptor { name: $name, fields: &[] };
                &DESCRIPTOR
            }
        }
    };
}
pub(crate) use empty_message;
