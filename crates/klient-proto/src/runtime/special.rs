//! The types that are not plain structs in Rust: times, quantities, numbers or strings, and JSON inside protobuf.

use jiff::Timestamp;
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{FieldsV1, MicroTime, Time},
        runtime::RawExtension,
        util::intstr::IntOrString,
    },
};
use serde_json::Value;

use super::{FieldValue as _, Message, Reader, Result, WireType, Writer, field_set};
use crate::{
    descriptor::{Descriptor, Field, Type},
    envelope::MAGIC,
    error::Problem,
};

static TIMESTAMP: [Field; 2] = [Field::one(1, "seconds", Type::Int), Field::one(2, "nanos", Type::Int)];

/// Sets the seconds or the nanoseconds of a time.
fn merge_timestamp(time: &mut Timestamp, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
    let (mut seconds, mut nanos) = (time.as_second(), time.subsec_nanosecond());
    match number {
        1 => seconds.read_field(wire, r)?,
        2 => nanos.read_field(wire, r)?,
        _ => return r.skip(wire),
    }
    *time = Timestamp::new(seconds, nanos).map_err(|_| r.error(Problem::BadTime))?;
    Ok(())
}

impl Message for Time {
    const EMPTY_IS_ABSENT: bool = true;

    fn new() -> Self {
        Self(Timestamp::UNIX_EPOCH)
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        // Go ignores fractions of a second here, and so does JSON.
        if number == 2 { r.skip(wire) } else { merge_timestamp(&mut self.0, number, wire, r) }
    }

    fn write(&self, w: &mut Writer) {
        0i32.write_field(2, w);
        floor_second(self.0).write_field(1, w);
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor { name: "Time", fields: &TIMESTAMP };
        &DESCRIPTOR
    }
}

impl Message for MicroTime {
    const EMPTY_IS_ABSENT: bool = true;

    fn new() -> Self {
        Self(Timestamp::UNIX_EPOCH)
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        merge_timestamp(&mut self.0, number, wire, r)?;
        // As in Go, microseconds are kept and finer units are dropped, in both directions.
        let finer = self.0.as_nanosecond().rem_euclid(1000);
        self.0 = Timestamp::from_nanosecond(self.0.as_nanosecond() - finer).map_err(|_| r.error(Problem::BadTime))?;
        Ok(())
    }

    fn write(&self, w: &mut Writer) {
        let seconds = floor_second(self.0);
        let nanos = self.0.as_nanosecond() - i128::from(seconds) * 1_000_000_000;
        (i32::try_from(nanos).unwrap_or_default() / 1000 * 1000).write_field(2, w);
        seconds.write_field(1, w);
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor { name: "MicroTime", fields: &TIMESTAMP };
        &DESCRIPTOR
    }
}

/// Returns the seconds, rounded down: protobuf counts nanoseconds upwards from the second, jiff towards zero.
fn floor_second(time: Timestamp) -> i64 {
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

impl Message for Quantity {
    fn new() -> Self {
        Self::default()
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        if number == 1 { self.0.read_field(wire, r) } else { r.skip(wire) }
    }

    fn write(&self, w: &mut Writer) {
        self.0.write_field(1, w);
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor =
            Descriptor { name: "Quantity", fields: &[Field::one(1, "string", Type::String)] };
        &DESCRIPTOR
    }
}

impl Message for IntOrString {
    fn new() -> Self {
        Self::default()
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        // The type comes first and the unused value is empty, so only the used one may set the value.
        match number {
            1 => {
                let is_string = r.int(wire)? == 1;
                if is_string != matches!(self, Self::String(_)) {
                    *self = if is_string { Self::String(String::new()) } else { Self::Int(0) };
                }
                Ok(())
            }
            2 => {
                let mut value = 0;
                value.read_field(wire, r)?;
                if let Self::Int(number) = self {
                    *number = value;
                }
                Ok(())
            }
            3 => {
                let value = r.str(wire)?;
                if let Self::String(text) = self {
                    value.clone_into(text);
                }
                Ok(())
            }
            _ => r.skip(wire),
        }
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Int(value) => {
                value.write_field(2, w);
                0i32.write_field(1, w);
            }
            Self::String(value) => {
                value.write_field(3, w);
                1i32.write_field(1, w);
            }
        }
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor {
            name: "IntOrString",
            fields: &[
                Field::one(1, "type", Type::Int),
                Field::one(2, "intVal", Type::Int),
                Field::one(3, "strVal", Type::String),
            ],
        };
        &DESCRIPTOR
    }
}

/// Parses the JSON bytes of a message; `quick` is tried first.
fn read_json(
    value: &mut Value,
    number: u32,
    wire: WireType,
    r: &mut Reader<'_>,
    quick: impl Fn(&[u8]) -> Option<Value>,
) -> Result<()> {
    if number != 1 {
        return r.skip(wire);
    }
    let bytes = r.bytes(wire)?;
    if bytes.is_empty() {
        return Ok(());
    }
    if bytes.starts_with(MAGIC) {
        return Err(r.error_before(Problem::WrongKind("protobuf, expected JSON".to_owned()), bytes.len()));
    }
    *value = match quick(bytes) {
        Some(read) => read,
        None => serde_json::from_slice(bytes)
            .map_err(|error| r.error_before(Problem::Json(error.to_string()), bytes.len()))?,
    };
    Ok(())
}

fn write_json(value: &Value, w: &mut Writer) {
    if !value.is_null() {
        w.bytes_field(1, value.to_string().as_bytes());
    }
}

macro_rules! json_message {
    ($ty:ty, $name:literal, $quick:expr) => {
        impl Message for $ty {
            fn new() -> Self {
                Self(Value::Null)
            }

            fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
                read_json(&mut self.0, number, wire, r, $quick)
            }

            fn write(&self, w: &mut Writer) {
                write_json(&self.0, w);
            }

            fn descriptor() -> &'static Descriptor {
                static DESCRIPTOR: Descriptor =
                    Descriptor { name: $name, fields: &[Field::one(1, "raw", Type::Bytes)] };
                &DESCRIPTOR
            }
        }
    };
}

json_message!(FieldsV1, "FieldsV1", field_set::read);
json_message!(RawExtension, "RawExtension", |_| None);
json_message!(JSON, "JSON", |_| None);
