//! The metadata of objects: fields that the server sets, fields that cannot change, and validation.

pub(crate) mod formats;
mod names;
mod rules;

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

pub(crate) use self::{
    formats::{label_value_problems, qualified_name_problems},
    names::generate,
    rules::{MAX_MANAGER, check, check_embedded, check_prefix, is_printable, manager_problems, managers, warnings},
};

/// Returns the metadata of an object, which is created if it is absent.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it was made an object just now"),
    }
}

/// Returns a string field of the metadata, or an empty string.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// Removes metadata that a request cannot give a new object.
pub(crate) fn wipe_system_fields(object: &mut Value) {
    let metadata = of(object);
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(name);
    }
}

/// Removes the identity that a request cannot give a new object.
pub(crate) fn wipe_identity(object: &mut Value) {
    let metadata = of(object);
    for name in ["uid", "creationTimestamp", "selfLink"] {
        metadata.remove(name);
    }
}

/// Sets the metadata fields that the server gives a new object.
pub(crate) fn fill_new(object: &mut Value, uid: &str, now: Timestamp, generation: bool) {
    let metadata = of(object);
    for name in ["selfLink", "resourceVersion", "generation"] {
        metadata.remove(name);
    }
    metadata.insert("uid".to_owned(), Value::from(uid));
    metadata.insert("creationTimestamp".to_owned(), Value::from(time(now)));
    if generation {
        metadata.insert("generation".to_owned(), Value::from(1));
    }
}

/// Restores the metadata fields that an update cannot change.
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
}

/// Returns the value at a JSON pointer whose names need no escapes. `Value::pointer_mut` allocates each of them.
pub(crate) fn at_mut<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    pointer.split('/').skip(1).try_fold(object, |value, name| value.get_mut(name))
}

/// Removes references to owners that are the same as another one. Returns a warning if there were any.
pub(crate) fn unite_owners(object: &mut Value) -> Option<String> {
    repeated_owners(object).map(|uids| owners_warning("", &uids))
}

/// Removes references to owners that admission repeated. Returns a warning if there were any.
pub(crate) fn unite_owners_again(object: &mut Value) -> Option<String> {
    repeated_owners(object).map(|uids| owners_warning(" after mutating admission happens", &uids))
}

fn owners_warning(when: &str, uids: &[String]) -> String {
    format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.join(", ")
    )
}

/// Removes references to owners that are the same as another one, and returns their UIDs.
fn repeated_owners(object: &mut Value) -> Option<Vec<String>> {
    let owners = at_mut(object, "/metadata/ownerReferences")?.as_array_mut()?;
    // An empty text is an absent one.
    let key = |owner: &Value| {
        let texts =
            ["apiVersion", "kind", "name", "uid"].map(|name| owner[name].as_str().unwrap_or_default().to_owned());
        (texts, ["controller", "blockOwnerDeletion"].map(|name| owner[name].as_bool()))
    };
    let mut seen = HashSet::new();
    let mut repeated: Vec<String> = Vec::new();
    if owners.len() < 2 {
        return None;
    }
    owners.retain(|owner| {
        let is_new = seen.insert(key(owner));
        if !is_new {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    (!repeated.is_empty()).then_some(repeated)
}

/// Returns whether an object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some_and(Value::is_string)
}

/// Returns the finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns a time in the format of metadata.
pub(crate) fn time(at: Timestamp) -> String {
    klient_core::format_time(&Time(at))
}
