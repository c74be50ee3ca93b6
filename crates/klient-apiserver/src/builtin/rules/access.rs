//! Validation of roles and role bindings.

use serde_json::Value;

use super::{
    field::{Causes, Field, go_struct},
    selectors,
};

/// Validates a role.
pub(in crate::builtin) fn role(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    rules(object, true, causes);
}

/// Validates a cluster role.
pub(in crate::builtin) fn cluster_role(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    rules(object, false, causes);
    let aggregation = Field::of(object, "aggregationRule");
    if !aggregation.is_set() {
        return;
    }
    let list = aggregation.field("clusterRoleSelectors");
    if list.is_empty() {
        list.required("at least one clusterRoleSelector required if aggregationRule is non-nil", causes);
    }
    for selector in list.items() {
        selector.label_selector(causes);
        if selectors::selects(selector.value, &Value::Null).is_none() {
            selector.invalid_text("null", "invalid label selector.", causes);
        }
    }
}

fn rules(object: &Value, is_namespaced: bool, causes: &mut Causes) {
    for rule in Field::of(object, "rules").items() {
        let urls = rule.field("nonResourceURLs");
        if rule.field("verbs").is_empty() {
            rule.field("verbs").required("verbs must contain at least one value", causes);
        }
        if !urls.is_empty() {
            if is_namespaced {
                urls.invalid("namespaced rules cannot apply to non-resource URLs", causes);
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !rule.field(name).is_empty()) {
                urls.invalid("rules cannot apply to both regular resources and non-resource URLs", causes);
            }
            continue;
        }
        if rule.field("apiGroups").is_empty() {
            rule.field("apiGroups").required("resource rules must supply at least one api group", causes);
        }
        if rule.field("resources").is_empty() {
            rule.field("resources").required("resource rules must supply at least one resource", causes);
        }
    }
}

/// Validates a role binding.
pub(in crate::builtin) fn role_binding(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    binding(object, old, &["Role", "ClusterRole"], causes);
}

/// Validates a cluster role binding.
pub(in crate::builtin) fn cluster_role_binding(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    binding(object, old, &["ClusterRole"], causes);
}

/// Validates a binding, whose role cannot change.
fn binding(object: &Value, old: Option<&Value>, kinds: &[&str], causes: &mut Causes) {
    let role = Field::of(object, "roleRef");
    let (group, kind, name) = (role.field("apiGroup"), role.field("kind"), role.field("name"));
    if group.text() != GROUP {
        group.not_supported(&[GROUP], causes);
    }
    if !kinds.contains(&kind.text()) {
        kind.not_supported(kinds, causes);
    }
    if name.not_empty(causes) {
        name.segment(causes);
    }
    let is_namespaced = kinds.len() > 1;
    Field::of(object, "subjects").items().for_each(|item| subject(&item, is_namespaced, causes));
    if old.is_some_and(|old| old["roleRef"] != *role.value) {
        let text = |field: &Field<'_, '_>| Value::from(field.text());
        let shown = go_struct(&[("APIGroup", &text(&group)), ("Kind", &text(&kind)), ("Name", &text(&name))]);
        role.invalid_text(&shown, "cannot change roleRef", causes);
    }
}

fn subject(subject: &Field<'_, '_>, is_namespaced: bool, causes: &mut Causes) {
    let (name, group, kind) = (subject.field("name"), subject.field("apiGroup"), subject.field("kind"));
    name.not_empty(causes);
    match kind.text() {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                name.subdomain(causes);
            }
            if !group.text().is_empty() {
                group.not_supported(&[""], causes);
            }
            if !is_namespaced {
                subject.field("namespace").not_empty(causes);
            }
        }
        "User" | "Group" => {
            if group.text() != GROUP {
                group.not_supported(&[GROUP], causes);
            }
        }
        _ => kind.not_supported(&["ServiceAccount", "User", "Group"], causes),
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";
