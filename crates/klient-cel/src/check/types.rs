//! Types of values.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use crate::escape;

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Any type.
    Dyn,
    /// A boolean.
    Bool,
    /// A signed number.
    Int,
    /// An unsigned number.
    UInt,
    /// A number with a fraction.
    Double,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A duration.
    Duration,
    /// The value `null`.
    Null,
    /// A list.
    List(Box<Type>),
    /// A map from texts.
    Map(Box<Type>),
    /// An object with the fields of a schema.
    Object(Arc<Value>),
    /// A value that may be absent.
    Optional(Box<Type>),
    /// A type of which only the name is known.
    Named(String),
}

impl Type {
    /// Returns the type of the values of a structural schema.
    #[must_use]
    pub fn of_schema(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::Dyn;
        }
        match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("boolean"), _) => Self::Bool,
            (Some("integer"), _) => Self::Int,
            (Some("number"), _) => Self::Double,
            (Some("string"), Some("date-time" | "date")) => Self::Timestamp,
            (Some("string"), Some("duration")) => Self::Duration,
            (Some("string"), Some("byte")) => Self::Bytes,
            (Some("string"), _) => Self::String,
            (Some("array"), _) => Self::List(Box::new(Self::of_schema(&schema["items"]))),
            (Some("object"), _) if schema["additionalProperties"].is_object() => {
                Self::Map(Box::new(Self::of_schema(&schema["additionalProperties"])))
            }
            (Some("object"), _) if schema["x-kubernetes-embedded-resource"] == true => {
                Self::Object(Arc::new(with_metadata(schema)))
            }
            (Some("object"), _) => Self::Object(Arc::new(schema.clone())),
            _ => Self::Dyn,
        }
    }

    /// Returns the type of the root of a custom resource, which shows its kind and name as well.
    #[must_use]
    pub fn of_root(schema: &Value) -> Self {
        Self::Object(Arc::new(with_metadata(schema)))
    }

    /// Returns whether a value of this type fits where another type is expected.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) | (Self::Named(_), _) | (_, Self::Named(_)) => true,
            (Self::List(one), Self::List(other))
            | (Self::Map(one), Self::Map(other))
            | (Self::Optional(one), Self::Optional(other)) => one.fits(other),
            // A value may be absent, and is compared with null then.
            (Self::Null, other) | (other, Self::Null) => {
                !matches!(other, Self::Bool | Self::Int | Self::Double | Self::String)
            }
            (Self::Object(_), Self::Object(_)) => true,
            (one, other) => one == other,
        }
    }
}

/// Returns the type of a field, or `None` if there is none.
pub(super) fn field(schema: &Value, name: &str) -> Option<Type> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let found = properties
        .into_iter()
        .find(|(field, _)| escape(field) == name || *field == name && !ALWAYS_RESERVED.contains(&name));
    // A field of any type cannot be declared.
    let is_typed = |schema: &Value| schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true;
    let is_list_of_any = |schema: &Value| schema["type"] == "array" && !is_typed(&schema["items"]);
    let is_map_of_any =
        |schema: &Value| schema["additionalProperties"].is_object() && !is_typed(&schema["additionalProperties"]);
    let declared = found.filter(|(_, schema)| is_typed(schema) && !is_list_of_any(schema) && !is_map_of_any(schema));
    declared.map(|(_, schema)| Type::of_schema(schema))
}

/// Returns the schema of a resource with the fields that each resource has.
#[must_use]
pub fn with_metadata(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["x-klient-with-metadata"] = json!(true);
    let text = || json!({"type": "string"});
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    for name in ["apiVersion", "kind"] {
        if properties.get(name).is_none() {
            properties[name] = text();
        }
    }
    if !properties["metadata"]["properties"].is_object() {
        properties["metadata"] = json!({"type": "object", "properties": {}});
    }
    for name in ["name", "generateName"] {
        if properties["metadata"]["properties"].get(name).is_none() {
            properties["metadata"]["properties"][name] = text();
        }
    }
    schema
}

/// The words that are never names.
const ALWAYS_RESERVED: &[&str] = &["true", "false", "null", "in"];

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::UInt => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Self::Duration => f.write_str("google.protobuf.Duration"),
            Self::Null => f.write_str("null"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(value) => write!(f, "map(string, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::Named(name) => f.write_str(name),
        }
    }
}
