//! The parameters of a policy: objects that a binding names.

use std::sync::Arc;

use serde_json::Value;

use super::{Binding, Policy};
use crate::{admission::Attributes, registry::Resource, server::Core};

/// Checks that the kind of the parameters of a policy exists.
///
/// # Errors
///
/// Returns the message of a policy whose kind is unknown. It is that of the policy, whatever its bindings are.
pub(super) fn check(core: &Core, policy: &Policy) -> Result<(), String> {
    let Some((version, kind)) = &policy.parameters else { return Ok(()) };
    if resource(core, version, kind).is_some() {
        return Ok(());
    }
    let slash = if version.contains('/') { "" } else { "/" };
    Err(format!(
        "failed to configure policy: failed to find resource referenced by paramKind: '{slash}{version}, Kind={kind}'"
    ))
}

/// Returns the objects with which a policy is evaluated, one after the other: `None` stands for no parameter.
///
/// # Errors
///
/// Returns the message of a binding whose parameters are missing.
pub(super) fn of(
    core: &Core,
    policy: &Policy,
    binding: &Binding,
    request: &Attributes<'_>,
) -> Result<Vec<Option<Value>>, String> {
    let (Some((version, kind)), true) = (&policy.parameters, binding.reference.is_object()) else {
        return Ok(vec![None]);
    };
    let Some(resource) = resource(core, version, kind) else { return Ok(Vec::new()) };
    let reference = &binding.reference;
    let misconfigured = |why: &str| Err(format!("failed to configure binding: {why}"));
    let namespace = match reference["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        Some(_) if !resource.namespaced => {
            return misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
        }
        None if !resource.namespaced => "",
        None if request.namespace.is_empty() => {
            return misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
            );
        }
        named => named.unwrap_or(&request.namespace),
    };
    let found: Vec<Value> = match reference["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => {
            core.store.get(&resource.table, &resource.key(namespace, name)).iter().map(|found| found.value()).collect()
        }
        None => {
            let selector = crate::admission::webhooks::hook::selector(&reference["selector"]).unwrap_or_default();
            let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
            let all = core.store.list(&resource.table, &prefix).objects;
            let has_labels = |object: &Value| {
                let labels = object["metadata"]["labels"].clone();
                selector.matches(|key| labels.get(key)?.as_str())
            };
            all.iter().map(|found| found.value()).filter(has_labels).collect()
        }
    };
    if !found.is_empty() {
        return Ok(found.into_iter().map(Some).collect());
    }
    match reference["parameterNotFoundAction"].as_str() {
        Some("Allow") => Ok(Vec::new()),
        _ => misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction"),
    }
}

fn resource(core: &Core, version: &str, kind: &str) -> Option<Arc<Resource>> {
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    core.registry.groups().of_kind(group, number, kind)
}
