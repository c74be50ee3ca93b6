//! Certificate signing requests: hooks, who created them, and their conditions.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    hooks::{Hooks, NameRule},
    rules,
};
use crate::access::User;

pub(super) static HOOKS: Hooks = Hooks {
    reset_fields: Some(&["spec", "status"]),
    status_reset_fields: &["spec", "status.conditions"],
    set_user,
    on_status,
    on_approval: stamp,
    validate_status: rules::signing_request_status,
    validate_part: rules::signing_request_approval,
    selectable: &["spec.signerName"],
    names: NameRule::PathSegment,
    has_generation: Some(false),
    ..Hooks::NONE
};

/// Writes the user of the request into a new object. Requests cannot choose another one.
fn set_user(object: &mut Value, user: &User) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let set =
        |value: Value| Some(value).filter(|value| !value.as_str().is_some_and(str::is_empty) && *value != json!([]));
    let extra = Some(json!(user.extra)).filter(|_| !user.extra.is_empty());
    for (name, value) in [
        ("username", set(json!(user.name))),
        ("uid", set(json!(user.uid))),
        ("groups", set(json!(user.groups))),
        ("extra", extra),
    ] {
        match value {
            Some(value) => drop(spec.insert(name.to_owned(), value)),
            None => drop(spec.remove(name)),
        }
    }
}

/// Completes a status that a client wrote: decisions stay as they are stored, unless some were added or removed.
fn on_status(object: &mut Value, old: &Value, now: &str) {
    for decision in ["Approved", "Denied"] {
        let of_type = |object: &Value| -> Vec<usize> {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten().enumerate();
            conditions.filter(|(_, condition)| condition["type"] == decision).map(|(index, _)| index).collect()
        };
        let (new, stored) = (of_type(object), of_type(old));
        if new.len() == stored.len() {
            for (at, from) in new.into_iter().zip(stored) {
                object["status"]["conditions"][at] = old["status"]["conditions"][from].clone();
            }
        }
    }
    stamp(object, old, now);
}

/// Sets the times that conditions lack. A condition that has the status of a stored one has its transition time, too.
fn stamp(object: &mut Value, old: &Value, now: &str) {
    let is_set = |time: &Value| time.as_str().is_some_and(|time| !time.is_empty());
    let identity = |condition: &Value| ["type", "status"].map(|name| condition[name].as_str().map(str::to_owned));
    let mut stored = HashMap::new();
    for condition in old["status"]["conditions"].as_array().into_iter().flatten() {
        let time = &condition["lastTransitionTime"];
        if is_set(time) {
            // The first of equal ones counts.
            stored.entry(identity(condition)).or_insert(time);
        }
    }
    let conditions = object["status"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|condition| condition.is_object()) {
        if !is_set(&condition["lastUpdateTime"]) {
            condition["lastUpdateTime"] = json!(now);
        }
        if !is_set(&condition["lastTransitionTime"]) {
            let same = stored.get(&identity(condition));
            condition["lastTransitionTime"] = same.map_or_else(|| json!(now), |time| (*time).clone());
        }
    }
}
