//! Validation of autoscalers.

use serde_json::Value;

use super::field::{Causes, Field};
use crate::builtin::rules::resources;

/// Validates an autoscaler.
pub(in crate::builtin) fn autoscaler(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    let lowest = i64::from(old.is_none_or(|old| old["spec"]["minReplicas"] != 0));
    if least.int().is_some_and(|least| least < lowest) {
        least.invalid(&format!("must be greater than or equal to {lowest}"), causes);
    }
    if most.number() == 0 {
        most.required("must be set and greater than 0", causes);
    } else if most.number() < 0 {
        most.invalid("must be greater than or equal to 1", causes);
    }
    if least.int().is_some_and(|least| most.number() < least) {
        most.invalid_as(most.number(), "must be greater than or equal to `minReplicas`", causes);
    }
    let target = spec.field("scaleTargetRef");
    let group = match old.map(|old| &old["spec"]["scaleTargetRef"]) {
        Some(old) if ["apiVersion", "kind"].iter().all(|name| text(old, name) == text(target.value, name)) => {
            Group::Any
        }
        _ if target.field("kind").text() == "ReplicationController" => Group::Optional,
        _ => Group::Required,
    };
    reference(&target, group, causes);
    metrics(&spec, old, causes);
    let behavior = spec.field("behavior");
    for name in ["scaleUp", "scaleDown"] {
        if let Some(rules) = behavior.set(name) {
            scaling(&rules, causes);
        }
    }
}

/// Whether a reference must name a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Required,
    Optional,
    Any,
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn reference(reference: &Field<'_, '_>, group: Group, causes: &mut Causes) {
    for name in ["kind", "name"] {
        let field = reference.field(name);
        if field.not_empty(causes) {
            field.segment(causes);
        }
    }
    let version = reference.field("apiVersion");
    if let Some(problem) = version_problem(version.text(), group) {
        version.invalid(&problem, causes);
    }
}

fn version_problem(version: &str, group: Group) -> Option<String> {
    if group == Group::Any {
        return None;
    }
    match version.matches('/').count() {
        0 | 1 if group == Group::Optional => None,
        1 if !version.starts_with('/') => None,
        0 | 1 => Some("apiVersion must specify API group".to_owned()),
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn metrics(spec: &Field<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let was_invalid = old.is_some_and(|old| {
        let metrics = old["spec"]["metrics"].as_array().into_iter().flatten();
        let mut objects = metrics.filter(|metric| metric["type"] == "Object").map(|metric| &metric["object"]);
        objects.any(|object| version_problem(text(&object["describedObject"], "apiVersion"), Group::Optional).is_some())
    });
    let group = if was_invalid { Group::Any } else { Group::Optional };
    let metrics = spec.field("metrics");
    metrics.items().for_each(|item| metric(&item, group, causes));
    let is_external = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if spec.field("minReplicas").int() == Some(0) && !metrics.list().iter().any(is_external) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbidden(detail, causes);
    }
}

fn metric(item: &Field<'_, '_>, group: Group, causes: &mut Causes) {
    let kind = item.field("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric source type", causes);
    }
    if !TYPES.contains(&kind.text()) {
        kind.not_supported(&TYPES, causes);
    }
    let mut present: Vec<&str> = Vec::new();
    for name in ["object", "external", "pods", "resource", "containerResource"] {
        let Some(source) = item.set(name) else { continue };
        present.push(name);
        if present.len() == 1 {
            metric_source(name, &source, group, causes);
        }
    }
    let expected = match kind.text() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => {
            kind.not_supported(&TYPES, causes);
            ""
        }
    };
    if !expected.is_empty() && !present.contains(&expected) {
        item.field(expected).required("must populate information for the given metric source", causes);
    }
    if present.len() != 1 {
        for name in present.iter().filter(|name| **name != expected) {
            item.field(name).forbidden("must populate the given metric source only", causes);
        }
    }
}

fn metric_source(name: &str, source: &Field<'_, '_>, group: Group, causes: &mut Causes) {
    let target = source.field("target");
    let (value, average, utilization) =
        (target.field("value"), target.field("averageValue"), target.field("averageUtilization"));
    match name {
        "object" => {
            reference(&source.field("describedObject"), group, causes);
            identifier(&source.field("metric"), causes);
            metric_target(&target, causes);
            if !value.is_set() && !average.is_set() {
                average.required("must set either a target value or averageValue", causes);
            }
        }
        "external" => {
            identifier(&source.field("metric"), causes);
            metric_target(&target, causes);
            if !value.is_set() && !average.is_set() {
                average.required("must set either a target value for metric or a per-pod target", causes);
            }
            if value.is_set() && average.is_set() {
                value.forbidden("may not set both a target value for metric and a per-pod target", causes);
            }
        }
        "pods" => {
            identifier(&source.field("metric"), causes);
            metric_target(&target, causes);
            if !average.is_set() {
                average.required("must specify a positive target averageValue", causes);
            }
        }
        _ => {
            let resource = source.field("name");
            if resource.text().is_empty() {
                resource.required("must specify a resource name", causes);
            } else if name == "containerResource" {
                resources::container_name(&resource, causes);
            }
            if name == "containerResource" {
                let container = source.field("container");
                if container.text().is_empty() {
                    container.required("must specify a container", causes);
                } else {
                    container.label(causes);
                }
            }
            metric_target(&target, causes);
            if !utilization.is_set() && !average.is_set() {
                utilization.required("must set either a target raw value or a target utilization", causes);
            }
            if utilization.is_set() && average.is_set() {
                average.forbidden("may not set both a target raw value and a target utilization", causes);
            }
        }
    }
}

fn metric_target(target: &Field<'_, '_>, causes: &mut Causes) {
    let kind = target.field("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric target type", causes);
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        kind.invalid("must be either Utilization, Value, or AverageValue", causes);
    }
    for name in ["value", "averageValue"] {
        let amount = target.field(name);
        if amount.quantity().is_some_and(|amount| amount.is_zero() || amount.is_negative()) {
            amount.invalid("must be positive", causes);
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.int().is_some_and(|percent| percent < 1) {
        utilization.invalid("must be greater than 0", causes);
    }
}

fn identifier(metric: &Field<'_, '_>, causes: &mut Causes) {
    let name = metric.field("name");
    if name.text().is_empty() {
        name.required("must specify a metric name", causes);
    } else {
        name.segment(causes);
    }
}

fn scaling(rules: &Field<'_, '_>, causes: &mut Causes) {
    let window = rules.field("stabilizationWindowSeconds");
    if window.number() < 0 {
        window.invalid("must be greater than or equal to zero", causes);
    }
    if window.number() > 3600 {
        window.invalid("must be less than or equal to 3600", causes);
    }
    rules.field("selectPolicy").optional_one_of(&["Disabled", "Max", "Min"], causes);
    let policies = rules.field("policies");
    if policies.is_empty() {
        policies.required("must specify at least one Policy", causes);
    }
    for policy in policies.items() {
        let (kind, value, period) = (policy.field("type"), policy.field("value"), policy.field("periodSeconds"));
        if !["Percent", "Pods"].contains(&kind.text()) {
            kind.not_supported(&["Percent", "Pods"], causes);
        }
        value.positive(causes);
        period.positive(causes);
        if period.number() > 1800 {
            period.invalid("must be less than or equal to 1800", causes);
        }
    }
    rules.field("tolerance").not_negative_quantity(causes);
}

/// Validates the status of an autoscaler.
pub(in crate::builtin) fn autoscaler_status(object: &Value, _: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    status.field("currentReplicas").not_negative(causes);
    status.field("desiredReplicas").not_negative(causes);
}

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
