//! Claims of devices, and the other kinds of their group: hooks and defaults.

use serde_json::{Value, json};

use super::{hooks::Hooks, kinds::SPEC_AND_METADATA, tables::rare, warnings};

pub(super) static CLAIMS: Hooks = Hooks {
    cell: rare::resource_claim,
    defaults: Some(claim),
    delete_returns_object: true,
    has_generation: Some(false),
    status_reset_fields: SPEC_AND_METADATA,
    ..Hooks::NONE
};

pub(super) static CLAIM_TEMPLATES: Hooks =
    Hooks { defaults: Some(claim_template), delete_returns_object: true, has_generation: Some(false), ..Hooks::NONE };

pub(super) static DEVICES: Hooks = Hooks {
    warnings: Some(warnings::resource_slice),
    delete_returns_object: true,
    status_reset_fields: SPEC_AND_METADATA,
    ..Hooks::NONE
};

/// Sets the number of devices of each request of a claim that wants an exact number.
fn claim(object: &mut Value) {
    let Some(requests) = object.pointer_mut("/spec/devices/requests") else { return };
    for request in requests.as_array_mut().into_iter().flatten() {
        request.get_mut("exactly").map(count);
        request.get_mut("firstAvailable").and_then(Value::as_array_mut).into_iter().flatten().for_each(count);
    }
}

/// Does what [`claim`] does for the claims that a template makes.
fn claim_template(object: &mut Value) {
    object.get_mut("spec").map(claim);
}

fn count(request: &mut Value) {
    if request["allocationMode"] == "ExactCount" && request["count"].as_i64().unwrap_or_default() == 0 {
        request["count"] = json!(1);
    }
}
