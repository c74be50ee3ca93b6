//! Validation of the group, the scope and the names of a definition.

use klient_core::StatusCause;
use serde_json::Value;

use crate::causes::Causes;
use crate::metadata::formats;

/// Validates the group and the scope.
pub(super) fn group_and_scope(spec: &Value, causes: &mut Causes) {
    let group = text(&spec["group"]);
    let problems = formats::subdomain_problems(group);
    if group.is_empty() {
        causes.add(|| StatusCause::required("spec.group", ""));
    } else if !problems.is_empty() {
        causes.add(|| StatusCause::invalid("spec.group", group, &problems.join(",")));
    } else if !group.contains('.') {
        causes.add(|| StatusCause::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    let scope = text(&spec["scope"]);
    if scope.is_empty() {
        causes.add(|| StatusCause::required("spec.scope", ""));
    } else if !SCOPES.contains(&scope) {
        causes.add(|| StatusCause::not_supported("spec.scope", scope, &SCOPES));
    }
}

/// Validates the names of the kind.
pub(super) fn names(names: &Value, causes: &mut Causes) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(&names[field]).is_empty() {
            causes.add(|| StatusCause::required(format!("spec.names.{field}"), ""));
        }
    }
    for field in ["plural", "singular"] {
        let name = text(&names[field]);
        if !name.is_empty() {
            label(name, name, "", format!("spec.names.{field}"), causes);
        }
    }
    for field in ["kind", "listKind"] {
        let name = text(&names[field]);
        if !name.is_empty() {
            let before = "may have mixed case, but should otherwise match: ";
            label(name, &name.to_lowercase(), before, format!("spec.names.{field}"), causes);
        }
    }
    list(names, "shortNames", causes);
    let (kind, list_kind) = (text(&names["kind"]), text(&names["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        causes.add(|| StatusCause::invalid("spec.names.listKind", list_kind, detail));
    }
    list(names, "categories", causes);
}

/// Validates the name of a version.
pub(super) fn version(name: &str, path: &str, causes: &mut Causes) {
    label(name, name, "", format!("{path}.name"), causes);
}

/// Validates the field with the name of the first version.
pub(super) fn version_field(name: &str, field: &str, causes: &mut Causes) {
    label(name, name, "", field.to_owned(), causes);
}

fn list(names: &Value, field: &str, causes: &mut Causes) {
    for (index, name) in names[field].as_array().into_iter().flatten().enumerate() {
        label(text(name), text(name), "", format!("spec.names.{field}[{index}]"), causes);
    }
}

fn label(name: &str, checked: &str, before: &str, field: String, causes: &mut Causes) {
    let problems = formats::letter_label_problems(checked);
    if !problems.is_empty() {
        causes.add(|| StatusCause::invalid(field, name, &format!("{before}{}", problems.join(","))));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
