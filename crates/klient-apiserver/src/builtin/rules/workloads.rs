//! Validation of deployments, replica sets, stateful sets, daemon sets, replication controllers, pod templates and controller revisions.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    claims, counts,
    field::{Causes, Field, go_struct},
    same::is_same,
    selectors, template,
};

/// Validates a deployment.
pub(in crate::builtin) fn deployment(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    spec.field("replicas").not_negative(causes);
    selector_and_template(&spec, "deployment", "ReplicaSet", causes);
    let strategy = spec.field("strategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" if rolling.is_set() => {
            rolling.forbidden("may not be specified when strategy `type` is 'Recreate'", causes);
        }
        "Recreate" => {}
        "RollingUpdate" if !rolling.is_set() => {
            rolling.required("this should be defaulted and never be nil", causes);
        }
        "RollingUpdate" => rolling_deployment(&rolling, causes),
        _ => strategy.not_supported_text(&strategy_text(&strategy), &["Recreate", "RollingUpdate"], causes),
    }
    spec.field("minReadySeconds").not_negative(causes);
    spec.field("revisionHistoryLimit").not_negative(causes);
    if let Some(deadline) = spec.set("progressDeadlineSeconds") {
        deadline.not_negative(causes);
        if deadline.number() <= spec.field("minReadySeconds").number() {
            deadline.invalid("must be greater than minReadySeconds", causes);
        }
    }
    same_selector(&spec, old, causes);
}

fn rolling_deployment(rolling: &Field<'_, '_>, causes: &mut Causes) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    unavailable.count_or_percent(causes);
    surge.count_or_percent(causes);
    if unavailable.count() == 0 && surge.count() == 0 {
        unavailable.invalid("may not be 0 when `maxSurge` is 0", causes);
    }
    unavailable.at_most_all(causes);
}

/// Returns the text of an update strategy with its fields in Go.
fn strategy_text(strategy: &Field<'_, '_>) -> String {
    let rolling = strategy.field("rollingUpdate");
    let rolling = match rolling.value {
        Value::Null => "null".to_owned(),
        _ if rolling.field("partition").is_set() => {
            let partition = Value::from(rolling.field("partition").number());
            go_struct(&[("Partition", &partition), ("MaxUnavailable", rolling.field("maxUnavailable").value)])
        }
        _ => {
            let of = |name: &str| match rolling.field(name).value {
                Value::Null => Value::from(0),
                value => value.clone(),
            };
            go_struct(&[("MaxUnavailable", &of("maxUnavailable")), ("MaxSurge", &of("maxSurge"))])
        }
    };
    format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", Value::from(strategy.field("type").text()))
}

/// Validates a replica set.
pub(in crate::builtin) fn replica_set(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    spec.field("replicas").not_negative(causes);
    spec.field("minReadySeconds").not_negative(causes);
    selector_and_template(&spec, "deployment", "ReplicaSet", causes);
    same_selector(&spec, old, causes);
}

/// Validates a replication controller, whose selector is a map of labels.
pub(in crate::builtin) fn replication_controller(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    spec.field("minReadySeconds").not_negative(causes);
    let (selector, pods) = (spec.field("selector"), spec.field("template"));
    if selector.is_empty() {
        selector.required("", causes);
    }
    spec.field("replicas").not_negative(causes);
    if !pods.is_set() {
        return pods.required("", causes);
    }
    if selector.entries().any(|(label, value)| pods.value["metadata"]["labels"][label] != *value.value) {
        not_selected(&pods, causes);
    }
    template::validate(&pods, causes);
    long_running(&pods, "ReplicationController", causes);
}

/// Validates a pod template.
pub(in crate::builtin) fn pod_template(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    template::validate(&Field::of(object, "template"), causes);
}

/// Validates a controller revision.
pub(in crate::builtin) fn controller_revision(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    Field::of(object, "revision").not_negative(causes);
    let data = Field::of(object, "data");
    if let Some(old) = old {
        data.immutable(&old["data"], causes);
    } else if !data.is_set() {
        data.required("data is mandatory", causes);
    } else if !data.value.is_object() {
        data.required("data must be a valid JSON object", causes);
    }
}

