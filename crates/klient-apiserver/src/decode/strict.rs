//! A JSON parser that reports duplicate fields. The last value wins.

use std::cell::RefCell;

use serde::de::DeserializeSeed as _;
use serde_json::Value;

use super::value::{Observer, Place, Seed};

/// Parses JSON. Returns the value, and the paths of duplicate fields.
pub(crate) fn parse(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let duplicates = Duplicates::default();
    let value = observe(text, &duplicates)?;
    Ok((value, duplicates.paths.into_inner()))
}

/// Sorts problems by their position in the text.
pub(crate) fn sort(text: &[u8], problems: &mut [String]) {
    let order = Order::default();
    if observe(text, &order).is_err() {
        return;
    }
    let order = order.paths.into_inner();
    problems.sort_by_cached_key(|problem| {
        let path = problem.split('"').nth(1).unwrap_or_default();
        // A duplicate is reported at its second position.
        let nth = usize::from(problem.starts_with("duplicate"));
        order.iter().enumerate().filter(|(_, known)| *known == path).nth(nth).map(|(at, _)| at)
    });
}

fn observe(text: &[u8], observer: &impl Observer) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Seed::new(observer).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The paths of duplicate fields.
#[derive(Default)]
struct Duplicates {
    paths: RefCell<Vec<String>>,
}

/// All paths in the order of the text.
#[derive(Default)]
struct Order {
    paths: RefCell<Vec<String>>,
}

impl Observer for Duplicates {
    type Key = String;

    fn name(key: &String) -> &str {
        key
    }

    fn before(&self, place: &Place<'_>, is_duplicate: bool) {
        if is_duplicate {
            self.paths.borrow_mut().push(place.to_string());
        }
    }
}

impl Observer for Order {
    type Key = String;

    fn name(key: &String) -> &str {
        key
    }

    fn before(&self, place: &Place<'_>, _is_duplicate: bool) {
        self.paths.borrow_mut().push(place.to_string());
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
