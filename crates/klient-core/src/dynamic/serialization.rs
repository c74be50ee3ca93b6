//! Serialization of a [`DynamicObject`] in one pass, without holding the object twice.
//!
//! `ObjectMeta` itself lists its fields (serde passes the list to the deserializer), so that unknown fields are
//! separated for any Kubernetes version of the types.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
    ser::{Error, SerializeMap},
};
use serde_json::{Map, Value};

use crate::{DynamicObject, TypeMeta};

impl<'de> Deserialize<'de> for DynamicObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = DynamicObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DynamicObject, A::Error> {
        let mut types = TypeMeta::default();
        let mut metadata = ObjectMeta::default();
        let mut unknown_metadata = Map::new();
        let mut data = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "apiVersion" => types.api_version = map.next_value::<Option<String>>()?.unwrap_or_default(),
                "kind" => types.kind = map.next_value::<Option<String>>()?.unwrap_or_default(),
                "metadata" => {
                    // The last of duplicate keys wins, as in Kubernetes.
                    unknown_metadata.clear();
                    metadata = map.next_value_seed(MetadataSeed { unknown: &mut unknown_metadata })?;
                }
                _ => drop(data.insert(key, map.next_value()?)),
            }
        }
        let types = (types != TypeMeta::default()).then_some(types);
        Ok(DynamicObject { types, metadata, data: Value::Object(data), unknown_metadata })
    }
}

/// A seed that reads metadata, or `null` for none, and collects the fields that `ObjectMeta` does not have.
struct MetadataSeed<'a> {
    unknown: &'a mut Map<String, Value>,
}

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_> {
    type Value = ObjectMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ObjectMeta, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = ObjectMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object metadata")
    }

    fn visit_none<E>(self) -> Result<ObjectMeta, E> {
        Ok(ObjectMeta::default())
    }

    fn visit_unit<E>(self) -> Result<ObjectMeta, E> {
        Ok(ObjectMeta::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ObjectMeta, D::Error> {
        ObjectMeta::deserialize(KnownFields { inner: deserializer, unknown: self.unknown })
    }
}

/// A deserializer that shows a struct only the fields it knows.
struct KnownFields<'a, D> {
    inner: D,
    unknown: &'a mut Map<String, Value>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KnownFields<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(KnownFieldsVisitor { visitor, fields, unknown: self.unknown })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct KnownFieldsVisitor<'a, V> {
    visitor: V,
    fields: &'static [&'static str],
    unknown: &'a mut Map<String, Value>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KnownFieldsVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(KnownFieldsAccess { inner: map, fields: self.fields, unknown: self.unknown })
    }
}

struct KnownFieldsAccess<'a, A> {
    inner: A,
    fields: &'static [&'static str],
    unknown: &'a mut Map<String, Value>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownFieldsAccess<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(Key(key)) = self.inner.next_key()? {
            if self.fields.contains(&&*key) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.unknown.insert(key.into_owned(), self.inner.next_value()?);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A key that is borrowed if possible.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Serialize for DynamicObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let types = self.types.as_ref().map_or([("apiVersion", ""), ("kind", "")], |types| {
            [("apiVersion", types.api_version.as_str()), ("kind", types.kind.as_str())]
        });
        for (name, text) in types.into_iter().filter(|(_, text)| !text.is_empty()) {
            map.serialize_entry(name, text)?;
        }
        if !self.unknown_metadata.is_empty() || self.metadata != ObjectMeta::default() {
            map.serialize_entry("metadata", &self.whole_metadata())?;
        }
        match &self.data {
            Value::Null => {}
            Value::Object(data) => {
                let data = data.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
                for (name, value) in data {
                    map.serialize_entry(name, value)?;
                }
            }
            _ => return Err(S::Error::custom("data of a dynamic object must be a JSON object")),
        }
        map.end()
    }
}

impl DynamicObject {
    /// Returns the metadata, with the fields that `ObjectMeta` does not have.
    pub(super) fn whole_metadata(&self) -> WholeMetadata<'_> {
        WholeMetadata { known: &self.metadata, unknown: &self.unknown_metadata }
    }
}

#[derive(Serialize)]
pub(super) struct WholeMetadata<'a> {
    #[serde(flatten)]
    known: &'a ObjectMeta,
    #[serde(flatten)]
    unknown: &'a Map<String, Value>,
}