fn selector_and_template(spec: &Field<'_, '_>, empty_for: &str, kind: &str, causes: &mut Causes) {
    let selector = spec.field("selector");
    selector_rules(&selector, empty_for, causes);
    let pods = spec.field("template");
    let labels = &pods.value["metadata"]["labels"];
    match selectors::selects(selector.value, labels) {
        None => selector.invalid_text(&selectors::text(selector.value), "invalid label selector", causes),
        Some(selects) => {
            if !selects && (!selector.is_set() || !selectors::is_empty(selector.value)) {
                not_selected(&pods, causes);
            }
            template::validate(&pods, causes);
            long_running(&pods, kind, causes);
        }
    }
}

fn selector_rules(selector: &Field<'_, '_>, empty_for: &str, causes: &mut Causes) {
    if !selector.is_set() {
        return selector.required("", causes);
    }
    selector.label_selector(causes);
    if selectors::is_empty(selector.value) {
        let detail = format!("empty selector is invalid for {empty_for}");
        selector.invalid_text(&selectors::text(selector.value), &detail, causes);
    }
}

fn not_selected(pods: &Field<'_, '_>, causes: &mut Causes) {
    let metadata = pods.field("metadata");
    let labels = metadata.field("labels");
    labels.invalid_as(labels.value.clone(), "`selector` does not match template `labels`", causes);
}

/// Validates that pods run until they are deleted.
fn long_running(pods: &Field<'_, '_>, kind: &str, causes: &mut Causes) {
    let spec = pods.field("spec");
    if spec.field("restartPolicy").text() != "Always" {
        spec.field("restartPolicy").not_supported(&["Always"], causes);
    }
    if spec.field("activeDeadlineSeconds").is_set() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        spec.field("activeDeadlineSeconds").forbidden(&detail, causes);
    }
}

fn same_selector(spec: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let selector = spec.field("selector");
    if old.is_some_and(|old| !is_same(&old["spec"]["selector"], selector.value)) {
        selector.invalid_text(&selectors::text(selector.value), "field is immutable", causes);
    }
}

/// Validates a stateful set.
pub(in crate::builtin) fn stateful_set(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let skips_template = old.is_some_and(|old| {
        let mut causes = Causes::new();
        stateful_spec(&Field::of(old, "spec"), true, false, &mut causes);
        !causes.is_empty()
    });
    stateful_spec(&spec, old.is_some(), skips_template, causes);
    let Some(old) = old else { return };
    let mut kept = object["spec"].clone();
    for name in MUTABLE {
        kept[name] = old["spec"][name].clone();
    }
    if !is_same(&kept, &old["spec"]) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        spec.forbidden(detail, causes);
    }
}

fn stateful_spec(spec: &Field<'_, '_>, is_update: bool, skips_template: bool, causes: &mut Causes) {
    let policy = spec.field("podManagementPolicy");
    match policy.text() {
        "" => policy.required("", causes),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'", causes),
    }
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "" => strategy.required("", causes),
        "OnDelete" if rolling.is_set() => {
            let partition = Value::from(rolling.field("partition").number());
            let shown =
                go_struct(&[("Partition", &partition), ("MaxUnavailable", rolling.field("maxUnavailable").value)]);
            rolling.invalid_text(&shown, "only allowed for updateStrategy 'RollingUpdate'", causes);
        }
        "OnDelete" => {}
        "RollingUpdate" => rolling.field("partition").not_negative(causes),
        _ => strategy.invalid_text(&strategy_text(&strategy), "must be 'RollingUpdate' or 'OnDelete'", causes),
    }
    for name in ["whenDeleted", "whenScaled"] {
        let retention = spec.field("persistentVolumeClaimRetentionPolicy");
        if retention.is_set() && !["Retain", "Delete"].contains(&retention.field(name).text()) {
            retention.field(name).not_supported(&["Retain", "Delete"], causes);
        }
    }
    if !is_update {
        for claim in spec.field("volumeClaimTemplates").items() {
            claims::spec(&claim.field("spec"), false, causes);
        }
    }
    spec.field("replicas").not_negative(causes);
    spec.field("minReadySeconds").not_negative(causes);
    spec.field("ordinals").field("start").not_negative(causes);
    if !is_update && !spec.field("serviceName").text().is_empty() {
        spec.field("serviceName").label(causes);
    }
    stateful_template(spec, skips_template, causes);
}

