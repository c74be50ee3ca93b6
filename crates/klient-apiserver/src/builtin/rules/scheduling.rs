//! Validation of the rules that choose the node of a pod: affinities, tolerations, and spread over nodes.

use std::collections::HashSet;

use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

/// Validates the affinities of a pod.
pub(super) fn affinity(affinity: &Field<'_, '_>, causes: &mut Causes) {
    let of_node = affinity.field("nodeAffinity");
    if let Some(required) = of_node.set(REQUIRED) {
        required.node_selector(causes);
    }
    for term in of_node.field(PREFERRED).items() {
        weight(&term, causes);
        term.field("preference").node_selector_term(false, causes);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let of_pods = affinity.field(name);
        of_pods.field(REQUIRED).items().for_each(|term| pod_term(&term, causes));
        for term in of_pods.field(PREFERRED).items() {
            weight(&term, causes);
            pod_term(&term.field("podAffinityTerm"), causes);
        }
    }
}

fn weight(term: &Field<'_, '_>, causes: &mut Causes) {
    let weight = term.field("weight");
    if !(1..=100).contains(&weight.number()) {
        weight.invalid_as(weight.number(), "must be in the range 1-100", causes);
    }
}

fn pod_term(term: &Field<'_, '_>, causes: &mut Causes) {
    term.field("labelSelector").label_selector(causes);
    term.field("namespaceSelector").label_selector(causes);
    for namespace in term.field("namespaces").list() {
        term.field("namespace").with(namespace).label(causes);
    }
    let selector = term.field("labelSelector");
    label_keys(term, &selector, causes);
    let key = term.field("topologyKey");
    if key.text().is_empty() {
        key.required("can not be empty", causes);
    }
    key.qualified_name(causes);
}

/// Validates the keys of labels that a selector gets from the pod itself.
fn label_keys(at: &Field<'_, '_>, selector: &Field<'_, '_>, causes: &mut Causes) {
    let matching = at.field("matchLabelKeys");
    let mismatching = at.field("mismatchLabelKeys");
    for keys in [&matching, &mismatching] {
        if keys.is_empty() {
            continue;
        }
        if selector.is_set() {
            keys.items().for_each(|key| key.qualified_name(causes));
        } else {
            keys.forbidden("must not be specified when labelSelector is not set", causes);
        }
    }
    let mut seen: HashSet<&str> = selector.field("matchLabels").entries().map(|(key, _)| key).collect();
    for expression in selector.field("matchExpressions").list() {
        let key = expression["key"].as_str().unwrap_or_default();
        let position = matching.list().iter().rposition(|known| known == key);
        if let Some(position) = position.filter(|_| seen.contains(&key)) {
            at.index(position).invalid_as(key, "exists in both matchLabelKeys and labelSelector", causes);
        }
        seen.insert(key);
    }
    for key in matching.items() {
        if mismatching.list().iter().any(|other| other == key.value) {
            key.invalid("exists in both matchLabelKeys and mismatchLabelKeys", causes);
        }
    }
}

/// Validates tolerations.
pub(super) fn tolerations(tolerations: &Field<'_, '_>, causes: &mut Causes) {
    for toleration in tolerations.items() {
        let (key, operator, effect) =
            (toleration.field("key"), toleration.field("operator"), toleration.field("effect"));
        let value = toleration.field("value").text();
        if !key.text().is_empty() {
            key.qualified_name(causes);
        } else if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            operator.invalid(detail, causes);
        }
        if toleration.field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set", causes);
        }
        match operator.text() {
            "Equal" | "" => {
                let problems = formats::label_value_problems(value);
                if !problems.is_empty() {
                    operator.invalid_as(value, &problems.join(";"), causes);
                }
            }
            "Exists" if !value.is_empty() => {
                operator.invalid_as(value, "value must be empty when `operator` is 'Exists'", causes);
            }
            "Exists" => {}
            "Lt" | "Gt" => operator.not_supported(&["Equal", "Exists", "Lt", "Gt"], causes),
            _ => operator.not_supported(&["Equal", "Exists"], causes),
        }
        if !effect.text().is_empty() {
            effect.optional_one_of(&EFFECTS, causes);
        }
    }
}

/// Validates the taints of a node.
pub(super) fn taints(taints: &Field<'_, '_>, causes: &mut Causes) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.field("key"), taint.field("value"), taint.field("effect"));
        key.qualified_name(causes);
        let problems = formats::label_value_problems(value.text());
        if !problems.is_empty() {
            value.invalid(&problems.join(";"), causes);
        }
        effect.one_of(&EFFECTS, causes);
        if seen.contains(&(effect.text(), key.text())) {
            let text = |field: &Field<'_, '_>| Value::from(field.text());
            let shown = super::field::go_struct(&[
                ("Key", &text(&key)),
                ("Value", &text(&value)),
                ("Effect", &text(&effect)),
                ("TimeAdded", taint.field("timeAdded").value),
            ]);
            taint.duplicate_text(&format!("{shown}: taints must be unique by key and effect pair"), causes);
        }
        seen.insert((effect.text(), key.text()));
    }
}

/// Validates the spread of pods over nodes.
pub(super) fn spread(constraints: &Field<'_, '_>, causes: &mut Causes) {
    for (index, constraint) in constraints.items().enumerate() {
        constraint.field("maxSkew").positive(causes);
        let (key, action) = (constraint.field("topologyKey"), constraint.field("whenUnsatisfiable"));
        if key.text().is_empty() {
            key.required("can not be empty", causes);
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&action.text()) {
            action.not_supported(&["DoNotSchedule", "ScheduleAnyway"], causes);
        }
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let is_same = |other: &Value| {
            text(other, "topologyKey") == key.text() && text(other, "whenUnsatisfiable") == action.text()
        };
        if constraints.list()[index + 1..].iter().any(is_same) {
            let shown = format!("{{{}, {}}}", key.text(), action.text());
            constraint.field("{topologyKey, whenUnsatisfiable}").duplicate_as(shown, causes);
        }
        if let Some(domains) = constraint.set("minDomains") {
            domains.positive(causes);
            if action.text() != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.text());
                domains.invalid(&detail, causes);
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.field(name).optional_one_of(&["Honor", "Ignore"], causes);
        }
        let selector = constraint.field("labelSelector");
        label_keys(&constraint, &selector, causes);
        selector.label_selector(causes);
    }
}

pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
