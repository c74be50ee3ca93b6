//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;

use klient_core::Quoted;
use klient_core::fields::{FieldSet, ManagedSet, Managers};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The managers of an object, and the time of the last write of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Managed {
    /// The fields of each manager, by identifier.
    pub(super) sets: Managers,
    /// The times of entries, by identifier. Entries that were never written by the manager itself have none.
    pub(super) times: BTreeMap<String, String>,
}

/// The identity of an entry. Its JSON is the identifier of a manager.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Identity {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) manager: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) operation: String,
    /// The version of an update. Applied entries are the same in all versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) subresource: String,
}

impl Identity {
    /// Returns the identity of a manager's updates.
    pub(super) fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: UPDATE.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Returns the identity of a manager's applied configurations.
    pub(super) fn apply(manager: &str, subresource: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: APPLY.to_owned(),
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    /// Returns the identifier.
    pub(super) fn identifier(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the identity with this identifier.
    pub(super) fn of(identifier: &str) -> Self {
        serde_json::from_str(identifier).unwrap_or_default()
    }
}

impl Managed {
    /// Reads entries.
    ///
    /// # Errors
    ///
    /// Returns the real server's reason if an entry is incomplete or its fields cannot be parsed.
    pub(super) fn decode(entries: &Value) -> Result<Self, String> {
        let mut managed = Self::default();
        for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let (operation, version) = (text("operation"), text("apiVersion"));
            if operation != APPLY && operation != UPDATE {
                return Err("operation must be `Apply` or `Update`".to_owned());
            }
            if version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType").as_str() {
                FIELDS_TYPE => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
                other => return Err(format!("invalid fieldsType {} in managed fields entry {index}", Quoted(other))),
            }
            let applied = operation == APPLY;
            let set = match &entry["fieldsV1"] {
                Value::String(text) => text.parse().map_err(|error| format!("error decoding set: {error}"))?,
                _ => FieldSet::new(),
            };
            let identity = Identity {
                manager: text("manager"),
                operation,
                api_version: if applied { String::new() } else { version.clone() },
                subresource: text("subresource"),
            };
            let identifier = identity.identifier();
            if let Some(time) = entry["time"].as_str() {
                managed.times.insert(identifier.clone(), time.to_owned());
            }
            managed.sets.insert(identifier, ManagedSet { set, version, applied });
        }
        Ok(managed)
    }

    /// Returns the entries, or nothing if there are none.
    pub(super) fn encode(&self) -> Option<Value> {
        if self.sets.is_empty() {
            return None;
        }
        let mut entries: Vec<(Identity, &str, &ManagedSet)> = self
            .sets
            .iter()
            .map(|(identifier, managed)| {
                let mut identity = Identity::of(identifier);
                identity.api_version.clone_from(&managed.version);
                let time = self.times.get(identifier).map_or("", String::as_str);
                (identity, time, managed)
            })
            .collect();
        // Times are in UTC and in seconds, so that their order is that of their text.
        entries.sort_by(|(left, left_time, _), (right, right_time, _)| {
            let by_operation = left.operation.cmp(&right.operation);
            let by_name = || {
                let by_manager = left.manager.cmp(&right.manager);
                let by_version = || left.api_version.cmp(&right.api_version);
                by_manager.then_with(by_version).then_with(|| left.subresource.cmp(&right.subresource))
            };
            by_operation.then_with(|| left_time.cmp(right_time)).then_with(by_name)
        });
        Some(entries.into_iter().map(|(identity, time, managed)| entry(identity, time, &managed.set)).collect())
    }
}

fn entry(identity: Identity, time: &str, set: &FieldSet) -> Value {
    let mut out = Map::new();
    let mut text = |name: &str, value: String| {
        if !value.is_empty() {
            out.insert(name.to_owned(), Value::from(value));
        }
    };
    text("manager", identity.manager);
    text("operation", identity.operation);
    text("apiVersion", identity.api_version);
    text("time", time.to_owned());
    text("fieldsType", FIELDS_TYPE.to_owned());
    text("subresource", identity.subresource);
    out.insert("fieldsV1".to_owned(), Value::String(set.to_string()));
    Value::Object(out)
}

/// Returns whether entries stand for a request to remove all entries: an empty list, or one empty entry.
pub(super) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Restores the times of entries if nothing but times has changed, so that the write changes nothing.
pub(crate) fn restore_times(new: &mut Value, old: &Value) {
    let (Some(entries), Some(before)) = (entries(new), entries(old)) else { return };
    let is_same = entries.len() == before.len() && entries.iter().zip(before).all(|(new, old)| is_same_entry(new, old));
    if !is_same || entries == before || !is_same_besides_entries(new, old) {
        return;
    }
    new["metadata"]["managedFields"] = json!(before);
}

/// Returns whether two objects are equal besides their entries.
pub(crate) fn is_same_besides_entries(left: &Value, right: &Value) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return left == right };
    let is_same_metadata = match (left.get("metadata"), right.get("metadata")) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => is_same_without("managedFields", left, right),
        (left, right) => left == right,
    };
    is_same_metadata && is_same_without("metadata", left, right)
}

/// Returns whether two objects are equal besides one field.
fn is_same_without(name: &str, left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    let is_compared = |(other, _): &(&String, &Value)| *other != name;
    left.iter().filter(is_compared).eq(right.iter().filter(is_compared))
}

fn entries(object: &Value) -> Option<&[Value]> {
    object["metadata"]["managedFields"].as_array().map(Vec::as_slice)
}

fn is_same_entry(left: &Value, right: &Value) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return left == right };
    is_same_without("time", left, right)
}

const APPLY: &str = "Apply";
const UPDATE: &str = "Update";
const FIELDS_TYPE: &str = "FieldsV1";
