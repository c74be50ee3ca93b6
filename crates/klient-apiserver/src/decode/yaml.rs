//! YAML with duplicate keys: each is reported with its line, and the last value wins.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

/// Parses YAML. Returns the value, and the messages of Go's parser about duplicate keys.
pub(crate) fn parse(text: &str) -> Result<(Value, Vec<String>), serde_saphyr::Error> {
    let twice = RefCell::new(Vec::new());
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Seed { twice: &twice }.deserialize(deserializer)
    })?;
    Ok((value, twice.into_inner()))
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    twice: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let value = entries.next_value_seed(self)?;
            let line = key.defined.line();
            if object.insert(key.value.clone(), value).is_some() {
                self.twice.borrow_mut().push(format!("line {line}: key {:?} already set in map", key.value));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_reported_with_their_lines() {
        let text = "a: 1\nb:\n  c: x\n  c: z\nl:\n- d: 1\n  d: 2\na: 3\n";
        let (value, twice) = parse(text).unwrap();
        assert_eq!(value, json!({"a": 3, "b": {"c": "z"}, "l": [{"d": 2}]}));
        let line = |number: u32, key: &str| format!("line {number}: key {key:?} already set in map");
        assert_eq!(twice, [line(4, "c"), line(7, "d"), line(8, "a")]);
    }

    #[test]
    fn json_is_yaml_too() {
        let (value, twice) = parse("{\"a\": [1, null, true, 1.5],\n \"a\": {}}").unwrap();
        assert_eq!(value, json!({"a": {}}));
        assert_eq!(twice, ["line 2: key \"a\" already set in map"]);
    }
}
