//! The either-or types of CRD schemas, which protobuf encodes as messages with one field per alternative.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray,
};

use super::{FieldValue as _, Message, Reader, Result, WireType, Writer};
use crate::descriptor::{Descriptor, Field, Type};

const SCHEMA: Type = Type::Message(JSONSchemaProps::descriptor);

/// Reads a schema into a box, so that the recursion does not keep whole schemas on the stack.
fn read_schema(wire: WireType, r: &mut Reader<'_>) -> Result<Box<JSONSchemaProps>> {
    let mut schema = Box::<JSONSchemaProps>::default();
    schema.read_field(wire, r)?;
    Ok(schema)
}

impl Message for JSONSchemaPropsOrArray {
    fn new() -> Self {
        Self::Schemas(Vec::new())
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        match (number, &mut *self) {
            (1, _) => *self = Self::Schema(read_schema(wire, r)?),
            (2, Self::Schemas(schemas)) => schemas.read_field(wire, r)?,
            (2, Self::Schema(_)) => {
                let mut schemas = Vec::new();
                schemas.read_field(wire, r)?;
                *self = Self::Schemas(schemas);
            }
            _ => r.skip(wire)?,
        }
        Ok(())
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Schema(schema) => schema.write_field(1, w),
            Self::Schemas(schemas) => schemas.write_field(2, w),
        }
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor {
            name: "JSONSchemaPropsOrArray",
            fields: &[Field::one(1, "schema", SCHEMA), Field::list(2, "schemas", SCHEMA)],
        };
        &DESCRIPTOR
    }
}

impl Message for JSONSchemaPropsOrBool {
    fn new() -> Self {
        Self::Bool(false)
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        match number {
            1 => {
                let mut allows = false;
                allows.read_field(wire, r)?;
                // Go writes `allows` beside a schema, too; the schema takes precedence.
                if let Self::Bool(value) = self {
                    *value = allows;
                }
            }
            2 => *self = Self::Schema(read_schema(wire, r)?),
            _ => r.skip(wire)?,
        }
        Ok(())
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Schema(schema) => {
                schema.write_field(2, w);
                true.write_field(1, w);
            }
            Self::Bool(allows) => allows.write_field(1, w),
        }
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor {
            name: "JSONSchemaPropsOrBool",
            fields: &[Field::one(1, "allows", Type::Bool), Field::one(2, "schema", SCHEMA)],
        };
        &DESCRIPTOR
    }
}

impl Message for JSONSchemaPropsOrStringArray {
    fn new() -> Self {
        Self::Strings(Vec::new())
    }

    fn merge_field(&mut self, number: u32, wire: WireType, r: &mut Reader<'_>) -> Result<()> {
        match (number, &mut *self) {
            (1, _) => *self = Self::Schema(read_schema(wire, r)?),
            (2, Self::Strings(strings)) => strings.read_field(wire, r)?,
            (2, Self::Schema(_)) => {
                let mut strings = Vec::new();
                strings.read_field(wire, r)?;
                *self = Self::Strings(strings);
            }
            _ => r.skip(wire)?,
        }
        Ok(())
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Schema(schema) => schema.write_field(1, w),
            Self::Strings(strings) => strings.write_field(2, w),
        }
    }

    fn descriptor() -> &'static Descriptor {
        static DESCRIPTOR: Descriptor = Descriptor {
            name: "JSONSchemaPropsOrStringArray",
            fields: &[Field::one(1, "schema", SCHEMA), Field::list(2, "strings", Type::String)],
        };
        &DESCRIPTOR
    }
}
