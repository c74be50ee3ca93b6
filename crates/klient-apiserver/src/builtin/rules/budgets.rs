//! Validation of disruption budgets.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    field::{Causes, Field},
    selectors,
};

/// Validates a disruption budget.
pub(in crate::builtin) fn budget(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            least.value,
            selectors::text(spec.field("selector").value),
            most.value,
            spec.field("unhealthyPodEvictionPolicy").value
        );
        spec.invalid_text(&shown, "minAvailable and maxUnavailable cannot be both set", causes);
    }
    for count in [least, most] {
        if count.is_set() {
            count.count_or_percent(causes);
            count.at_most_all(causes);
        }
    }
    spec.field("selector").label_selector(causes);
    spec.field("unhealthyPodEvictionPolicy").optional_one_of(&["AlwaysAllow", "IfHealthyBudget"], causes);
}

/// Validates the status of a disruption budget.
pub(in crate::builtin) fn budget_status(object: &Value, _: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    conditions(&status.field("conditions"), causes);
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        status.field(name).not_negative(causes);
    }
}

/// Validates conditions of the common type.
fn conditions(conditions: &Field<'_, '_>, causes: &mut Causes) {
    let mut types: HashSet<&str> = HashSet::new();
    for condition in conditions.items() {
        let (kind, reason) = (condition.field("type"), condition.field("reason"));
        if types.contains(&kind.text()) {
            kind.duplicate(causes);
        }
        types.insert(kind.text());
        kind.qualified_name(causes);
        if !["False", "True", "Unknown"].contains(&condition.field("status").text()) {
            condition.field("status").not_supported(&["False", "True", "Unknown"], causes);
        }
        let generation = condition.field("observedGeneration");
        if generation.number() < 0 {
            generation.invalid("must be greater than or equal to zero", causes);
        }
        condition.field("lastTransitionTime").not_empty(causes);
        if reason.not_empty(causes) {
            if !is_reason(reason.text()) {
                reason.invalid(REASON, causes);
            }
            if reason.text().len() > 1024 {
                reason.too_long(1024, causes);
            }
        }
        if condition.field("message").text().len() > 32 << 10 {
            condition.field("message").too_long(32 << 10, causes);
        }
    }
}

fn is_reason(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte))
}

const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
