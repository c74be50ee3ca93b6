//! Rules about a few built-in kinds that controllers rely on. Others are taken as they come.

mod data;
mod events;
mod pods;
mod services;

use klient_core::StatusCause;
use serde_json::Value;

use crate::registry::Resource;

/// What is wrong with an object besides its metadata.
pub(super) fn validate(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets") => workload(object, old, &mut causes),
        ("", "pods") => {
            pods::containers(&object["spec"], "spec", &mut causes);
            if let Some(old) = old {
                pods::update(object, old, &mut causes);
            }
        }
        ("", "services") => {
            services::ports(&object["spec"], &mut causes);
            services::traffic(&object["spec"], &mut causes);
        }
        ("", "configmaps") => data::validate(false, object, old, &mut causes),
        ("", "secrets") => data::validate(true, object, old, &mut causes),
        ("apiextensions.k8s.io", "customresourcedefinitions") => super::definitions::validate(object, old, &mut causes),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings")
            if old.is_some_and(|old| old["roleRef"] != object["roleRef"]) =>
        {
            causes.push(StatusCause::invalid("roleRef", object["roleRef"].clone(), "cannot change roleRef"));
        }
        ("", "namespaces") => {
            let finalizers = object["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for (index, name) in finalizers.enumerate() {
                if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
                    let detail = "name is neither a standard finalizer name nor is it fully qualified";
                    causes.push(StatusCause::invalid(format!("spec.finalizers[{index}]"), name, detail));
                }
            }
        }
        ("" | "events.k8s.io", "events") if old.is_none() => {
            events::validate(resource.group == "events.k8s.io", object, &mut causes);
        }
        _ => {}
    }
    causes
}

fn workload(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let spec = &object["spec"];
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
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        causes.push(StatusCause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    pods::containers(&spec["template"]["spec"], "spec.template.spec", causes);
    if let Some(old) = old
        && old["spec"]["selector"] != *selector
    {
        causes.push(StatusCause::invalid("spec.selector", selector.clone(), "field is immutable"));
    }
}

/// How well a pod is served when resources are short.
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
