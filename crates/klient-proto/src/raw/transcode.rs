//! Conversion of protobuf to JSON values by descriptor, without the Rust type, with the same result as Go's JSON
//! encoder.

use std::borrow::Cow;

use k8s_openapi::{
    ByteString,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray,
    },
    apimachinery::pkg::{
        apis::meta::v1::{MicroTime, Time},
        util::intstr::IntOrString,
    },
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    field::{Found, Wire},
    json,
};
use crate::{
    DecodeError, Problem,
    descriptor::{Descriptor, Field, Shape, Type},
    runtime::{FieldValue, Message, Reader, Result, WireType},
};

/// Converts a whole message.
pub(super) fn to_value(message: &[u8], descriptor: &'static Descriptor) -> Result<Value> {
    let mut object = Map::new();
    Reader::new(message)
        .each_remaining_field(|number, wire, r| merge_field(&mut object, descriptor.fields, number, wire, r))
        .map_err(|error| error.of_kind(descriptor.name, descriptor))?;
    Ok(Value::Object(object))
}

/// Converts the result of a path.
pub(super) fn found_to_value(found: &Found<'_>) -> Result<Option<Value>> {
    match found {
        Found::Json(text) => json::parse(text).map(Some),
        Found::Repeated { field, message } => {
            let mut object = Map::new();
            Reader::new(message).each_remaining_field(|number, wire, r| {
                if number == field.number {
                    merge_field(&mut object, std::slice::from_ref(*field), number, wire, r)
                } else {
                    r.skip(wire)
                }
            })?;
            Ok(object.remove(field.name))
        }
        Found::One { value, zero_is_absent: true, .. } if value.is_zero() => Ok(None),
        Found::One { ty, value, .. } => match value {
            Wire::Int(value) if matches!(ty, Type::Bool | Type::Int) => Ok(Some(int_value(*ty, *value))),
            Wire::Double(value) if matches!(ty, Type::Double) => Ok(Some(Value::from(*value))),
            Wire::Int(_) | Wire::Double(_) => Err(DecodeError::new(Problem::WrongWireType, 0)),
            Wire::Bytes(bytes) => {
                // The value is written as a separate field, so that one function reads all types.
                let mut w = crate::runtime::Writer::new();
                w.bytes_field(1, bytes);
                let framed = w.finish();
                let mut reader = Reader::new(&framed);
                match reader.next_field()? {
                    Some((_, wire)) => value_of(*ty, wire, &mut reader),
                    None => Ok(None),
                }
            }
        },
    }
}

/// Converts the result of a path to the text of a scalar.
pub(super) fn found_to_text<'a>(found: &Found<'a>) -> Result<Option<Cow<'a, str>>> {
    match found {
        Found::Json(text) => Ok(json::scalar_text(text)),
        Found::One { value, zero_is_absent: true, .. } if value.is_zero() => Ok(None),
        Found::One { ty: Type::String, value: Wire::Bytes(bytes), .. } => {
            let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::new(Problem::NotUtf8, 0))?;
            Ok(Some(Cow::Borrowed(text)))
        }
        Found::One { .. } => Ok(found_to_value(found)?.and_then(|value| match value {
            Value::String(text) => Some(Cow::Owned(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Bool(value) => Some(Cow::Borrowed(if value { "true" } else { "false" })),
            _ => None,
        })),
        Found::Repeated { .. } => Ok(None),
    }
}

