//! Validation of pods and of changes to pods.

use klient_core::StatusCause;
use serde_json::{Value, json};

/// Validates a change of a pod.
pub(super) fn update(object: &Value, old: &Value, causes: &mut Vec<StatusCause>) {
    let (new, old) = (&object["spec"], &old["spec"]);
    for list in ["containers", "initContainers"] {
        let items = |spec: &Value| spec[list].as_array().cloned().unwrap_or_default();
        let (new, old) = (items(new), items(old));
        if new.len() != old.len() {
            let detail = "pod updates may not add or remove containers";
            causes.push(StatusCause::forbidden(format!("spec.{list}"), detail));
            return;
        }
        for (index, container) in new.iter().enumerate() {
            if container["image"].as_str().is_none_or(str::is_empty) {
                causes.push(StatusCause::required(format!("spec.{list}[{index}].image"), ""));
            }
        }
    }
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    let at = "spec.activeDeadlineSeconds";
    match (deadline(new), deadline(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            causes.push(StatusCause::invalid(at, new, &detail));
            return;
        }
        (Some(new), Some(old)) if old < new => {
            causes.push(StatusCause::invalid(at, new, "must be less than or equal to previous value"));
            return;
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            causes.push(StatusCause::invalid(at, Value::Null, detail));
        }
        _ => {}
    }
    if !keeps_tolerations(new, old) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(StatusCause::forbidden("spec.tolerations", detail));
    }
    if without_mutable(new, old) != *old {
        causes.push(StatusCause::forbidden("spec", &format!("pod updates may not change fields other than {MUTABLE}")));
    }
}

fn keeps_tolerations(new: &Value, old: &Value) -> bool {
    let of = |spec: &Value| -> Vec<Value> {
        let mut found = spec["tolerations"].as_array().cloned().unwrap_or_default();
        for toleration in &mut found {
            drop(toleration.as_object_mut().and_then(|fields| fields.remove("tolerationSeconds")));
        }
        found
    };
    let now = of(new);
    of(old).iter().all(|toleration| now.contains(toleration))
}

/// Returns the requested pod with its mutable fields as stored.
fn without_mutable(new: &Value, old: &Value) -> Value {
    let mut new = new.clone();
    let Value::Object(fields) = &mut new else { return new };
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        match old.get(name) {
            Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
            None => drop(fields.remove(name)),
        }
    }
    for list in ["containers", "initContainers"] {
        let items = fields.get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in items.into_iter().flatten().enumerate() {
            container["image"] = old[list][index]["image"].clone();
        }
    }
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    // A negative value may be corrected.
    if grace(old).is_some_and(|grace| grace < 0) && grace(&new) == Some(1) {
        new["terminationGracePeriodSeconds"] = json!(grace(old));
    }
    new
}

const MUTABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
