//! Reads a field path from the bytes of an object, in either format.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use klient_core::{FieldPath, PathSegment};

use crate::{
    descriptor::{Descriptor, Field, Shape, Type},
    json::{Elements, Members},
    runtime::{Message as _, Reader, Result, WireType},
};

/// Returns the JSON text at a path.
pub(super) fn json_at<'a>(text: &'a [u8], path: &FieldPath) -> Result<Option<&'a [u8]>> {
    json_steps(text, path.segments())
}

fn json_steps<'a>(mut text: &'a [u8], segments: &[PathSegment]) -> Result<Option<&'a [u8]>> {
    for segment in segments {
        let found = match (segment, text.first()) {
            (PathSegment::Field(name), Some(b'{')) => Members::of(text).find(name)?,
            (PathSegment::Index(index), Some(b'[')) => nth_element(text, *index)?,
            _ => None,
        };
        match found {
            Some(value) if value != b"null" => text = value,
            _ => return Ok(None),
        }
    }
    Ok(Some(text))
}

fn nth_element(text: &[u8], index: usize) -> Result<Option<&[u8]>> {
    let mut elements = Elements::of(text);
    for _ in 0..index {
        if elements.next()?.is_none() {
            return Ok(None);
        }
    }
    elements.next()
}

/// The result of a path in a protobuf message.
pub(super) enum Found<'a> {
    /// One value: its type, and the field's value on the wire.
    One { ty: Type, value: Wire<'a>, zero_is_absent: bool },
    /// A whole list or map, and the message that contains it.
    Repeated { field: &'static Field, message: &'a [u8] },
    /// JSON text inside protobuf.
    Json(&'a [u8]),
}

/// A field's value on the wire.
#[derive(Clone, Copy)]
pub(super) enum Wire<'a> {
    Int(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub(super) fn read(wire: WireType, r: &mut Reader<'a>) -> Result<Option<Self>> {
        Ok(Some(match wire {
            WireType::Varint => Self::Int(r.int(wire)?),
            WireType::Fixed64 => Self::Double(r.double(wire)?),
            WireType::Bytes => Self::Bytes(r.bytes(wire)?),
            _ => {
                r.skip(wire)?;
                return Ok(None);
            }
        }))
    }

    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::Int(value) => value == 0,
            Self::Double(value) => value == 0.0,
            Self::Bytes(value) => value.is_empty(),
        }
    }
}

/// Returns the value at a path.
pub(super) fn protobuf_at<'a>(
    message: &'a [u8],
    descriptor: &'static Descriptor,
    path: &FieldPath,
) -> Result<Option<Found<'a>>> {
    let (mut message, mut fields) = (message, descriptor.fields);
    let mut segments = path.segments();
    while let Some((PathSegment::Field(name), rest)) = segments.split_first() {
        segments = rest;
        let Some((field, holder)) = locate(message, fields, name)? else { return Ok(None) };
        let value = match (field.shape, segments.split_first()) {
            (Shape::One, _) => nth(holder, field.number, None)?,
            (_, None) => {
                let any = nth(holder, field.number, Some(0))?.is_some();
                return Ok(any.then_some(Found::Repeated { field, message: holder }));
            }
            (Shape::List, Some((PathSegment::Index(index), rest))) => {
                segments = rest;
                nth(holder, field.number, Some(*index))?
            }
            (Shape::Map, Some((PathSegment::Field(key), rest))) => {
                segments = rest;
                entry(holder, field.number, key)?
            }
            _ => None,
        };
        let Some(value) = value else { return Ok(None) };
        if segments.is_empty() {
            return Ok(Some(Found::One { ty: field.ty, value, zero_is_absent: field.zero_is_absent }));
        }
        match inside(field.ty, value, segments)? {
            Some(Inside::Message { message: inner, fields: inner_fields, segments: rest }) => {
                (message, fields, segments) = (inner, inner_fields, rest);
            }
            Some(Inside::Found(found)) => return Ok(Some(found)),
            None => return Ok(None),
        }
    }
    Ok(None)
}

const SCHEMA: Type = Type::Message(JSONSchemaProps::descriptor);

