//! The types of built-in kinds: their fields, the types of fields, and how lists are merged.

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// All types, by name.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Types {
    by_name: BTreeMap<String, TypeDef>,
}

/// A type: an object with fields, or a name for a shape.
#[derive(Deserialize)]
pub(crate) struct TypeDef {
    /// The fields. Empty for a type that is not an object.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, Field>,
    /// Fields that Go always writes.
    #[serde(default)]
    pub(crate) required: Vec<String>,
    /// The shape of a type that is not an object with fields.
    #[serde(default)]
    pub(crate) is: Option<Shape>,
    /// Whether server-side apply replaces values as a whole.
    #[serde(default)]
    pub(crate) atomic: bool,
    /// Group, version and kind of an API object.
    #[serde(default)]
    pub(crate) kind: Option<(String, String, String)>,
}

/// A field of a type.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) shape: Shape,
    /// The field that identifies the items of a list in a strategic merge patch.
    pub(crate) merge_key: Option<String>,
    /// The patch strategy: `merge`, `replace`, `retainKeys`, or several of them.
    pub(crate) strategy: Option<String>,
    /// Whether the field is present even if it is empty.
    pub(crate) always: bool,
    /// How server-side apply merges the field.
    pub(crate) merge: Option<Box<MergeRule>>,
}

/// How server-side apply merges a field, where it does not follow from its type.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MergeRule {
    /// The type of the list: `atomic`, `set` or `map`.
    #[serde(default)]
    pub(crate) list: Option<String>,
    /// The fields that identify an item of a list of type `map`.
    #[serde(default)]
    pub(crate) keys: Vec<String>,
    /// The type of the map: `atomic` or `granular`.
    #[serde(default)]
    pub(crate) map: Option<String>,
    /// The value that identifies items without this field.
    #[serde(default)]
    pub(crate) default: Option<Value>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Int32,
    Int64,
    Number,
    Bool,
    Bytes,
    Time,
    Quantity,
    IntOrText,
    /// Any value.
    Any,
    /// An object with any fields.
    Object,
    Ref(String),
    List(Box<Shape>),
    Map(Box<Shape>),
}

impl Types {
    /// Returns all types with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &TypeDef)> {
        self.by_name.iter().map(|(name, def)| (name.as_str(), def))
    }

    /// Returns a type by name.
    pub(crate) fn get(&self, name: &str) -> Option<&TypeDef> {
        self.by_name.get(name)
    }

    /// Returns the type of a kind.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&TypeDef> {
        let is_it = |def: &&TypeDef| {
            def.kind
                .as_ref()
                .is_some_and(|known| (known.0.as_str(), known.1.as_str(), known.2.as_str()) == (group, version, kind))
        };
        self.by_name.values().find(is_it)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;

        impl<'de> Visitor<'de> for Seen {
            type Value = Shape;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a shape")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Shape, E> {
                Ok(match name {
                    "string" => Shape::Text,
                    "int32" => Shape::Int32,
                    "int64" | "integer" => Shape::Int64,
                    "number" => Shape::Number,
                    "boolean" => Shape::Bool,
                    "byte" => Shape::Bytes,
                    "date-time" => Shape::Time,
                    "quantity" => Shape::Quantity,
                    "int-or-string" => Shape::IntOrText,
                    "any" => Shape::Any,
                    "object" => Shape::Object,
                    other => return Err(E::custom(format!("no shape is called {other:?}"))),
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
                let shape = match map.next_key::<String>()?.as_deref() {
                    Some("ref") => Shape::Ref(map.next_value()?),
                    Some("list") => Shape::List(Box::new(map.next_value()?)),
                    Some("map") => Shape::Map(Box::new(map.next_value()?)),
                    other => return Err(A::Error::custom(format!("no shape has {other:?}"))),
                };
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(shape)
            }
        }

        deserializer.deserialize_any(Seen)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Long {
            is: Shape,
            merge_key: Option<String>,
            strategy: Option<String>,
            #[serde(default)]
            always: bool,
            #[serde(flatten)]
            merge: MergeRule,
        }
        let value = Value::deserialize(deserializer)?;
        if value.get("is").is_none() {
            let shape = serde_json::from_value(value).map_err(D::Error::custom)?;
            return Ok(Self { shape, merge_key: None, strategy: None, always: false, merge: None });
        }
        let Long { is, merge_key, strategy, always, merge } =
            serde_json::from_value(value).map_err(D::Error::custom)?;
        let has_rule = merge.list.is_some() || merge.map.is_some() || merge.default.is_some();
        Ok(Self { shape: is, merge_key, strategy, always, merge: has_rule.then(|| Box::new(merge)) })
    }
}
