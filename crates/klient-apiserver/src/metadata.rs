//! The metadata of objects: what the server fills in, what it keeps, and what it refuses.

mod names;
mod rules;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

pub(crate) use self::{
    names::generate,
    rules::{check, check_label, label_value_problems, qualified_name_problems, warnings},
};

/// The metadata of an object, which always has some.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it was made an object just now"),
    }
}

/// A text of the metadata; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// Fills in what a new object gets from the server.
pub(crate) fn fill_new(object: &mut Value, uid: &str, now: Timestamp, generation: bool) {
    let metadata = of(object);
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"] {
        metadata.remove(name);
    }
    metadata.insert("uid".to_owned(), Value::from(uid));
    metadata.insert("creationTimestamp".to_owned(), Value::from(time(now)));
    if generation {
        metadata.insert("generation".to_owned(), Value::from(1));
    }
}

/// Restores what an update cannot change.
pub(crate) fn keep(new: &mut Value, old: &Value) {
    let metadata = of(new);
    metadata.remove("selfLink");
    for name in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"]
    {
        match old["metadata"].get(name) {
            Some(value) => drop(metadata.insert(name.to_owned(), value.clone())),
            None => drop(metadata.remove(name)),
        }
    }
    // Sent empty, they are kept.
    if metadata.get("managedFields").is_none_or(Value::is_null)
        && let Some(kept) = old["metadata"].get("managedFields")
    {
        metadata.insert("managedFields".to_owned(), kept.clone());
    }
}

/// Whether an object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some_and(Value::is_string)
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A time as metadata has it.
pub(crate) fn time(at: Timestamp) -> String {
    klient_core::format_time(&Time(at))
}
