//! Conversion of JSON values to protobuf by descriptor, without the Rust type: the reverse of `RawObject::to_value`.
//!
//! It is for servers, which have objects of every kind, but not their types.

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, Time},
        runtime::RawExtension,
        util::intstr::IntOrString,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    Codec, DecodeError, Problem,
    descriptor::{Descriptor, Field, Shape, Type},
    runtime::{FieldValue, Result, Writer},
};

/// Converts a JSON object to a protobuf message. Unknown fields are left out. A `fieldsV1` in the object's own
/// metadata that is a string is taken for its JSON text.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient_proto::{Codec, ManagedFields};
///
/// let codec = Codec::of::<Pod>().unwrap();
/// let message = klient_proto::from_value(&serde_json::json!({"metadata": {"name": "web"}}), codec)?;
/// let pod: Pod = klient_proto::decode(&message, ManagedFields::Keep)?;
/// assert_eq!(pod.metadata.name.as_deref(), Some("web"));
/// # Ok::<(), klient_proto::DecodeError>(())
/// ```
///
/// # Errors
///
/// Returns an error that names the field if a value is not of its field's type.
pub fn from_value(object: &Value, codec: &Codec) -> std::result::Result<Vec<u8>, DecodeError> {
    from_value_by(object, (codec.descriptor)())
}

/// Converts a JSON object to the message of a descriptor, such as metadata.
///
/// # Errors
///
/// Returns the errors of [`from_value`].
pub fn from_value_by(object: &Value, descriptor: &'static Descriptor) -> std::result::Result<Vec<u8>, DecodeError> {
    let mut w = Writer::with_capacity(SMALL_OBJECT);
    let written = match object {
        Value::Object(object) => write_fields(object, descriptor.fields, &mut w, 0),
        _ => Err(unfit("an object")),
    };
    written.map_err(|error| error.of_kind(descriptor.name, descriptor))?;
    Ok(w.finish())
}

/// Writes fields in descending order, because the writer fills its buffer from the back.
fn write_fields(object: &Map<String, Value>, fields: &'static [Field], w: &mut Writer, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::new(Problem::TooDeep, 0));
    }
    for field in fields.iter().rev() {
        if let Type::Embedded(inner) = field.ty {
            message(field.number, w, |w| write_fields(object, inner, w, depth + 1))?;
            continue;
        }
        let Some(value) = object.get(field.name).filter(|value| !value.is_null()) else { continue };
        write_field(value, field, w, depth).map_err(|error| error.within(field.number))?;
    }
    Ok(())
}

fn write_field(value: &Value, field: &'static Field, w: &mut Writer, depth: u32) -> Result<()> {
    let (number, ty) = (field.number, field.ty);
    if let (Type::Json, Value::String(text), "fieldsV1", ROOT_ENTRY) = (ty, value, field.name, depth) {
        message(number, w, |w| {
            w.bytes_field(1, text.as_bytes());
            Ok(())
        })?;
        return Ok(());
    }
    match field.shape {
        Shape::One => write_value(value, ty, number, w, depth),
        Shape::List => {
            let items = value.as_array().ok_or_else(|| unfit("a list"))?;
            for (index, item) in items.iter().enumerate().rev() {
                write_value(item, ty, number, w, depth).map_err(|error| error.at_index(index))?;
            }
            Ok(())
        }
        Shape::Map => {
            let entries = value.as_object().ok_or_else(|| unfit("an object"))?;
            for (key, value) in entries.iter().rev() {
                message(number, w, |w| {
                    if !value.is_null() {
                        write_value(value, ty, 2, w, depth)?;
                    }
                    w.bytes_field(1, key.as_bytes());
                    Ok(())
                })?;
            }
            Ok(())
        }
    }
}

