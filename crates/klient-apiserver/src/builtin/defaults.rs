//! Defaults of built-in kinds: the values that the server writes to fields that a client left out.
//!
//! `defaults.json` holds them by type and field. Defaults that depend on other fields are hooks, below.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::{Map, Value, json};

use super::{Writing, autoscalers, images, rules};
use crate::{
    Result, metadata,
    registry::{self, Resource, Schema, Shape, TypeDef},
};

type Table = BTreeMap<String, Map<String, Value>>;

/// Fills in the defaults of an object. Returns whether it may have changed.
pub(crate) fn fill(resource: &Resource, object: &mut Value) -> bool {
    let Schema::BuiltIn(types) = resource.schema else { return false };
    let mut has_changed = walk(object, types, &resource.kind);
    if let Some(defaults) = resource.hooks.defaults {
        defaults(object);
        has_changed = true;
    }
    has_changed
}

/// Sets the requests of a pod's containers to their limits, its ports in the network of its node, and lets it see the services of
/// its namespace.
pub(super) fn pod(object: &mut Value) {
    let uses_host = object["spec"]["hostNetwork"] == true;
    if let Value::Object(spec) = &mut object["spec"] {
        spec.entry("enableServiceLinks").or_insert(json!(true));
        // A pod has at least one second to end.
        if let Some(grace) = spec.get_mut("terminationGracePeriodSeconds").filter(|grace| grace.as_i64() < Some(0)) {
            *grace = json!(1);
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = object["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            requests(container);
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|port| uses_host && port.get("hostPort").is_none()) {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
    pod_resources(object);
}

/// Sets the resources of a pod that has some of its own: limits of huge pages, and requests.
fn pod_resources(object: &mut Value) {
    let Some(spec) = object.get("spec").filter(|spec| spec["resources"].is_object()) else { return };
    let names = |kind: &str| -> Vec<String> {
        let lists =
            ["containers", "initContainers"].iter().flat_map(|list| spec[*list].as_array().into_iter().flatten());
        let mut names: Vec<String> = lists
            .flat_map(|container| container["resources"][kind].as_object().into_iter().flatten())
            .map(|(name, _)| name.clone())
            .collect();
        names.dedup();
        names
    };
    let resources = &spec["resources"];
    let is_empty = |kind: &str| resources[kind].as_object().is_none_or(Map::is_empty);
    let mut limits = resources["limits"].as_object().cloned().unwrap_or_default();
    let mut requests = resources["requests"].as_object().cloned().unwrap_or_default();
    if !is_empty("limits") || !is_empty("requests") {
        for name in names("limits").into_iter().filter(|name| name.starts_with("hugepages-")) {
            if let (false, Some(total)) = (requests.contains_key(&name), rules::aggregate(spec, "limits", &name)) {
                limits.entry(name).or_insert_with(|| json!(total.to_string()));
            }
        }
    }
    if !limits.is_empty() {
        for name in names("requests").into_iter().filter(|name| name == "cpu" || name == "memory") {
            if let Some(total) = rules::aggregate(spec, "requests", &name) {
                requests.entry(name).or_insert_with(|| json!(total.to_string()));
            }
        }
        for (name, limit) in &limits {
            if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
                requests.entry(name.clone()).or_insert_with(|| limit.clone());
            }
        }
    }
    for (kind, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            object["spec"]["resources"][kind] = Value::Object(amounts);
        }
    }
}

/// Names the ports of an endpoint slice.
pub(super) fn endpoint_slice(object: &mut Value) {
    for port in object["ports"].as_array_mut().into_iter().flatten() {
        if port.get("name").is_none() {
            port["name"] = json!("");
        }
    }
}

/// Sets selector and labels of a replication controller to the labels of its pods.
pub(super) fn replication_controller(object: &mut Value) {
    let Some(labels @ Value::Object(_)) = object.pointer("/spec/template/metadata/labels").cloned() else { return };
    let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
    if is_empty(&object["spec"]["selector"]) {
        object["spec"]["selector"] = labels.clone();
    }
    if is_empty(&object["metadata"]["labels"]) {
        object["metadata"]["labels"] = labels;
    }
}

/// Sets the phase of a status that has none.
pub(super) fn pending(object: &mut Value) {
    if let Some(Value::Object(status)) = object.get_mut("status") {
        status.entry("phase").or_insert_with(|| json!("Pending"));
    }
}

/// Sets the rolling update of a deployment.
pub(super) fn deployment(object: &mut Value) {
    rolling(object, "strategy", json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
}

/// Sets the rolling update of a stateful set.
pub(super) fn stateful_set(object: &mut Value) {
    if let Some(Value::Object(status)) = object.get_mut("status") {
        status.entry("availableReplicas").or_insert(json!(0));
    }
    let strategy = &object["spec"]["updateStrategy"];
    // A strategy with a type keeps its missing parameters.
    if strategy["type"].as_str().is_none_or(str::is_empty) || strategy["rollingUpdate"].is_object() {
        rolling(object, "updateStrategy", json!({"partition": 0}));
    }
    for claim in object["spec"].get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        claim["apiVersion"] = json!("v1");
        claim["kind"] = json!("PersistentVolumeClaim");
        if claim["status"].get("phase").is_none() {
            claim["status"]["phase"] = json!("Pending");
        }
    }
}

/// Sets the rolling update of a daemon set.
pub(super) fn daemon_set(object: &mut Value) {
    rolling(object, "updateStrategy", json!({"maxUnavailable": 1, "maxSurge": 0}));
}

/// Sets the fields of a job, and its labels to those of its pods if it has none.
pub(super) fn job(object: &mut Value) {
    job_spec(&mut object["spec"]);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let (Some(labels), Value::Object(metadata)) = (labels, &mut object["metadata"]) {
        metadata.entry("labels").or_insert(labels);
    }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| serde_json::from_str(include_str!("defaults.json")).expect("the table is tested"))
}

