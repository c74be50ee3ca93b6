//! The order of keys in a JSON text, which parsed values do not have.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns the keys of one or several JSON values in their order, such as `{kind,metadata{name}}`, or nothing if the text is not JSON.
pub fn layout(text: &[u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut layouts = Vec::new();
    loop {
        layouts.push(Node { sorts: false }.deserialize(&mut deserializer).ok()?);
        if deserializer.end().is_ok() {
            return Some(layouts.join("\n"));
        }
    }
}

struct Node {
    /// Whether the items of a list are sorted.
    sorts: bool,
}

impl<'de> DeserializeSeed<'de> for Node {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_i64<E>(self, _: i64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_u64<E>(self, _: u64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_f64<E>(self, _: f64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_str<E>(self, _: &str) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Node { sorts: false })? {
            list.push(item);
        }
        list.retain(|item| !item.is_empty());
        if self.sorts {
            list.sort();
        }
        Ok(if list.is_empty() { String::new() } else { format!("[{}]", list.join(";")) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<String, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            // The order of managers depends on times, and that of causes on chance.
            let inner = if key == "causes" {
                entries.next_value::<IgnoredAny>()?;
                String::new()
            } else {
                entries.next_value_seed(Node { sorts: key == "managedFields" })?
            };
            keys.push(format!("{key}{inner}"));
        }
        Ok(format!("{{{}}}", keys.join(",")))
    }
}
