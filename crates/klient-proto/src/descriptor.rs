//! The structure of messages as data: field numbers, JSON names and types.
//!
//! The typed codecs do not use it. It is for operations without a Rust type: reading a field path, conversion to JSON,
//! and errors that name the field.

/// The fields of one message.
#[derive(Debug)]
pub struct Descriptor {
    /// The message's name, such as `PodSpec`.
    pub name: &'static str,
    /// The fields in ascending order of their numbers.
    pub fields: &'static [Field],
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// The protobuf field number.
    pub number: u32,
    /// The JSON name; empty for an embedded message, whose fields are in the outer JSON object.
    pub name: &'static str,
    /// The type of the value, or of each item or map value.
    pub ty: Type,
    /// Whether the field is single, a list or a map.
    pub shape: Shape,
    /// Whether JSON omits this field when it is zero, although protobuf contains it.
    pub zero_is_absent: bool,
}

/// The cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// At most once.
    One,
    /// Any number of times, in order.
    List,
    /// By a string key.
    Map,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Type {
    /// A string.
    String,
    /// Bytes; base64 in JSON.
    Bytes,
    /// `true` or `false`.
    Bool,
    /// A signed integer of 32 or 64 bits.
    Int,
    /// A floating point number.
    Double,
    /// A time with seconds; RFC 3339 in JSON.
    Time,
    /// A time with microseconds; RFC 3339 in JSON.
    MicroTime,
    /// A quantity; text in JSON.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// A message that wraps JSON bytes.
    Json,
    /// A message that wraps a list of strings; a plain list in JSON.
    StringList,
    /// A schema, or a list of them.
    SchemaOrArray,
    /// A schema, or `true` or `false`.
    SchemaOrBool,
    /// A schema, or a list of strings.
    SchemaOrStrings,
    /// Another message.
    Message(fn() -> &'static Descriptor),
    /// A message whose fields belong to the outer JSON object.
    Embedded(&'static [Field]),
}

impl Type {
    /// Returns the fields of a message type.
    pub fn fields(&self) -> Option<&'static [Field]> {
        match self {
            Self::Message(descriptor) => Some(descriptor().fields),
            Self::Embedded(fields) => Some(fields),
            _ => None,
        }
    }
}

impl Field {
    pub(crate) const fn one(number: u32, name: &'static str, ty: Type) -> Self {
        Self { number, name, ty, shape: Shape::One, zero_is_absent: false }
    }

    pub(crate) const fn unless_zero(number: u32, name: &'static str, ty: Type) -> Self {
        Self { number, name, ty, shape: Shape::One, zero_is_absent: true }
    }

    pub(crate) const fn list(number: u32, name: &'static str, ty: Type) -> Self {
        Self { number, name, ty, shape: Shape::List, zero_is_absent: false }
    }

    pub(crate) const fn map(number: u32, name: &'static str, ty: Type) -> Self {
        Self { number, name, ty, shape: Shape::Map, zero_is_absent: false }
    }

    pub(crate) const fn embedded(number: u32, fields: &'static [Field]) -> Self {
        Self { number, name: "", ty: Type::Embedded(fields), shape: Shape::One, zero_is_absent: false }
    }
}
