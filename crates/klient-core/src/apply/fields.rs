//! The fields of a configuration, and the ways to set them.

use std::fmt;

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value};

use super::Configuration;

/// The fields of a configuration, as JSON.
///
/// Configurations are names for it, and their methods set single fields. A value that cannot be serialized is recorded, and
/// the configuration then fails to serialize: nothing is sent without a field that was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    values: Map<String, Value>,
    problem: Option<Problem>,
}

/// A value that cannot be part of a configuration.
#[derive(Clone, Debug, PartialEq)]
struct Problem {
    path: String,
    reason: String,
}

impl Fields {
    /// Creates fields from a JSON object.
    #[must_use]
    pub fn from_map(values: Map<String, Value>) -> Self {
        Self { values, problem: None }
    }

    /// Returns the fields as a JSON object.
    #[must_use]
    pub fn into_map(self) -> Map<String, Value> {
        self.values
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// Sets a field to the JSON form of a value.
    pub fn set_value(&mut self, name: &str, value: &impl Serialize) {
        if let Some(value) = self.checked(name, serde_json::to_value(value)) {
            self.set(name, value);
        }
    }

    /// Sets a field to the field `value` of a wrapper, which has the serde attributes of the original field.
    #[doc(hidden)]
    pub fn set_wrapped(&mut self, name: &str, wrapper: &impl Serialize) {
        if let Some(mut wrapper) = self.checked(name, serde_json::to_value(wrapper)) {
            self.set(name, wrapper["value"].take());
        }
    }

    /// Changes a field that is an object. It is empty if it is not set.
    pub fn object<T: Configuration>(&mut self, name: &str, change: impl FnOnce(T) -> T) {
        let before = self.values.remove(name);
        let after = self.changed(name, before, change);
        self.values.insert(name.to_owned(), after);
    }

    /// Changes the fields of a part whose fields stand among those of this object.
    pub fn flattened<T: Configuration>(&mut self, change: impl FnOnce(T) -> T) {
        *self = change(T::from_fields(std::mem::take(self))).into_fields();
    }

    /// Sets the fields of a value, which stand among those of this object.
    pub fn set_flattened(&mut self, name: &str, value: &impl Serialize) {
        match self.checked(name, serde_json::to_value(value)) {
            Some(Value::Object(fields)) => self.values.extend(fields),
            Some(Value::Null) | None => {}
            Some(_) => self.record(name, "a flattened value must be an object"),
        }
    }

    /// Changes the item of a list that has these values in its key fields. It is added if it is not there.
    pub fn item<T: Configuration, const N: usize>(
        &mut self,
        name: &str,
        key: [(&str, serde_json::Result<Value>); N],
        change: impl FnOnce(T) -> T,
    ) {
        let key: Vec<(&str, Value)> =
            key.into_iter().filter_map(|(field, value)| Some((field, self.checked(name, value)?))).collect();
        let items = self.list(name);
        let at = position(items, &key).unwrap_or_else(|| {
            items.push(Value::Null);
            items.len() - 1
        });
        let before = match items[at].take() {
            Value::Null => key.iter().map(|(field, value)| ((*field).to_owned(), value.clone())).collect(),
            item => item,
        };
        let mut after = self.changed(name, Some(before), change);
        // A method for the key field cannot change the identity of the item.
        key.into_iter().for_each(|(field, value)| after[field] = value);
        self.list(name)[at] = after;
    }

    /// Adds whole items to a list that is merged by key. An item with the same key is replaced.
    pub fn put_items(&mut self, name: &str, keys: &[&str], items: impl IntoIterator<Item = impl Serialize>) {
        for item in items {
            let Some(item) = self.checked(name, serde_json::to_value(item)) else { continue };
            if let Some(missing) = keys.iter().find(|key| item.get(**key).is_none_or(Value::is_null)) {
                self.record(name, &format!("an item has no {missing}, which is a merge key of the list"));
                continue;
            }
            let key: Vec<(&str, Value)> = keys.iter().map(|key| (*key, item[*key].clone())).collect();
            let items = self.list(name);
            match position(items, &key) {
                Some(at) => items[at] = item,
                None => items.push(item),
            }
        }
    }

    /// Sets all items of a list.
    pub fn set_list(&mut self, name: &str, items: impl IntoIterator<Item = impl Serialize>) {
        let items: serde_json::Result<Vec<Value>> = items.into_iter().map(serde_json::to_value).collect();
        if let Some(items) = self.checked(name, items) {
            self.set(name, items);
        }
    }

    /// Adds values to a list that is a set.
    pub fn extend_set(&mut self, name: &str, values: impl IntoIterator<Item = impl Serialize>) {
        for value in values {
            let Some(value) = self.checked(name, serde_json::to_value(value)) else { continue };
            let items = self.list(name);
            if !items.contains(&value) {
                items.push(value);
            }
        }
    }

    /// Changes the entry of a map with this key. It is empty if it is not set.
    pub fn entry<T: Configuration>(&mut self, name: &str, key: &impl Serialize, change: impl FnOnce(T) -> T) {
        let Some(key) = self.checked(name, entries_of([(key, ())])).and_then(|key| key.keys().next().cloned()) else {
            return;
        };
        let mut map = match self.values.remove(name) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let before = map.remove(&key);
        let after = self.changed(&format!("{name}.{key}"), before, change);
        map.insert(key, after);
        self.set(name, map);
    }

    /// Adds entries to a map.
    pub fn extend_map(&mut self, name: &str, entries: impl IntoIterator<Item = (impl Serialize, impl Serialize)>) {
        let Some(entries) = self.checked(name, entries_of(entries)) else { return };
        match self.values.get_mut(name) {
            Some(Value::Object(map)) => map.extend(entries),
            _ => self.set(name, entries),
        }
    }

    /// Sets all entries of a map.
    pub fn set_map(&mut self, name: &str, entries: impl IntoIterator<Item = (impl Serialize, impl Serialize)>) {
        if let Some(entries) = self.checked(name, entries_of(entries)) {
            self.set(name, entries);
        }
    }

    /// Adds entries of a map that stand among the fields of this object.
    pub fn extend(&mut self, name: &str, entries: impl IntoIterator<Item = (impl Serialize, impl Serialize)>) {
        if let Some(entries) = self.checked(name, entries_of(entries)) {
            self.values.extend(entries);
        }
    }

    /// Returns a value after a change of its fields, whose problem becomes one of this object.
    fn changed<T: Configuration>(&mut self, name: &str, before: Option<Value>, change: impl FnOnce(T) -> T) -> Value {
        let before = match before {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let after = change(T::from_fields(Self::from_map(before))).into_fields();
        if let Some(Problem { path, reason }) = after.problem {
            self.record(&format!("{name}.{path}"), &reason);
        }
        Value::Object(after.values)
    }

    fn checked<T>(&mut self, name: &str, value: serde_json::Result<T>) -> Option<T> {
        value.map_err(|error| self.record(name, &error.to_string())).ok()
    }

    /// Records a problem. The first one is reported.
    fn record(&mut self, path: &str, reason: &str) {
        self.problem.get_or_insert_with(|| Problem { path: path.to_owned(), reason: reason.to_owned() });
    }

    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        let list = self.values.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if !list.is_array() {
            *list = Value::Array(Vec::new());
        }
        match list {
            Value::Array(items) => items,
            _ => unreachable!("it was made a list just now"),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.problem {
            Some(problem) => Err(S::Error::custom(problem)),
            None => self.values.serialize(serializer),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot set {} in a configuration: {}", self.path, self.reason)
    }
}

fn position(items: &[Value], key: &[(&str, Value)]) -> Option<usize> {
    items.iter().position(|item| key.iter().all(|(field, value)| item.get(*field) == Some(value)))
}

/// Returns entries as a JSON object. serde_json turns keys that are numbers, booleans and unit variants into text.
fn entries_of(
    entries: impl IntoIterator<Item = (impl Serialize, impl Serialize)>,
) -> serde_json::Result<Map<String, Value>> {
    let map = serde_json::value::Serializer.collect_map(entries)?;
    match map {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Clone, Serialize)]
    struct Part(Fields);

    impl Configuration for Part {
        fn from_fields(fields: Fields) -> Self {
            Self(fields)
        }

        fn into_fields(self) -> Fields {
            self.0
        }
    }

    fn set(name: &'static str, value: impl Serialize) -> impl FnOnce(Part) -> Part {
        move |mut part| {
            part.0.set_value(name, &value);
            part
        }
    }

    #[test]
    fn parts_are_changed_and_not_replaced() {
        let mut fields = Fields::default();
        fields.object("a", set("x", 1));
        fields.object("a", set("y", 2));
        fields.flattened(set("z", 3));
        fields.entry("m", &7, set("x", 1));
        fields.entry("m", &7, set("y", 2));
        fields.extend_map("n", [("k", 1)]);
        fields.extend_map("n", [("l", 2)]);
        fields.extend_set("s", ["b", "a"]);
        fields.extend_set("s", ["a", "c"]);
        fields.set_list("l", [1]);
        fields.set_list("l", [2]);
        let expected = json!({"a": {"x": 1, "y": 2}, "z": 3, "m": {"7": {"x": 1, "y": 2}}, "n": {"k": 1, "l": 2},
            "s": ["b", "a", "c"], "l": [2]});
        assert_eq!(serde_json::to_value(&fields).unwrap(), expected);
    }

    #[test]
    fn items_have_their_keys() {
        let mut fields = Fields::default();
        let key = |port: i32| [("port", Ok(json!(port))), ("protocol", Ok(json!("TCP")))];
        fields.item("ports", key(80), set("name", "http"));
        fields.item("ports", key(81), set("port", 90));
        fields.item("ports", key(80), set("node", 3));
        fields.put_items(
            "conditions",
            &["type"],
            [json!({"type": "A", "x": 1}), json!({"type": "B"}), json!({"type": "A"})],
        );
        let ports =
            json!([{"port": 80, "protocol": "TCP", "name": "http", "node": 3}, {"port": 81, "protocol": "TCP"}]);
        let expected = json!({"ports": ports, "conditions": [{"type": "A"}, {"type": "B"}]});
        assert_eq!(serde_json::to_value(&fields).unwrap(), expected);
    }

    #[test]
    fn configuration_with_an_unwritable_value_is_refused() {
        let unwritable = BTreeMap::from([(Some([1]), 1)]);
        let mut fields = Fields::default();
        fields.object("spec", |part: Part| {
            let mut fields = part.into_fields();
            fields.entry("zones", &"a", set("sizes", unwritable));
            Part(fields)
        });
        let error = serde_json::to_value(&fields).unwrap_err().to_string();
        assert_eq!(error, "cannot set spec.zones.a.sizes in a configuration: key must be a string");
        let mut fields = Fields::default();
        fields.put_items("conditions", &["type"], [json!({"status": "True"})]);
        let error = serde_json::to_value(&fields).unwrap_err().to_string();
        let expected =
            "cannot set conditions in a configuration: an item has no type, which is a merge key of the list";
        assert_eq!(error, expected);
    }
}
