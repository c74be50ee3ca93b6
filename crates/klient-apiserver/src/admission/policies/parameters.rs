//! The parameters of a policy: objects that a binding names.

use serde_json::Value;

use super::{Binding, Policy};
use crate::{admission::Attributes, server::Core};

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
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let Some(resource) = core.registry.groups().of_kind(group, number, kind) else {
        let shown = if group.is_empty() { format!("/{number}") } else { version.clone() };
        return Err(format!(
            "failed to configure policy: failed to find resource referenced by paramKind: '{shown}, Kind={kind}'"
        ));
    };
    let reference = &binding.reference;
    let namespace = match reference["namespace"].as_str() {
        _ if !resource.namespaced => "",
        Some(namespace) if !namespace.is_empty() => namespace,
        _ => &request.namespace,
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
        _ => Err("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            .to_owned()),
    }
}
