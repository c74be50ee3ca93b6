//! Validation of volume claims, alone and in templates.

use klient_core::StatusCause;
use serde_json::{Value, json};

use super::{
    field::{Causes, Field},
    resources,
    same::is_same,
};
use crate::metadata::formats;

/// Validates a volume claim.
pub(in crate::builtin) fn claim(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let allows_groups = old.is_some_and(|old| {
        ["dataSource", "dataSourceRef"].iter().any(|name| old["spec"][*name]["apiGroup"].is_string())
    });
    spec(&Field::of(object, "spec"), allows_groups, causes);
    if let Some(old) = old {
        update(object, old, causes);
    }
}

/// Validates the specification of a claim. Groups of sources that were stored before stay valid.
pub(super) fn spec(spec: &Field<'_, '_>, allows_groups: bool, causes: &mut Causes) {
    if spec.field("accessModes").is_empty() {
        spec.field("accessModes").required("at least 1 access mode is required", causes);
    }
    spec.field("selector").label_selector(causes);
    access_modes(&spec.field("accessModes"), causes);
    let storage = &spec.value["resources"]["requests"]["storage"];
    let at = spec.field("resources");
    let at = at.key("storage");
    let at = at.with(storage);
    match at.quantity() {
        None => at.required("", causes),
        Some(amount) if amount.is_negative() || amount.is_zero() => at.invalid("must be greater than zero", causes),
        Some(_) => resources::value("storage", &at, causes),
    }
    if !spec.field("storageClassName").text().is_empty() {
        spec.field("storageClassName").subdomain(causes);
    }
    spec.field("volumeMode").optional_one_of(&["Block", "Filesystem"], causes);
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    data_source(&source, allows_groups, causes);
    data_source(&reference, allows_groups, causes);
    let namespace = reference.field("namespace");
    if !namespace.text().is_empty() {
        namespace.label(causes);
        if source.is_set() {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            spec.invalid_text("{}", detail, causes);
        }
    } else if source.is_set() && reference.is_set() {
        let is_same = ["apiGroup", "kind", "name"].iter().all(|name| source.value[*name] == reference.value[*name]);
        if !is_same {
            spec.invalid_text("{}", "must match dataSourceRef", causes);
        }
    }
    if !spec.field("volumeAttributesClassName").text().is_empty() {
        spec.field("volumeAttributesClassName").subdomain(causes);
    }
}

/// Validates the access modes of a claim or a volume.
pub(super) fn access_modes(modes: &Field<'_, '_>, causes: &mut Causes) {
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let (mut has_pod, mut has_other) = (false, false);
    for mode in modes.list() {
        let text = mode.as_str().unwrap_or_default();
        if !known.contains(&text) {
            modes.with(mode).not_supported(&known, causes);
        }
        has_pod |= text == "ReadWriteOncePod";
        has_other |= text != "ReadWriteOncePod" && known.contains(&text);
    }
    if has_pod && has_other {
        modes.forbidden("may not use ReadWriteOncePod with other access modes", causes);
    }
}

fn data_source(source: &Field<'_, '_>, allows_groups: bool, causes: &mut Causes) {
    if !source.is_set() {
        return;
    }
    source.field("name").not_empty(causes);
    source.field("kind").not_empty(causes);
    let (group, kind) = (source.field("apiGroup"), source.field("kind"));
    if group.text().is_empty() && kind.text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid_as(kind.text(), detail, causes);
    }
    if !group.text().is_empty() && !allows_groups {
        group.subdomain(causes);
    }
}

