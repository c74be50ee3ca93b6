//! Validation of roles and role bindings.

use klient_core::StatusCause;
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Validates the rules of a role or cluster role.
pub(in crate::builtin) fn role(object: &Value, _: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let is_namespaced = object["kind"] == "Role";
    for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        let is_empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
        if is_empty("verbs") {
            causes.push(StatusCause::required(at("verbs"), "verbs must contain at least one value"));
        }
        if !is_empty("nonResourceURLs") {
            let urls = || rule["nonResourceURLs"].clone();
            if is_namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                causes.push(StatusCause::invalid(at("nonResourceURLs"), urls(), detail));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_empty(field)) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(StatusCause::invalid(at("nonResourceURLs"), urls(), detail));
            }
            continue;
        }
        if is_empty("apiGroups") {
            let detail = "resource rules must supply at least one api group";
            causes.push(StatusCause::required(at("apiGroups"), detail));
        }
        if is_empty("resources") {
            let detail = "resource rules must supply at least one resource";
            causes.push(StatusCause::required(at("resources"), detail));
        }
    }
}

/// Validates a role binding or cluster role binding, whose role cannot change.
pub(in crate::builtin) fn binding(object: &Value, old: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let is_namespaced = object["kind"] == "RoleBinding";
    let role = &object["roleRef"];
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    if role["apiGroup"] != GROUP {
        causes.push(StatusCause::not_supported("roleRef.apiGroup", text(role, "apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind").as_str()) {
        causes.push(StatusCause::not_supported("roleRef.kind", text(role, "kind"), kinds));
    }
    if text(role, "name").is_empty() {
        causes.push(StatusCause::required("roleRef.name", ""));
    }
    for (index, subject) in object["subjects"].as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("subjects[{index}].{field}");
        if text(subject, "name").is_empty() {
            causes.push(StatusCause::required(at("name"), ""));
        }
        let group = text(subject, "apiGroup");
        match text(subject, "kind").as_str() {
            "ServiceAccount" => {
                if !group.is_empty() {
                    causes.push(StatusCause::not_supported(at("apiGroup"), group, &[""]));
                }
                if !is_namespaced && text(subject, "namespace").is_empty() {
                    causes.push(StatusCause::required(at("namespace"), ""));
                }
            }
            "User" | "Group" if group != GROUP => {
                causes.push(StatusCause::not_supported(at("apiGroup"), group, &[GROUP]));
            }
            "User" | "Group" => {}
            other => {
                causes.push(StatusCause::not_supported(at("kind"), other, &["ServiceAccount", "User", "Group"]));
            }
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        causes.push(StatusCause::invalid("roleRef", role.clone(), "cannot change roleRef"));
    }
}