/// Fills in the defaults of a value of a type. Returns whether there were any.
fn walk(value: &mut Value, types: &'static TypeDef, name: &str) -> bool {
    let Value::Object(fields) = value else { return false };
    let mut has_changed = false;
    let short = name.rsplit('.').next().unwrap_or_default();
    for (field, default) in table().get(short).into_iter().flatten() {
        let is_absent = match fields.get(field) {
            None | Some(Value::Null) => true,
            // Fields that Go always writes are empty where a client left them out.
            Some(Value::String(text)) => {
                text.is_empty() && (types.required.contains(field) || ALWAYS_WRITTEN.contains(&short))
            }
            Some(_) => false,
        };
        if is_absent && types.fields.contains_key(field) {
            fields.insert(field.clone(), default.clone());
            has_changed = true;
        }
    }
    if short == "Container" || short == "EphemeralContainer" {
        container(fields);
        has_changed = true;
    }
    if short == "PodSpec"
        && let Some(account) = fields.get("serviceAccountName").cloned()
    {
        fields.insert("serviceAccount".to_owned(), account);
        has_changed = true;
    } else if short == "PodSpec"
        && let Some(account) = fields.get("serviceAccount").cloned()
    {
        fields.insert("serviceAccountName".to_owned(), account);
        has_changed = true;
    }
    if short == "ServicePort"
        && fields.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!(""))
        && let Some(port) = fields.get("port").cloned()
    {
        fields.insert("targetPort".to_owned(), port);
        has_changed = true;
    }
    if short == "Volume" && fields.keys().all(|field| field == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
        has_changed = true;
    }
    if short == "ImageVolumeSource" && !fields.contains_key("pullPolicy") {
        let policy = images::pull_policy(fields.get("reference").and_then(Value::as_str).unwrap_or_default());
        fields.insert("pullPolicy".to_owned(), json!(policy));
        has_changed = true;
    }
    if short == "NodeStatus"
        && !fields.contains_key("allocatable")
        && let Some(capacity) = fields.get("capacity").cloned()
    {
        fields.insert("allocatable".to_owned(), capacity);
        has_changed = true;
    }
    for (field, inner) in fields.iter_mut() {
        if let Some(known) = types.fields.get(field) {
            has_changed |= descend(inner, &known.shape);
        }
    }
    has_changed
}

/// Fills in the defaults of a value. Returns whether there were any.
fn descend(value: &mut Value, shape: &'static Shape) -> bool {
    match (shape, value) {
        (Shape::Ref(name), value) => registry::types().get(name).is_some_and(|types| walk(value, types, name)),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter_mut().fold(false, |changed, item| changed | descend(item, inner))
        }
        (Shape::Map(inner), Value::Object(entries)) => {
            entries.values_mut().fold(false, |changed, entry| changed | descend(entry, inner))
        }
        _ => false,
    }
}

fn container(fields: &mut Map<String, Value>) {
    if !fields.contains_key("imagePullPolicy") {
        let image = fields.get("image").and_then(Value::as_str).unwrap_or_default();
        let policy = images::pull_policy(image);
        fields.insert("imagePullPolicy".to_owned(), json!(policy));
    }
}

/// Sets missing requests to the limits. Only pods get this default, not pod templates.
fn requests(container: &mut Value) {
    let Value::Object(fields) = container else { return };
    let limits = fields.get("resources").and_then(|resources| resources["limits"].as_object()).cloned();
    for (name, amount) in limits.into_iter().flatten() {
        let requests = &mut fields["resources"]["requests"];
        if requests.get(&name).is_none() {
            requests[name] = amount;
        }
    }
}

/// Moves `stringData` of a secret to `data`.
pub(super) fn secret(object: &mut Value) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let Value::Object(fields) = object else { return };
    if let Some(Value::Object(texts)) = fields.remove("stringData") {
        for (key, text) in texts {
            fields.entry("data").or_insert_with(|| json!({}))[key] =
                json!(STANDARD.encode(text.as_str().unwrap_or_default()));
        }
    }
}

