//! Validation of resource quotas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    field::{Causes, Field, go_struct},
    resources::{self, Scope},
};

/// Validates a quota.
pub(in crate::builtin) fn quota(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let hard = spec.field("hard");
    amounts(&hard, causes);
    let own = spec.field("scopes");
    let names: Vec<&str> = own.list().iter().filter_map(Value::as_str).collect();
    let mut outside = Outside::default();
    for name in &names {
        if causes.is_full() {
            break;
        }
        if !is_scope(name) {
            own.invalid_as(own.value.clone(), "unsupported scope", causes);
        }
        for _ in 0..outside.count(&hard, name) {
            if causes.is_full() {
                break;
            }
            own.invalid_as(own.value.clone(), "unsupported scope applied to resource", causes);
        }
    }
    conflicts(&names, &own, &own, causes);
    selector(&spec, causes);
    if let Some(old) = old {
        let before = old["spec"]["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if names.into_iter().collect::<BTreeSet<_>>() != before.collect() {
            own.invalid_as(own.value.clone(), "field is immutable", causes);
        }
    }
}

/// Validates the status of a quota.
pub(in crate::builtin) fn quota_status(object: &Value, _: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    amounts(&status.field("hard"), causes);
    amounts(&status.field("used"), causes);
}

fn amounts(list: &Field<'_, '_>, causes: &mut Causes) {
    for (name, amount) in list.entries() {
        resources::name_problems(name, &amount, Scope::Any, causes);
        if !name.contains('/') && !is_counted(name) {
            amount.invalid_as(name, "must be a standard resource for quota", causes);
        }
        resources::value(name, &amount, causes);
    }
}

/// The numbers of resources that quotas cannot count within scopes.
#[derive(Default)]
struct Outside<'v> {
    counts: BTreeMap<&'v str, usize>,
}

impl<'v> Outside<'v> {
    fn count(&mut self, hard: &Field<'_, '_>, scope: &'v str) -> usize {
        let count = || hard.entries().filter(|(resource, _)| !is_in_scope(resource, scope)).count();
        if is_scope(scope) { *self.counts.entry(scope).or_insert_with(count) } else { 0 }
    }
}

fn selector(spec: &Field<'_, '_>, causes: &mut Causes) {
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    let mut names = Vec::new();
    let mut outside = Outside::default();
    for expression in expressions.list() {
        let of = |name| expressions.field(name).with(&expression[name]);
        let (scope, operator, values) = (of("scopeName"), of("operator"), of("values"));
        if !is_scope(scope.text()) {
            scope.invalid("unsupported scope", causes);
        }
        for _ in 0..outside.count(&spec.field("hard"), scope.text()) {
            if causes.is_full() {
                break;
            }
            expressions.invalid_text(&selector_text(&expressions), "unsupported scope applied to resource", causes);
        }
        if UNVALUED.contains(&scope.text()) && operator.text() != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            operator.invalid(detail, causes);
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                values.required(detail, causes);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                values.invalid(detail, causes);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => operator.invalid("not a valid selector operator", causes),
        }
        names.push(scope.text());
    }
    conflicts(&names, &expressions, &spec.field("scopes"), causes);
}

/// Adds causes of scopes that exclude each other. The real server always shows the list of scopes, even if a selector has them.
fn conflicts(names: &[&str], at: &Field<'_, '_>, shown: &Field<'_, '_>, causes: &mut Causes) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|name| names.contains(name)) {
            at.invalid_as(shown.value.clone(), "conflicting scopes", causes);
        }
    }
}

/// Returns the text of a selector, as Go writes the struct.
fn selector_text(expressions: &Field<'_, '_>) -> String {
    let of = |expression: &Value| {
        let text = |name: &str| Value::from(expression[name].as_str().unwrap_or_default());
        let (scope, operator) = (text("scopeName"), text("operator"));
        go_struct(&[("ScopeName", &scope), ("Operator", &operator), ("Values", &expression["values"])])
    };
    let all: Vec<String> = expressions.list().iter().map(of).collect();
    format!("{{\"MatchExpressions\":[{}]}}", all.join(","))
}

fn is_scope(name: &str) -> bool {
    UNVALUED.contains(&name) || matches!(name, "PriorityClass" | "VolumeAttributesClass")
}

/// Returns whether a quota can count a resource within a scope. Unknown resources and scopes are reported elsewhere.
fn is_in_scope(resource: &str, scope: &str) -> bool {
    if !is_counted(resource) {
        return true;
    }
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ if is_scope(scope) => {
            let amount = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits."));
            resource == "pods" || matches!(amount.unwrap_or(resource), "cpu" | "memory")
        }
        _ => true,
    }
}

/// Returns whether a resource is one that quotas know.
fn is_counted(name: &str) -> bool {
    resources::is_standard(name) && name != "storage"
}

/// The scopes that have no values.
const UNVALUED: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_limit_the_resources_of_a_quota() {
        assert!(is_in_scope("pods", "BestEffort"));
        assert!(!is_in_scope("cpu", "BestEffort"));
        assert!(is_in_scope("requests.cpu", "NotBestEffort"));
        assert!(!is_in_scope("services", "PriorityClass"));
        assert!(!is_in_scope("requests.storage", "Terminating"));
        assert!(is_in_scope("requests.storage", "VolumeAttributesClass"));
        // Both are reported elsewhere.
        assert!(is_in_scope("example.com/own", "BestEffort"));
        assert!(is_in_scope("cpu", "Other"));
    }
}
