//! Validation of a few built-in kinds, as far as controllers rely on it. Other kinds are accepted without it.

mod access;
mod batch;
mod data;
mod events;
mod pod_spec;
mod pods;
mod policy;
mod services;

use klient_core::StatusCause;
use serde_json::Value;

pub(super) use self::{
    access::{binding as role_binding, role},
    batch::{cron_job, job},
    data::validate as data,
    policy::{autoscaler, disruption_budget, ingress, volume_claim},
};

/// Validates a pod.
pub(super) fn pod(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    pod_spec::validate(&object["spec"], "spec", causes);
    if let Some(old) = old {
        pods::update(object, old, causes);
    }
}

/// Validates a service.
pub(super) fn service(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    if let Some(old) = old {
        services::addresses(&object["spec"], &old["spec"], causes);
    }
    services::ports(&object["spec"], causes);
    services::traffic(&object["spec"], causes);
}

/// Validates a namespace.
pub(super) fn namespace(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let finalizers = object["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for (index, name) in finalizers.enumerate() {
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(StatusCause::invalid(format!("spec.finalizers[{index}]"), name, detail));
        }
    }
}

/// Validates a new event of the core group or of `events.k8s.io`.
pub(super) fn event(is_new_group: bool, object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    if old.is_none() {
        events::validate(is_new_group, object, causes);
    }
}

/// Validates a deployment, stateful set, daemon set or replica set.
pub(super) fn workload(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        causes.push(StatusCause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let selector = &spec["selector"];
    let is_empty = |field: &str| selector[field].as_object().is_none_or(serde_json::Map::is_empty);
    let no_expressions = selector["matchExpressions"].as_array().is_none_or(Vec::is_empty);
    if selector.is_null() || (is_empty("matchLabels") && no_expressions) {
        if selector.is_null() {
            causes.push(StatusCause::required("spec.selector", ""));
        } else {
            let detail = "empty selector is invalid for deployment";
            causes.push(StatusCause::invalid("spec.selector", selector.clone(), detail));
        }
    }
    let parsed = serde_json::from_value(selector.clone()).ok().flatten();
    let labels = &spec["template"]["metadata"]["labels"];
    let lookup = |key: &str| labels[key].as_str().map(str::to_owned);
    if let Ok(parsed) = klient_core::LabelSelector::from_api(parsed.as_ref())
        && !parsed.matches(lookup)
    {
        let detail = "`selector` does not match template `labels`";
        causes.push(StatusCause::invalid("spec.template.metadata.labels", labels.clone(), detail));
    }
    pod_spec::validate(&spec["template"]["spec"], "spec.template.spec", causes);
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"].get("rollingUpdate").is_some() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(StatusCause::forbidden("spec.strategy.rollingUpdate", detail));
    }
    if let Some(old) = old
        && old["spec"]["selector"] != *selector
    {
        causes.push(StatusCause::invalid("spec.selector", selector.clone(), "field is immutable"));
    }
}

/// Returns the quality of service class of a pod.
pub(super) fn qos_class(pod: &Value) -> &'static str {
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let amount =
        |container: &Value, kind: &str, name: &str| container["resources"][kind][name].as_str().map(str::to_owned);
    let none = containers.iter().all(|container| {
        ["requests", "limits"]
            .iter()
            .all(|kind| container["resources"][*kind].as_object().is_none_or(serde_json::Map::is_empty))
    });
    if none {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && amount(container, "requests", name).is_none_or(|request| Some(request) == limit)
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
