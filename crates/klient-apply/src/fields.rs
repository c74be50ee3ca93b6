//! The fields of a configuration.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::Configuration;

/// The fields of a configuration, as JSON.
///
/// The types of this crate are names for it. Their methods set single fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Fields(pub(crate) Map<String, Value>);

impl Fields {
    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Changes a field that is an object. It is empty if it is not set.
    pub(crate) fn object<T: Configuration>(&mut self, name: &str, change: impl FnOnce(T) -> T) {
        let before = match self.0.remove(name) {
            Some(Value::Object(fields)) => Self(fields),
            _ => Self::default(),
        };
        self.0.insert(name.to_owned(), Value::Object(change(T::from_fields(before)).into_fields().0));
    }

    /// Changes the item of a list that has these values in its key fields. It is added if it is not there.
    pub(crate) fn item<T: Configuration>(&mut self, name: &str, key: &[(&str, Value)], change: impl FnOnce(T) -> T) {
        let items = self.list(name);
        let has_key = |item: &Value| key.iter().all(|(field, value)| item.get(*field) == Some(value));
        let at = items.iter().position(has_key).unwrap_or_else(|| {
            items.push(key.iter().map(|(field, value)| ((*field).to_owned(), value.clone())).collect());
            items.len() - 1
        });
        let before = match items[at].take() {
            Value::Object(fields) => Self(fields),
            _ => Self::default(),
        };
        let mut after = change(T::from_fields(before)).into_fields();
        // A method for the key field cannot change the identity of the item.
        key.iter().for_each(|(field, value)| after.set(field, value.clone()));
        items[at] = Value::Object(after.0);
    }

    /// Adds values to a list that is a set.
    pub(crate) fn extend_set(&mut self, name: &str, values: impl Iterator<Item = Value>) {
        let items = self.list(name);
        for value in values {
            if !items.contains(&value) {
                items.push(value);
            }
        }
    }

    /// Adds entries to a map.
    pub(crate) fn extend_map(&mut self, name: &str, entries: impl Iterator<Item = (String, Value)>) {
        let map = self.0.entry(name).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(map) = map {
            map.extend(entries);
        }
    }

    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        let list = self.0.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if !list.is_array() {
            *list = Value::Array(Vec::new());
        }
        match list {
            Value::Array(items) => items,
            _ => unreachable!("it was made a list just now"),
        }
    }
}