fn rolling(object: &mut Value, field: &str, default: Value) {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    let strategy = &mut spec[field];
    if strategy["type"].as_str().is_none_or(str::is_empty) {
        strategy["type"] = json!("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate"
        && let Value::Object(defaults) = default
    {
        for (name, value) in defaults {
            if strategy["rollingUpdate"].get(&name).is_none() {
                strategy["rollingUpdate"][name] = value;
            }
        }
    }
}

fn job_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    let backoff_limit = if spec.get("backoffLimitPerIndex").is_some() { i32::MAX } else { 6 };
    let replacement = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    for (name, value) in [
        ("backoffLimit", json!(backoff_limit)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
        ("manualSelector", json!(false)),
    ] {
        if spec.get(name).is_none() {
            spec[name] = value;
        }
    }
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        spec["completions"] = json!(1);
    }
    if spec.get("parallelism").is_none() {
        spec["parallelism"] = json!(1);
    }
}

/// Adds a CPU metric to an autoscaler in version v2 that has no metrics.
pub(super) fn autoscaler_v2(object: &mut Value) {
    let Value::Object(fields) = &mut object["spec"] else { return };
    if fields.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let metric = autoscalers::cpu_metric(&json!(autoscalers::DEFAULT_CPU_PERCENT));
        fields.insert("metrics".to_owned(), json!([metric]));
    }
    if let Some(Value::Object(behavior)) = fields.get_mut("behavior") {
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]});
        let down = json!({"selectPolicy": "Max", "policies": [percent]});
        for (name, defaults) in [("scaleUp", up), ("scaleDown", down)] {
            let rules = behavior.entry(name).or_insert_with(|| json!({}));
            for (field, value) in defaults.as_object().into_iter().flatten() {
                if rules.get(field).is_none() {
                    rules[field] = value.clone();
                }
            }
        }
    }
}

/// Sets the policy types of a network policy.
pub(super) fn network_policy(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec.is_object() && spec.get("policyTypes").is_none() {
        let both = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
        spec["policyTypes"] = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
}

/// Names an object without a name by a UID.
pub(super) fn name_by_uid(writing: Writing<'_>, object: &mut Value) -> Result<()> {
    if ["name", "generateName"].iter().all(|name| metadata::text(object, name).is_empty()) {
        metadata::of(object).insert("name".to_owned(), json!(writing.core.new_uid()));
    }
    Ok(())
}

/// Completes the limits of containers: the default limit is the maximum, and the default request the default limit or the minimum.
pub(super) fn limit_range(object: &mut Value) {
    let limits = object["spec"].get_mut("limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten().filter(|limit| limit["type"] == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let Some(given) = limit[from].as_object().cloned().filter(|given| !given.is_empty()) else { continue };
            if !limit[to].is_object() {
                limit[to] = json!({});
            }
            let Value::Object(own) = &mut limit[to] else { continue };
            for (name, amount) in given {
                own.entry(name).or_insert(amount);
            }
        }
    }
}

/// Sets the API group of a role binding's users and groups.
pub(super) fn role_binding(object: &mut Value) {
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) && subject.get("apiGroup").is_none() {
            subject["apiGroup"] = json!("rbac.authorization.k8s.io");
        }
    }
}

/// Types whose texts Go always writes, although they are not required.
const ALWAYS_WRITTEN: [&str; 2] = ["PodFailurePolicyOnPodConditionsPattern", "RoleRef"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_default_belongs_to_a_known_field() {
        let document: Value = serde_json::from_str(include_str!("../registry/kubernetes.json")).unwrap();
        for (name, fields) in table() {
            let types: Vec<&Value> = document["types"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(path, _)| path.rsplit('.').next() == Some(name))
                .map(|(_, definition)| &definition["fields"])
                .collect();
            for field in fields.keys() {
                assert!(types.iter().any(|known| known.get(field).is_some()), "{name}.{field}");
            }
        }
    }

    #[test]
    fn deployment_gets_defaults_of_real_server() {
        let registry = Registry::built_in();
        let resource = registry.find("apps", "v1", "deployments").unwrap();
        let mut object = json!({"spec": {"selector": {}, "template": {"spec": {"containers": [
            {"name": "a", "image": "nginx:1.2", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}]}}}});
        fill(&resource, &mut object);
        let spec = &object["spec"];
        assert_eq!((&spec["replicas"], &spec["revisionHistoryLimit"]), (&json!(1), &json!(10)));
        assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
        let pod = &spec["template"]["spec"];
        assert_eq!((&pod["restartPolicy"], &pod["dnsPolicy"]), (&json!("Always"), &json!("ClusterFirst")));
        let container = &pod["containers"][0];
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        assert_eq!(container["resources"].get("requests"), None);
    }
}
