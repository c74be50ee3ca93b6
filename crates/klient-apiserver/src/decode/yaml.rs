//! YAML with duplicate keys: each is reported with its line, and the last value wins.

use std::cell::RefCell;

use serde::de::DeserializeSeed as _;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::value::{Observer, Seed};

/// Parses YAML. Returns the value, and the messages of Go's parser about duplicate keys.
pub(crate) fn parse(text: &str) -> Result<(Value, Vec<String>), serde_saphyr::Error> {
    let duplicates = Duplicates::default();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Seed::new(&duplicates).deserialize(deserializer)
    })?;
    Ok((value, duplicates.messages.into_inner()))
}

/// The messages about duplicate keys, each of which follows those about its value.
#[derive(Default)]
struct Duplicates {
    messages: RefCell<Vec<String>>,
}

impl Observer for Duplicates {
    type Key = Spanned<String>;

    fn name(key: &Spanned<String>) -> &str {
        &key.value
    }

    fn after(&self, key: &Spanned<String>, is_duplicate: bool) {
        if is_duplicate {
            let line = key.defined.line();
            self.messages.borrow_mut().push(format!("line {line}: key {:?} already set in map", key.value));
        }
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