fn merge_field(
    object: &mut Map<String, Value>,
    fields: &'static [Field],
    number: u32,
    wire: WireType,
    r: &mut Reader<'_>,
) -> Result<()> {
    let Some(field) = fields.iter().find(|field| field.number == number) else { return r.skip(wire) };
    match (field.shape, field.ty) {
        (_, Type::Embedded(inner)) => {
            r.each_field(wire, |number, wire, r| merge_field(object, inner, number, wire, r))?;
        }
        (Shape::One, ty) => {
            let value = value_of(ty, wire, r)?.filter(|value| !(field.zero_is_absent && is_zero(value)));
            match value {
                Some(value) => drop(object.insert(field.name.to_owned(), value)),
                None => drop(object.remove(field.name)),
            }
        }
        (Shape::List, ty) => {
            r.charge(size_of::<Value>())?;
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = list else { return r.skip(wire) };
            if wire == WireType::Bytes && matches!(ty, Type::Int | Type::Bool) {
                let mut packed = Vec::<i64>::new();
                packed.read_field(wire, r)?;
                items.extend(packed.into_iter().map(|value| int_value(ty, value.cast_unsigned())));
            } else {
                items.push(value_of(ty, wire, r)?.unwrap_or_default());
            }
        }
        (Shape::Map, ty) => {
            let (mut key, mut value) = (String::new(), None);
            r.each_field(wire, |number, wire, r| {
                match number {
                    1 => key.read_field(wire, r)?,
                    2 => value = value_of(ty, wire, r)?,
                    _ => r.skip(wire)?,
                }
                Ok(())
            })?;
            r.charge(size_of::<(String, Value)>())?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value.unwrap_or_else(|| absent_map_value(ty)));
            }
        }
    }
    Ok(())
}

/// Returns the default of a map entry without a value.
fn absent_map_value(ty: Type) -> Value {
    match ty {
        Type::String | Type::Bytes => Value::from(""),
        Type::StringList => Value::Array(Vec::new()),
        Type::Message(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(value) => !value,
        _ => false,
    }
}

fn int_value(ty: Type, value: u64) -> Value {
    if matches!(ty, Type::Bool) { Value::Bool(value != 0) } else { Value::from(value.cast_signed()) }
}

/// Converts one value of a type; `None` if it means absent, such as the zero time.
fn value_of(ty: Type, wire: WireType, r: &mut Reader<'_>) -> Result<Option<Value>> {
    Ok(Some(match ty {
        Type::String => Value::from(r.str(wire)?),
        Type::Bytes => typed::<ByteString>(wire, r)?,
        Type::Bool | Type::Int => int_value(ty, r.int(wire)?),
        Type::Double => Value::from(r.double(wire)?),
        Type::Time => return optional::<Time>(wire, r),
        Type::MicroTime => return optional::<MicroTime>(wire, r),
        Type::Quantity => typed::<k8s_openapi::apimachinery::pkg::api::resource::Quantity>(wire, r)?,
        Type::IntOrString => typed::<IntOrString>(wire, r)?,
        Type::Json => typed::<k8s_openapi::apimachinery::pkg::runtime::RawExtension>(wire, r)?,
        Type::StringList => {
            let mut list = Vec::new();
            crate::runtime::read_string_list(&mut list, wire, r)?;
            Value::from(list)
        }
        Type::SchemaOrArray => return either(JSONSchemaPropsOrArray::descriptor(), wire, r),
        Type::SchemaOrBool => return either(JSONSchemaPropsOrBool::descriptor(), wire, r),
        Type::SchemaOrStrings => return either(JSONSchemaPropsOrStringArray::descriptor(), wire, r),
        Type::Message(descriptor) => message(descriptor().fields, wire, r)?.into(),
        Type::Embedded(fields) => message(fields, wire, r)?.into(),
    }))
}

fn message(fields: &'static [Field], wire: WireType, r: &mut Reader<'_>) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    r.each_field(wire, |number, wire, r| merge_field(&mut object, fields, number, wire, r))?;
    Ok(object)
}

/// Converts one of the either-or types of schemas: the alternative that is set.
fn either(descriptor: &'static Descriptor, wire: WireType, r: &mut Reader<'_>) -> Result<Option<Value>> {
    let mut object = message(descriptor.fields, wire, r)?;
    let alternatives = ["schema", "schemas", "strings", "allows"];
    Ok(alternatives.iter().find_map(|name| object.remove(*name)))
}

fn typed<T: FieldValue + Serialize>(wire: WireType, r: &mut Reader<'_>) -> Result<Value> {
    let mut value = T::empty();
    value.read_field(wire, r)?;
    Ok(serde_json::to_value(value).unwrap_or_default())
}

fn optional<T: Message + Serialize>(wire: WireType, r: &mut Reader<'_>) -> Result<Option<Value>> {
    let mut value: Option<T> = None;
    value.read_field(wire, r)?;
    Ok(value.and_then(|value| serde_json::to_value(value).ok()))
}
