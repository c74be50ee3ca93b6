//! Parsing of bodies to JSON values, with an observer of their keys. The last value of a duplicate key wins.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// An observer of the keys of objects, in the order of the text.
pub(super) trait Observer {
    /// The form in which keys are read.
    type Key: for<'de> Deserialize<'de>;

    /// Returns the text of a key.
    fn name(key: &Self::Key) -> &str;

    /// Called before the value of a key is read. `place` includes the key.
    fn before(&self, _place: &Place<'_>, _is_duplicate: bool) {}

    /// Called after the value of a key was read.
    fn after(&self, _key: &Self::Key, _is_duplicate: bool) {}
}

/// The place of a value in the text: a list from the innermost segment to the outermost, so that no path is built before it is needed.
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    segment: Segment<'a>,
}

enum Segment<'a> {
    Name(&'a str),
    Index(usize),
}

/// Parses one value.
pub(super) struct Seed<'a, O> {
    pub(super) observer: &'a O,
    place: Option<&'a Place<'a>>,
}

impl<'a, O> Seed<'a, O> {
    pub(super) fn new(observer: &'a O) -> Self {
        Self { observer, place: None }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.segment {
            Segment::Name(name) if self.parent.is_none() => f.write_str(name),
            Segment::Name(name) => write!(f, ".{name}"),
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl<'de, O: Observer> DeserializeSeed<'de> for Seed<'_, O> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, O: Observer> Visitor<'de> for Seed<'_, O> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON or YAML value")
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
        loop {
            let place = Place { parent: self.place, segment: Segment::Index(list.len()) };
            match items.next_element_seed(Seed { observer: self.observer, place: Some(&place) })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<O::Key>()? {
            let name = O::name(&key);
            let is_duplicate = object.contains_key(name);
            let place = Place { parent: self.place, segment: Segment::Name(name) };
            self.observer.before(&place, is_duplicate);
            let value = entries.next_value_seed(Seed { observer: self.observer, place: Some(&place) })?;
            self.observer.after(&key, is_duplicate);
            object.insert(O::name(&key).to_owned(), value);
        }
        Ok(Value::Object(object))
    }
}
