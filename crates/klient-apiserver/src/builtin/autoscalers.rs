//! Autoscalers, which are stored and validated in version v2. Version v1 has what it has no fields for in annotations.
//!
//! The server converts each request in version v1 to version v2 and back, so that the annotations are always those of its own conversion.

mod read;
mod structs;
mod write;

use serde_json::{Map, Value, json};

use self::structs::{BEHAVIOR, CONDITIONS, CURRENT_METRICS};

/// Converts an autoscaler of version v1 to version v2.
///
/// An annotation that is malformed has no effect, and no annotation of version v1 is left.
pub(super) fn to_v2(object: &mut Value) {
    let annotations = take_annotations(object);
    let annotation = |name: &str| annotations.get(name).and_then(Value::as_str);
    let others = annotation(METRICS).and_then(|text| read::list(text, &structs::METRICS));
    let behavior = annotation(BEHAVIORS).and_then(|text| read::object(text, &BEHAVIOR));
    if let Some(spec) = fields(object, "spec") {
        let mut metrics = others.unwrap_or_default();
        metrics.iter_mut().for_each(set_target_type);
        match spec.remove("targetCPUUtilizationPercentage").filter(|percent| !percent.is_null()) {
            Some(percent) => metrics.push(cpu_metric(&percent)),
            None if metrics.is_empty() => metrics.push(cpu_metric(&json!(DEFAULT_CPU_PERCENT))),
            None => {}
        }
        spec.insert("metrics".to_owned(), Value::from(metrics));
        if let Some(behavior) = behavior.filter(|behavior| *behavior != json!({})) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    let conditions = annotation(CONDITION_LIST).and_then(|text| read::list(text, &CONDITIONS));
    let current = annotation(CURRENT).and_then(|text| read::list(text, &CURRENT_METRICS));
    if let Some(status) = fields(object, "status") {
        let percent = status.remove("currentCPUUtilizationPercentage").filter(|percent| !percent.is_null());
        let of_cpu = |percent| json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}]);
        // The annotation says more than the field.
        if let Some(current) = current.map(Value::from).or_else(|| percent.map(of_cpu)) {
            status.insert("currentMetrics".to_owned(), current);
        }
        if let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) {
            status.insert("conditions".to_owned(), Value::from(conditions));
        }
    }
}

/// Converts an autoscaler of version v2 to version v1.
pub(super) fn to_v1(object: &mut Value) {
    take_annotations(object);
    let mut annotations: Vec<(&str, String)> = Vec::new();
    if let Some(spec) = fields(object, "spec") {
        let metrics = take_list(spec, "metrics");
        let (of_cpu, others): (Vec<Value>, Vec<Value>) =
            metrics.into_iter().partition(|metric| is_cpu(metric) && has_percent(metric, "target"));
        if let Some(first) = of_cpu.first() {
            let percent = first["resource"]["target"]["averageUtilization"].clone();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        if !others.is_empty() {
            annotations.push((METRICS, write::list(&others, &structs::METRICS)));
        }
        if let Some(behavior) = spec.remove("behavior").filter(|behavior| !behavior.is_null()) {
            annotations.push((BEHAVIORS, write::object(&behavior, &BEHAVIOR)));
        }
    }
    if let Some(status) = fields(object, "status") {
        let current = take_list(status, "currentMetrics");
        if let Some(last) = current.iter().rfind(|metric| is_cpu(metric) && has_percent(metric, "current")) {
            let percent = last["resource"]["current"]["averageUtilization"].clone();
            status.insert("currentCPUUtilizationPercentage".to_owned(), percent);
        }
        if !current.is_empty() {
            annotations.push((CURRENT, write::list(&current, &CURRENT_METRICS)));
        }
        let conditions = take_list(status, "conditions");
        if !conditions.is_empty() {
            annotations.push((CONDITION_LIST, write::list(&conditions, &CONDITIONS)));
        }
    }
    if annotations.is_empty() {
        return;
    }
    let metadata = crate::metadata::of(object);
    if let Value::Object(fields) = metadata.entry("annotations").or_insert_with(|| json!({})) {
        fields.extend(annotations.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))));
    }
}

/// Removes the annotations of version v1 from an autoscaler of version v2.
pub(super) fn drop_annotations(object: &mut Value) {
    take_annotations(object);
}

/// Returns the fields of a part of an object, which is created if it is absent.
fn fields<'v>(object: &'v mut Value, part: &str) -> Option<&'v mut Map<String, Value>> {
    object.as_object_mut()?.entry(part).or_insert_with(|| json!({})).as_object_mut()
}

fn take_list(fields: &mut Map<String, Value>, name: &str) -> Vec<Value> {
    match fields.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Removes the annotations that belong to the conversion, and returns them.
fn take_annotations(object: &mut Value) -> Map<String, Value> {
    let mut taken = Map::new();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return taken };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return taken };
    for name in ANNOTATIONS {
        if let Some(value) = annotations.remove(name) {
            taken.insert(name.to_owned(), value);
        }
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken
}

/// Returns a metric that aims at a CPU utilization.
pub(super) fn cpu_metric(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

fn has_percent(metric: &Value, part: &str) -> bool {
    !metric["resource"][part]["averageUtilization"].is_null()
}

/// Sets the type of a metric's targets, which version v1 does not have. It follows from the values that they have.
fn set_target_type(metric: &mut Value) {
    let Value::Object(sources) = metric else { return };
    for (name, source) in sources {
        let Value::Object(source) = source else { continue };
        let Value::Object(target) = source.entry("target").or_insert_with(|| json!({})) else { continue };
        let kind = match name.as_str() {
            "resource" | "containerResource" if target.contains_key("averageUtilization") => "Utilization",
            "object" if target.contains_key("averageValue") => {
                // Version v1 cannot omit the value, so that zero stands for none.
                let amount = target.get("value").and_then(write::quantity);
                if amount.is_some_and(|amount| amount.is_zero()) {
                    target.remove("value");
                }
                "AverageValue"
            }
            "object" => "Value",
            "external" if target.contains_key("value") => "Value",
            _ => "AverageValue",
        };
        target.insert("type".to_owned(), json!(kind));
    }
}

/// The CPU utilization that autoscalers aim at by default, in percent.
pub(super) const DEFAULT_CPU_PERCENT: u32 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITION_LIST: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIORS: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The annotations that a conversion removes. The tolerances are part of the behavior, and are never written.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITION_LIST,
    BEHAVIORS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

#[cfg(test)]
mod tests;