fn stateful_template(spec: &Field<'_, '_>, skips_template: bool, causes: &mut Causes) {
    let selector = spec.field("selector");
    selector_rules(&selector, "statefulset", causes);
    let pods = spec.field("template");
    match selectors::selects(selector.value, &pods.value["metadata"]["labels"]) {
        None => selector.invalid_text(&selectors::text(selector.value), "", causes),
        Some(selects) => {
            if !selects && (!selector.is_set() || !selectors::is_empty(selector.value)) {
                not_selected(&pods, causes);
            }
            let changed = with_claims(spec.value);
            let shown = pods.with(changed.as_ref().unwrap_or(pods.value));
            if !skips_template {
                template::validate(&shown, causes);
            }
            template::metadata_again(&shown, causes);
        }
    }
    long_running(&pods, "StatefulSet", causes);
}

/// Returns the template with the claims of the set as volumes, and without names that the set chooses.
fn with_claims(spec: &Value) -> Option<Value> {
    let claims = spec["volumeClaimTemplates"].as_array().map_or(&[][..], Vec::as_slice);
    let pod = &spec["template"]["spec"];
    if claims.is_empty() && pod.get("subdomain").is_none() && pod.get("hostname").is_none() {
        return None;
    }
    let mut template = spec["template"].clone();
    let pod = template.get_mut("spec")?.as_object_mut()?;
    pod.remove("subdomain");
    pod.remove("hostname");
    let name_of = |claim: &Value| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = claims.iter().map(name_of).collect();
    let last: HashMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let mut volumes: Vec<Value> = names
        .iter()
        .enumerate()
        .filter(|(index, name)| last.get(name.as_str()) == Some(index))
        .map(|(_, name)| serde_json::json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_replaced = |volume: &Value| last.contains_key(volume["name"].as_str().unwrap_or_default());
    volumes.extend(own.into_iter().filter(|volume| !is_replaced(volume)));
    if !volumes.is_empty() {
        pod.insert("volumes".to_owned(), Value::Array(volumes));
    }
    Some(template)
}

/// Validates a daemon set.
pub(in crate::builtin) fn daemon_set(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    same_selector(&spec, old, causes);
    let (selector, pods) = (spec.field("selector"), spec.field("template"));
    selector.label_selector(causes);
    if selectors::selects(selector.value, &pods.value["metadata"]["labels"]) == Some(false) {
        not_selected(&pods, causes);
    }
    if selector.is_set() && selectors::is_empty(selector.value) {
        let detail = "empty selector is invalid for daemonset";
        selector.invalid_text(&selectors::text(selector.value), detail, causes);
    }
    template::validate(&pods, causes);
    long_running(&pods, "DaemonSet", causes);
    spec.field("minReadySeconds").not_negative(causes);
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required("", causes),
        "RollingUpdate" => rolling_daemon_set(&rolling, causes),
        _ => strategy.not_supported_text(&strategy_text(&strategy), &["RollingUpdate", "OnDelete"], causes),
    }
    spec.field("revisionHistoryLimit").not_negative(causes);
}

fn rolling_daemon_set(rolling: &Field<'_, '_>, causes: &mut Causes) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    unavailable.count_or_percent(causes);
    surge.count_or_percent(causes);
    unavailable.at_most_all(causes);
    surge.at_most_all(causes);
    match (unavailable.count() != 0, surge.count() != 0) {
        (true, true) => surge.invalid("may not be set when maxUnavailable is non-zero", causes),
        (false, false) => unavailable.required("cannot be 0 when maxSurge is 0", causes),
        _ => {}
    }
}

/// Validates the status of a deployment.
pub(in crate::builtin) fn deployment_status(object: &Value, old: &Value, causes: &mut Causes) {
    let counters = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let below = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    counts::replicas(object, &counters, &below, "readyReplicas", causes);
    counts::collisions(object, old, causes);
}

/// Validates the status of a replica set, or of a replication controller, which has no `terminatingReplicas`.
pub(in crate::builtin) fn replica_set_status(object: &Value, _: &Value, causes: &mut Causes) {
    let counters = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let below = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    counts::replicas(object, &counters, &below, "readyReplicas", causes);
}

/// Validates the status of a stateful set.
pub(in crate::builtin) fn stateful_set_status(object: &Value, old: &Value, causes: &mut Causes) {
    let counters = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let below = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    counts::replicas(object, &counters, &below, "status.readyReplicas", causes);
    counts::collisions(object, old, causes);
}

/// Validates the status of a daemon set.
pub(in crate::builtin) fn daemon_set_status(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    for name in [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ] {
        status.field(name).not_negative(causes);
    }
    counts::collisions(object, old, causes);
}

/// The fields of a stateful set that can change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];
