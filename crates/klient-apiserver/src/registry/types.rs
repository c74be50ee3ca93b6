//! The types of built-in kinds: their fields, the types of fields, and how lists are merged.

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor},
};
use serde_json::Value;

/// All types, by name.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Types {
    by_name: HashMap<String, TypeDef>,
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
    /// The names of fields that are present even if they are empty.
    #[serde(skip)]
    always: OnceLock<Vec<String>>,
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
#[derive(Debug, Default)]
pub(crate) struct MergeRule {
    /// The type of the list: `atomic`, `set` or `map`.
    pub(crate) list: Option<String>,
    /// The fields that identify an item of a list of type `map`.
    pub(crate) keys: Vec<String>,
    /// The type of the map: `atomic` or `granular`.
    pub(crate) map: Option<String>,
    /// The value that identifies items without this field.
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

impl TypeDef {
    /// Returns the fields that are present even if they are empty.
    pub(crate) fn always(&self) -> impl Iterator<Item = (&str, &Field)> {
        let always = |(name, field): (&String, &Field)| field.always.then(|| name.clone());
        let names = self.always.get_or_init(|| self.fields.iter().filter_map(always).collect());
        names.iter().filter_map(|name| Some((name.as_str(), self.fields.get(name)?)))
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
        struct Seen;

        impl<'de> Visitor<'de> for Seen {
            type Value = Field;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a field")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Field, E> {
                Shape::deserialize(name.into_deserializer()).map(Field::from)
            }

            /// Reads a shape, or a field with rules: the latter has its shape as `is`. Keys are sorted, so that `is` comes before `list`
            /// and `map`, which are rules after it.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
                let mut shape = None;
                let mut field = Field::from(Shape::Any);
                let mut rule = MergeRule::default();
                while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
                    match (&*key, &shape) {
                        ("ref", None) => shape = Some(Shape::Ref(map.next_value()?)),
                        ("list", None) => shape = Some(Shape::List(map.next_value()?)),
                        ("map", None) => shape = Some(Shape::Map(map.next_value()?)),
                        ("is", None) => shape = Some(map.next_value()?),
                        ("always", _) => field.always = map.next_value()?,
                        ("mergeKey", _) => field.merge_key = Some(map.next_value()?),
                        ("strategy", _) => field.strategy = Some(map.next_value()?),
                        ("default", _) => rule.default = Some(map.next_value()?),
                        ("keys", _) => rule.keys = map.next_value()?,
                        ("list", _) => rule.list = Some(map.next_value()?),
                        ("map", _) => rule.map = Some(map.next_value()?),
                        (other, _) => return Err(A::Error::custom(format!("no field has {other:?}"))),
                    }
                }
                field.shape = shape.ok_or_else(|| A::Error::custom("a field has no shape"))?;
                let has_rule = rule.list.is_some() || rule.map.is_some() || rule.default.is_some();
                field.merge = has_rule.then(|| Box::new(rule));
                Ok(field)
            }
        }

        deserializer.deserialize_any(Seen)
    }
}

impl From<Shape> for Field {
    fn from(shape: Shape) -> Self {
        Self { shape, merge_key: None, strategy: None, always: false, merge: None }
    }
}