enum Inside<'a, 's> {
    Message { message: &'a [u8], fields: &'static [Field], segments: &'s [PathSegment] },
    Found(Found<'a>),
}

/// Enters a value that is not the end of the path.
fn inside<'a, 's>(ty: Type, value: Wire<'a>, segments: &'s [PathSegment]) -> Result<Option<Inside<'a, 's>>> {
    let Wire::Bytes(bytes) = value else { return Ok(None) };
    let schema = |number: u32, index: Option<usize>, segments: &'s [PathSegment]| -> Result<Option<Inside<'a, 's>>> {
        let Some(value @ Wire::Bytes(message)) = nth(bytes, number, index)? else { return Ok(None) };
        Ok(Some(match segments {
            [] => Inside::Found(Found::One { ty: SCHEMA, value, zero_is_absent: false }),
            _ => Inside::Message { message, fields: JSONSchemaProps::descriptor().fields, segments },
        }))
    };
    let text = |number: u32, index: usize| {
        let value = nth(bytes, number, Some(index))?;
        Ok(value.map(|value| Inside::Found(Found::One { ty: Type::String, value, zero_is_absent: false })))
    };
    match (ty, segments) {
        (Type::Message(descriptor), _) => {
            Ok(Some(Inside::Message { message: bytes, fields: descriptor().fields, segments }))
        }
        (Type::Json, _) => {
            let Some(Wire::Bytes(text)) = nth(bytes, 1, None)? else { return Ok(None) };
            Ok(json_steps(text.trim_ascii(), segments)?.map(|text| Inside::Found(Found::Json(text))))
        }
        (Type::StringList, [PathSegment::Index(index)]) => text(1, *index),
        (Type::SchemaOrStrings, [PathSegment::Index(index)]) => text(2, *index),
        (Type::SchemaOrArray, [PathSegment::Index(index), rest @ ..]) => schema(2, Some(*index), rest),
        (Type::SchemaOrArray | Type::SchemaOrStrings, _) => schema(1, None, segments),
        (Type::SchemaOrBool, _) => schema(2, None, segments),
        _ => Ok(None),
    }
}

/// Returns the field with this JSON name, and the message that contains it: this one, or one embedded in it.
fn locate<'a>(message: &'a [u8], fields: &'static [Field], name: &str) -> Result<Option<(&'static Field, &'a [u8])>> {
    for field in fields {
        match field.ty {
            Type::Embedded(inner) if contains(inner, name) => {
                return match nth(message, field.number, None)? {
                    Some(Wire::Bytes(embedded)) => locate(embedded, inner, name),
                    _ => Ok(None),
                };
            }
            _ if field.name == name => return Ok(Some((field, message))),
            _ => {}
        }
    }
    Ok(None)
}

fn contains(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| match field.ty {
        Type::Embedded(inner) => contains(inner, name),
        _ => field.name == name,
    })
}

/// Returns the occurrence of a field with this index, or the last one.
fn nth<'a>(message: &'a [u8], number: u32, index: Option<usize>) -> Result<Option<Wire<'a>>> {
    let mut reader = Reader::new(message);
    let mut last = None;
    let mut seen = 0;
    while let Some((found, wire)) = reader.next_field()? {
        if found != number {
            reader.skip(wire)?;
            continue;
        }
        last = Wire::read(wire, &mut reader)?;
        if index == Some(seen) {
            return Ok(last);
        }
        seen += 1;
    }
    Ok(if index.is_none() { last } else { None })
}

/// Returns the value of the last map entry with this key.
fn entry<'a>(message: &'a [u8], number: u32, key: &str) -> Result<Option<Wire<'a>>> {
    let mut reader = Reader::new(message);
    let mut last = None;
    while let Some((found, wire)) = reader.next_field()? {
        if found != number {
            reader.skip(wire)?;
            continue;
        }
        let entry = reader.bytes(wire)?;
        let Some(Wire::Bytes(found_key)) = nth(entry, 1, None)? else { continue };
        if found_key == key.as_bytes() {
            last = Some(nth(entry, 2, None)?.unwrap_or(Wire::Bytes(b"")));
        }
    }
    Ok(last)
}
