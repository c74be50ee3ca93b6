//! Validation of the configurations of admission webhooks.

use std::collections::HashSet;

use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

/// Validates a configuration, mutating or validating.
pub(in crate::builtin) fn configuration(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let webhooks = Field::of(object, "webhooks");
    // A configuration that was stored before a rule existed may keep what it has.
    let is_strict =
        |has: fn(&Value) -> bool| old.is_none_or(|old| old["webhooks"].as_array().into_iter().flatten().all(has));
    let requires_no_effects = is_strict(|hook| matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")));
    let mut names: HashSet<&str> = HashSet::new();
    for webhook in webhooks.items() {
        self::webhook(&webhook, requires_no_effects, causes);
        review_versions(&webhook.field("admissionReviewVersions"), causes);
        let name = webhook.field("name");
        if !name.text().is_empty() && names.contains(&name.text()) {
            name.duplicate(causes);
        }
        names.insert(name.text());
    }
}

fn webhook(webhook: &Field<'_, '_>, requires_no_effects: bool, causes: &mut Causes) {
    qualified(&webhook.field("name"), causes);
    for rule in webhook.field("rules").items() {
        self::rule(&rule, causes);
    }
    webhook.field("failurePolicy").optional_one_of(&["Fail", "Ignore"], causes);
    webhook.field("matchPolicy").optional_one_of(&["Equivalent", "Exact"], causes);
    let effects = webhook.field("sideEffects");
    let allowed: &[&str] = match requires_no_effects {
        true => &["None", "NoneOnDryRun"],
        false => &["None", "NoneOnDryRun", "Some", "Unknown"],
    };
    if effects.is_set() {
        effects.optional_one_of(allowed, causes);
    } else {
        effects.required(&format!("must specify one of {}", allowed.join(", ")), causes);
    }
    let timeout = webhook.field("timeoutSeconds");
    if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        timeout.invalid("the timeout value must be between 1 and 30 seconds", causes);
    }
    webhook.field("namespaceSelector").label_selector(causes);
    webhook.field("objectSelector").label_selector(causes);
    client(&webhook.field("clientConfig"), causes);
    webhook.field("reinvocationPolicy").optional_one_of(&["IfNeeded", "Never"], causes);
}

/// Validates a rule about requests.
pub(super) fn rule(rule: &Field<'_, '_>, causes: &mut Causes) {
    let operations = rule.field("operations");
    if operations.is_empty() {
        operations.required("", causes);
    }
    alone(&operations, "operations", causes);
    for operation in operations.items() {
        operation.one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"], causes);
    }
    for (name, plural) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.field(name);
        if list.is_empty() {
            list.required("", causes);
        }
        alone(&list, plural, causes);
        // A group can be empty.
        for item in list.items().filter(|item| name == "apiVersions" && item.text().is_empty()) {
            item.required("", causes);
        }
    }
    resources(&rule.field("resources"), causes);
    rule.field("scope").optional_one_of(&["*", "Cluster", "Namespaced"], causes);
}

/// Reports a wildcard that is not alone in its list.
fn alone(list: &Field<'_, '_>, plural: &str, causes: &mut Causes) {
    if list.list().len() > 1 && list.list().iter().any(|item| item == "*") {
        list.invalid(&format!("if '*' is present, must not specify other {plural}"), causes);
    }
}

fn resources(list: &Field<'_, '_>, causes: &mut Causes) {
    if list.is_empty() {
        list.required("", causes);
    }
    let (mut of_all_parts, mut of_all_resources) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            item.required("", causes);
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if of_all_parts.contains(&resource) {
            item.invalid(&format!("if '{resource}/*' is present, must not specify {text}"), causes);
        }
        if of_all_resources.contains(&part) {
            item.invalid(&format!("if '*/{part}' is present, must not specify {text}"), causes);
        }
        if part == "*" {
            of_all_parts.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(part);
        }
    }
    let has = |text: &str| list.list().iter().any(|item| item == text);
    if list.list().len() > 1 && has("*/*") {
        list.invalid("if '*/*' is present, must not specify other resources", causes);
    }
    if has("*") && has_plain {
        list.invalid("if '*' is present, must not specify other resources without subresources", causes);
    }
}

/// Validates a name with at least three parts.
fn qualified(name: &Field<'_, '_>, causes: &mut Causes) {
    if !name.is_set() || name.text().is_empty() {
        return name.required("", causes);
    }
    let before = causes.len();
    name.subdomain(causes);
    if causes.len() == before && name.text().split('.').count() < 3 {
        name.invalid("should be a domain with at least three segments separated by dots", causes);
    }
}

fn client(client: &Field<'_, '_>, causes: &mut Causes) {
    let (url, service) = (client.field("url"), client.field("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => super::super::definitions::validate_url(url.text(), &url.path(), causes),
        (false, true) => {
            for name in ["name", "namespace"] {
                let field = service.field(name);
                if field.text().is_empty() {
                    field.required("", causes);
                }
            }
            let port = service.field("port");
            if port.int().is_some_and(|port| !(1..=65535).contains(&port)) {
                port.invalid("port is not valid: must be between 1 and 65535, inclusive", causes);
            }
            path(&service.field("path"), causes);
        }
        _ => client.required("exactly one of url or service is required", causes),
    }
}

fn path(path: &Field<'_, '_>, causes: &mut Causes) {
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => return path.invalid("segment[0] may not be empty", causes),
        _ => {}
    }
    if !text.starts_with('/') {
        path.invalid("must start with a '/'", causes);
    }
    // The real server skips the first character, whatever it is.
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            path.invalid(&format!("segment[{index}] may not be empty"), causes);
            continue;
        }
        for problem in formats::subdomain_problems(segment) {
            path.invalid(&format!("segment[{index}]: {problem}"), causes);
        }
    }
}

fn review_versions(versions: &Field<'_, '_>, causes: &mut Causes) {
    if versions.is_empty() {
        return versions.required("must specify one of v1, v1beta1", causes);
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            version.invalid("duplicate version", causes);
            continue;
        }
        seen.insert(version.text());
    }
    if !seen.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        versions.invalid("must include at least one of v1, v1beta1", causes);
    }
}
