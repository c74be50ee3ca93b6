//! `fieldsV1` as text.
//!
//! Inside of the server, the value of `fieldsV1` is a string that contains its JSON, because most writes only pass it on. It is larger than
//! most objects, and as a tree of maps it was half of the work of a write. Only requests and responses have it as an object: what is read
//! from them comes through here, and `order` and `klient_proto` write it as it is.

use std::fmt;

use klient_core::fields::FieldSet;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

/// Replaces the field sets of an object by their text, in canonical order. Those that are texts stay.
pub(crate) fn fold(object: &mut Value) {
    for fields in field_sets(object).filter(|fields| !fields.is_string()) {
        let text = match FieldSet::from_value(fields) {
            Ok(set) => set.to_string(),
            // The write that brings it fails or drops it.
            Err(_) => fields.to_string(),
        };
        *fields = Value::String(text);
    }
}

/// Returns an object as clients see it.
pub(crate) fn unfolded(object: &Value) -> Value {
    let mut object = object.clone();
    unfold(&mut object);
    object
}

/// Replaces the texts of field sets by objects.
fn unfold(object: &mut Value) {
    for fields in field_sets(object) {
        if let Value::String(text) = fields {
            *fields = serde_json::from_str(text).unwrap_or_default();
        }
    }
}

fn field_sets(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let entries = metadata.and_then(|metadata| metadata.get_mut("managedFields")).and_then(Value::as_array_mut);
    entries.into_iter().flatten().filter_map(|entry| entry.as_object_mut()?.get_mut("fieldsV1"))
}

/// Parses the JSON of a stored object.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Part::Object.deserialize(&mut deserializer)
}

/// The parts of an object on the way to its field sets. All others are read as they are.
#[derive(Clone, Copy)]
enum Part {
    Object,
    Metadata,
    Entries,
    Entry,
}

impl Part {
    /// Reads the value of a field of this part.
    fn field<'de, A: MapAccess<'de>>(self, name: &str, fields: &mut A) -> Result<Value, A::Error> {
        match (self, name) {
            (Self::Object, "metadata") => fields.next_value_seed(Self::Metadata),
            (Self::Metadata, "managedFields") => fields.next_value_seed(Self::Entries),
            (Self::Entry, "fieldsV1") => Ok(Value::from(fields.next_value::<&RawValue>()?.get())),
            _ => fields.next_value(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Self::Entries => deserializer.deserialize_seq(self),
            _ => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stored object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = items.next_element_seed(Self::Entry)? {
            entries.push(entry);
        }
        Ok(Value::Array(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = self.field(&name, &mut fields)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_sets_are_texts_inside_and_objects_outside() {
        let text = br#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"k:{\"p\":80}":{},"k:{\"p\":443}":{}}},"manager":"m"},{}],"name":"a"},"x":1}"#;
        let outside: Value = serde_json::from_slice(text).unwrap();
        let inside = parse(text).unwrap();
        let fields = r#"{"f:a":{"k:{\"p\":80}":{},"k:{\"p\":443}":{}}}"#;
        assert_eq!(inside["metadata"]["managedFields"], json!([{"fieldsV1": fields, "manager": "m"}, {}]));
        let mut folded = outside.clone();
        fold(&mut folded);
        assert_eq!(folded, inside);
        unfold(&mut folded);
        assert_eq!(folded, outside);
        assert_eq!(crate::order::to_vec(&inside), text);
    }

    #[test]
    fn objects_without_entries_stay_as_they_are() {
        for object in [json!({}), json!({"metadata": null}), json!({"metadata": {"managedFields": null}}), json!(1)] {
            let mut folded = object.clone();
            fold(&mut folded);
            assert_eq!(folded, object);
        }
    }
}