fn write_value(value: &Value, ty: Type, number: u32, w: &mut Writer, depth: u32) -> Result<()> {
    match ty {
        Type::String => w.bytes_field(number, value.as_str().ok_or_else(|| unfit("a string"))?.as_bytes()),
        Type::Bool => w.int_field(number, u64::from(value.as_bool().ok_or_else(|| unfit("true or false"))?)),
        Type::Int => {
            let integral = value.as_i64().or_else(|| whole(value.as_f64()?));
            w.int_field(number, integral.ok_or_else(|| unfit("a whole number"))?.cast_unsigned());
        }
        Type::Double => w.double_field(number, value.as_f64().ok_or_else(|| unfit("a number"))?),
        Type::Bytes => typed::<ByteString>(value, number, w)?,
        Type::Time => typed::<Time>(value, number, w)?,
        Type::MicroTime => typed::<MicroTime>(value, number, w)?,
        Type::Quantity => match value {
            // A number is a quantity, too; the typed form is always a string.
            Value::Number(amount) => Quantity(amount.to_string()).write_field(number, w),
            _ => typed::<Quantity>(value, number, w)?,
        },
        Type::IntOrString => typed::<IntOrString>(value, number, w)?,
        Type::Json => RawExtension(value.clone()).write_field(number, w),
        Type::StringList => message(number, w, |w| write_texts(value, w))?,
        Type::SchemaOrArray => message(number, w, |w| match value {
            Value::Array(_) => write_list(value, 2, w, depth),
            _ => write_schema(value, 1, w, depth),
        })?,
        Type::SchemaOrBool => message(number, w, |w| match value {
            Value::Bool(allows) => {
                w.int_field(1, u64::from(*allows));
                Ok(())
            }
            _ => {
                write_schema(value, 2, w, depth)?;
                w.int_field(1, 1);
                Ok(())
            }
        })?,
        Type::SchemaOrStrings => message(number, w, |w| match value {
            Value::Array(items) => {
                for item in items.iter().rev() {
                    w.bytes_field(2, item.as_str().ok_or_else(|| unfit("a string"))?.as_bytes());
                }
                Ok(())
            }
            _ => write_schema(value, 1, w, depth),
        })?,
        Type::Message(descriptor) => {
            let object = value.as_object().ok_or_else(|| unfit("an object"))?;
            message(number, w, |w| write_fields(object, descriptor().fields, w, depth + 1))?;
        }
        Type::Embedded(fields) => {
            let object = value.as_object().ok_or_else(|| unfit("an object"))?;
            message(number, w, |w| write_fields(object, fields, w, depth + 1))?;
        }
    }
    Ok(())
}

fn write_schema(value: &Value, number: u32, w: &mut Writer, depth: u32) -> Result<()> {
    write_value(value, Type::Message(schema), number, w, depth)
}

fn schema() -> &'static Descriptor {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
    <JSONSchemaProps as crate::runtime::Message>::descriptor()
}

fn write_list(value: &Value, number: u32, w: &mut Writer, depth: u32) -> Result<()> {
    for item in value.as_array().into_iter().flatten().rev() {
        write_schema(item, number, w, depth)?;
    }
    Ok(())
}

fn write_texts(value: &Value, w: &mut Writer) -> Result<()> {
    for item in value.as_array().ok_or_else(|| unfit("a list"))?.iter().rev() {
        w.bytes_field(1, item.as_str().ok_or_else(|| unfit("a string"))?.as_bytes());
    }
    Ok(())
}

/// Writes a nested message. If writing fails, the buffer is discarded.
fn message(number: u32, w: &mut Writer, write: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
    let mut outcome = Ok(());
    w.message(number, |w| outcome = write(w));
    outcome
}

fn typed<T: FieldValue + DeserializeOwned>(value: &Value, number: u32, w: &mut Writer) -> Result<()> {
    let parsed: T =
        serde_json::from_value(value.clone()).map_err(|error| DecodeError::new(Problem::Json(error.to_string()), 0))?;
    parsed.write_field(number, w);
    Ok(())
}

/// Converts a whole number that JSON writes with a point or an exponent, such as `1.0` or `1e3`.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn whole(number: f64) -> Option<i64> {
    let in_range = number.fract() == 0.0 && number.abs() < 9.0e15;
    in_range.then_some(number as i64)
}

fn unfit(expected: &str) -> DecodeError {
    DecodeError::new(Problem::Json(format!("expected {expected}")), 0)
}

/// The size of most objects.
const SMALL_OBJECT: usize = 2048;
/// The depth of the managed fields in the metadata of the object itself.
const ROOT_ENTRY: u32 = 2;
/// Deeper than any object that the decoders accept.
const MAX_DEPTH: u32 = 100;

/// Builds the message of a list of any kind, from its metadata as JSON and the messages of its items.
///
/// # Errors
///
/// Returns an error if the metadata is not that of a list.
pub fn list_message(metadata: &Value, items: &[impl AsRef<[u8]>]) -> std::result::Result<Vec<u8>, DecodeError> {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
    let metadata = from_value_by(metadata, <ListMeta as crate::runtime::Message>::descriptor())?;
    let mut w = Writer::new();
    for item in items.iter().rev() {
        w.bytes_field(2, item.as_ref());
    }
    w.bytes_field(1, &metadata);
    Ok(w.finish())
}
