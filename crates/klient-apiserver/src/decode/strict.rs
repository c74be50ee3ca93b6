//! A JSON parser that reports duplicate fields. The last value wins.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses JSON. Returns the value, and the paths of duplicate fields.
pub(crate) fn parse(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let twice = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Seed { path: String::new(), twice: &twice, order: None }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, twice.into_inner()))
}

/// Sorts problems by their position in the text.
pub(crate) fn sort(text: &[u8], problems: &mut [String]) {
    let order = RefCell::new(Vec::new());
    let twice = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Seed { path: String::new(), twice: &twice, order: Some(&order) };
    if seed.deserialize(&mut deserializer).is_err() {
        return;
    }
    let order = order.into_inner();
    problems.sort_by_cached_key(|problem| {
        let path = problem.split('"').nth(1).unwrap_or_default();
        // A duplicate is reported at its second position.
        let nth = usize::from(problem.starts_with("duplicate"));
        order.iter().enumerate().filter(|(_, known)| *known == path).nth(nth).map(|(at, _)| at)
    });
}

struct Seed<'a> {
    path: String,
    twice: &'a RefCell<Vec<String>>,
    /// All paths in the order of the text, if they are needed for sorting.
    order: Option<&'a RefCell<Vec<String>>>,
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
        f.write_str("a JSON value")
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Seed { path, twice: self.twice, order: self.order })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if let Some(order) = self.order {
                order.borrow_mut().push(path.clone());
            }
            if object.contains_key(&key) {
                self.twice.borrow_mut().push(path.clone());
            }
            let value = entries.next_value_seed(Seed { path, twice: self.twice, order: self.order })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_duplicate_wins_and_both_are_reported() {
        let (value, twice) = parse(br#"{"a": 1, "b": {"c": 1, "c": 2}, "l": [{"x": 1, "x": 2}], "a": 3}"#).unwrap();
        assert_eq!(value, json!({"a": 3, "b": {"c": 2}, "l": [{"x": 2}]}));
        assert_eq!(twice, ["b.c", "l[0].x", "a"]);
    }

    #[test]
    fn parser_limits_depth_and_checks_trailing_data() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"{} {}").is_err());
    }
}
