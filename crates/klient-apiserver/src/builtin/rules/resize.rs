//! Validation of new resources of a running pod, and of its containers.

use klient_core::StatusCause;
use serde_json::{Map, Value, json};

use super::{
    field::{Causes, Field},
    pods::qos_class,
    same::is_same,
    template::{self, NOWHERE},
};

/// Validates that only amounts of CPU and memory change, and none of them is removed. The pod itself was validated before.
pub(super) fn validate(object: &Value, old: &Value, causes: &mut Causes) {
    if let Some(which) = unsupported(old) {
        // These pods have no other causes.
        causes.clear();
        return causes.add(|| StatusCause::forbidden(NOWHERE, &format!("{which} pods cannot be resized")));
    }
    let spec = Field::of(object, "spec");
    if old["status"]["qosClass"].as_str().unwrap_or_else(|| qos_class(old)) != qos_class(object) {
        let shown = object["status"]["qosClass"].as_str().unwrap_or_default();
        spec.invalid_as(shown, "Pod QOS Class may not change as a result of resizing", causes);
    }
    if !is_supported(old) {
        spec.forbidden("Pod running on node without support for resize", causes);
    }
    let mut kept = object["spec"].clone();
    if has_amounts(&old["spec"]["resources"]) || has_amounts(&object["spec"]["resources"]) {
        of_pod(&spec, &old["spec"], &mut kept, causes);
    }
    if !has_same_containers(&spec, &old["spec"], causes) {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (container, before) in spec.field(list).items().zip(list_of(&old["spec"], list)) {
            let resources = container.field("resources");
            for kind in AMOUNTS {
                if has_removed(&resources, &before["resources"], kind) {
                    resources.field(kind).forbidden(&format!("resource {kind} cannot be removed"), causes);
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = kept.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (index, (container, before)) in containers.zip(list_of(&old["spec"], list)).enumerate() {
            let is_changed = !is_same(container, before);
            with_amounts(container, &before["resources"]);
            let is_valid = is_same(container, before);
            if list == "containers" {
                if !is_valid {
                    spec.forbidden(ONLY_BASIC, causes);
                }
                continue;
            }
            let list = spec.field(list);
            let field = list.index(index);
            if !is_valid {
                let detail = "only cpu and memory resources for init or sidecar containers are mutable";
                field.forbidden(detail, causes);
            }
            if is_changed && container["restartPolicy"] != "Always" {
                let policies = container["resizePolicy"].as_array().into_iter().flatten();
                for _ in policies.filter(|policy| policy["restartPolicy"] == "RestartContainer") {
                    let detail =
                        "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                    field.forbidden(detail, causes);
                }
            }
        }
    }
    if causes.is_empty() && !is_same(&kept, &old["spec"]) {
        spec.forbidden(ONLY_BASIC, causes);
    }
}

/// Returns the sort of a pod that cannot be resized.
fn unsupported(old: &Value) -> Option<&'static str> {
    if old["metadata"]["annotations"].get(template::MIRROR).is_some() {
        return Some("static");
    }
    (old["spec"]["os"]["name"] == "windows").then_some("windows")
}

/// Returns whether the node of a pod reports the resources of running containers. A pod that does not run may get such a node.
fn is_supported(old: &Value) -> bool {
    let running = list_of(&old["status"], "containerStatuses").find(|status| status["state"]["running"].is_object());
    running.is_none_or(|status| status["resources"].is_object())
}

/// Validates new resources of the pod itself. In `kept`, they are replaced by the stored ones.
fn of_pod(spec: &Field<'_, '_>, old: &Value, kept: &mut Value, causes: &mut Causes) {
    let resources = spec.field("resources");
    let before = &old["resources"];
    if before.is_object() && !resources.is_set() {
        return resources.forbidden("pod-level resources cannot be removed", causes);
    }
    for kind in AMOUNTS {
        if has_removed(&resources, before, kind) {
            let detail = format!("pod-level resource {kind} cannot be removed");
            resources.field(kind).forbidden(&detail, causes);
        }
    }
    with_basic_amounts(kept, before);
    if !is_same(&kept["resources"], before) {
        spec.forbidden("only cpu and memory resources are mutable at pod-level", causes);
    }
}

/// Validates that a pod has the containers that it had.
fn has_same_containers(spec: &Field<'_, '_>, old: &Value, causes: &mut Causes) -> bool {
    let before = causes.len();
    for list in ["containers", "initContainers"] {
        let containers = spec.field(list);
        if containers.list().len() != list_of(old, list).count() {
            containers.forbidden(&format!("{list} may not be added or removed on resize"), causes);
            continue;
        }
        for (container, before) in containers.items().zip(list_of(old, list)) {
            if container.value["name"] != before["name"] {
                let detail = format!("{list} may not be renamed or reordered on resize");
                container.field("name").forbidden(&detail, causes);
            }
        }
    }
    causes.len() == before
}

/// Returns whether an amount that a pod or container had is absent.
fn has_removed(resources: &Field<'_, '_>, old: &Value, kind: &str) -> bool {
    let amounts = resources.field(kind);
    old[kind].as_object().into_iter().flatten().any(|(name, _)| amounts.value.get(name).is_none())
}

/// Sets the amounts of CPU and memory of a container to the stored ones. Its claims are removed, as in the real server.
fn with_amounts(container: &mut Value, old: &Value) {
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
        resources.remove("claims");
    }
    with_basic_amounts(container, old);
}

/// Sets the amounts of CPU and memory in the resources of a pod or container to the stored ones.
fn with_basic_amounts(owner: &mut Value, old: &Value) {
    let Value::Object(fields) = owner else { return };
    let mut resources = fields.remove("resources").unwrap_or_else(|| json!({}));
    for kind in AMOUNTS {
        let mut amounts: Map<String, Value> = resources[kind].as_object().cloned().unwrap_or_default();
        for name in ["cpu", "memory"] {
            match old[kind].get(name) {
                Some(amount) => drop(amounts.insert(name.to_owned(), amount.clone())),
                None => drop(amounts.remove(name)),
            }
        }
        resources[kind] = if amounts.is_empty() { Value::Null } else { Value::Object(amounts) };
    }
    if old.is_object() || has_amounts(&resources) || list_of(&resources, "claims").next().is_some() {
        fields.insert("resources".to_owned(), resources);
    }
}

fn has_amounts(resources: &Value) -> bool {
    AMOUNTS.iter().any(|kind| resources[kind].as_object().is_some_and(|amounts| !amounts.is_empty()))
}

fn list_of<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value[name].as_array().into_iter().flatten()
}

const AMOUNTS: [&str; 2] = ["requests", "limits"];
const ONLY_BASIC: &str = "only cpu and memory resources are mutable";