fn update(object: &Value, old: &Value, causes: &mut Causes) {
    let (mut new_spec, mut old_spec) = (object["spec"].clone(), old["spec"].clone());
    if old_spec["volumeName"].as_str().is_none_or(str::is_empty) {
        old_spec["volumeName"] = new_spec["volumeName"].clone();
    }
    let annotation = |object: &Value| object["metadata"]["annotations"][CLASS].as_str().map(str::to_owned);
    let (new_class, old_class) = (annotation(object), annotation(old));
    let (new_name, old_name) = (new_spec["storageClassName"].clone(), old_spec["storageClassName"].clone());
    let is_upgrade = old_name.is_null()
        && old_class.as_ref().is_some_and(|class| new_name == *class)
        && new_class.as_ref().is_none_or(|class| Some(class) == old_class.as_ref());
    if is_upgrade {
        new_spec["storageClassName"] = Value::Null;
    } else {
        if new_class.clone().unwrap_or_default() != old_class.clone().unwrap_or_default() {
            let field = format!("metadata.annotations.{CLASS}");
            causes.add(|| StatusCause::invalid(field, new_class.unwrap_or_default(), "field is immutable"));
        }
        let is_first = old_name.is_null() && old_class.is_none_or(|class| new_name == *class);
        if !new_name.is_null() && is_first {
            new_spec["storageClassName"] = Value::Null;
        }
    }
    if object["status"]["phase"] == "Bound" {
        if new_spec["resources"]["requests"].is_object() {
            new_spec["resources"]["requests"]["storage"] = old_spec["resources"]["requests"]["storage"].clone();
        }
        new_spec["volumeAttributesClassName"] = old_spec["volumeAttributesClassName"].clone();
    }
    if !is_same(&new_spec, &old_spec) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
        causes.add(|| StatusCause::forbidden("spec", detail));
    }
    sizes(object, old, causes);
    Field::of(&json!({"volumeMode": object["spec"]["volumeMode"]}), "volumeMode")
        .immutable(&old["spec"]["volumeMode"], causes);
    let class = Field::of(object, "spec");
    let class = class.field("volumeAttributesClassName");
    if *class.value != old["spec"]["volumeAttributesClassName"]
        && old["status"]["currentVolumeAttributesClassName"].is_string()
    {
        if !class.is_set() {
            let detail = "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil";
            class.forbidden(detail, causes);
        } else if class.text().is_empty() {
            let detail = "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
            class.forbidden(detail, causes);
        }
    }
}

fn sizes(object: &Value, old: &Value, causes: &mut Causes) {
    let zero = || klient_core::Quantity::from_i64(0, klient_core::QuantityFormat::DecimalSi);
    let parsed = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(zero);
    let size = |object: &Value| parsed(&object["spec"]["resources"]["requests"]["storage"]);
    let (new, before) = (size(object), size(old));
    if new < before && new <= parsed(&old["status"]["capacity"]["storage"]) {
        let detail = "field can not be less than status.capacity";
        causes.add(|| StatusCause::forbidden("spec.resources.requests.storage", detail));
    }
}

/// Validates the status of a claim.
pub(in crate::builtin) fn claim_status(object: &Value, _: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    for (_, amount) in status.field("capacity").entries() {
        basic(&amount, causes);
    }
    let states = status.field("allocatedResourceStatuses");
    for (key, state) in states.entries() {
        resource_key(key, &states, causes);
        if !RESIZE_STATES.contains(&state.text()) {
            states.with(&json!(key)).not_supported(&RESIZE_STATES, causes);
        }
    }
    let amounts = status.field("allocatedResources");
    for (key, amount) in amounts.entries() {
        let before = causes.len();
        resource_key(key, &amounts, causes);
        if causes.len() == before {
            basic(&amount, causes);
        }
        if causes.len() == before {
            resources::value("storage", &amount, causes);
        }
    }
}

/// Validates that an amount is not negative.
pub(super) fn basic(amount: &Field<'_, '_>, causes: &mut Causes) {
    if let Some(quantity) = amount.quantity().filter(|quantity| quantity.value() < 0) {
        amount.invalid_as(quantity.value(), "must be a valid resource quantity", causes);
    }
}

fn resource_key(key: &str, at: &Field<'_, '_>, causes: &mut Causes) {
    let problems = formats::qualified_name_problems(key);
    if problems.is_empty() && resources::is_native(key) && key != "storage" {
        at.with(&json!(key)).not_supported(&["storage"], causes);
    }
    problems.iter().for_each(|problem| at.invalid_as(key, problem, causes));
}

const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
