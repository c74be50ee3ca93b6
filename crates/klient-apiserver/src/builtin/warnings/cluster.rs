//! Warnings about nodes, service accounts, quotas, and kinds that configure a cluster.

use klient_core::Quantity;
use serde_json::Value;

use super::{Told, addresses::range, node_labels, warn};
use crate::{builtin::rules::Field, metadata};

/// Adds warnings about a node.
pub(in crate::builtin) fn node(object: &Value, _: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    if !spec.field("externalID").text().is_empty() {
        warn(&spec.field("externalID"), "this field is deprecated, and is unused by Kubernetes", told);
    }
    spec.field("podCIDRs").items().for_each(|item| range(&item, told));
}

/// Adds a warning about a service account with a new annotation.
pub(in crate::builtin) fn service_account(object: &Value, old: Option<&Value>, told: &mut Told) {
    let has = |object: &Value| object["metadata"]["annotations"].get(MOUNTABLE_SECRETS).is_some();
    if has(object) && !old.is_some_and(has) {
        told.push(format!(
            "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        ));
    }
}

/// Adds warnings about a new quota whose requests are above its limits.
pub(in crate::builtin) fn quota(object: &Value, old: Option<&Value>, told: &mut Told) {
    let hard = &object["spec"]["hard"];
    if old.is_some() || hard.is_null() {
        return;
    }
    let amount = |name: &str| -> Option<(Quantity, String)> {
        let text = hard[name].as_str()?;
        Some((text.parse().ok()?, text.to_owned()))
    };
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut name = format!("requests.{resource}");
        let mut request = amount(&name);
        if request.is_none() && matches!(resource, "cpu" | "memory") {
            resource.clone_into(&mut name);
            request = amount(&name);
        }
        let limited = format!("limits.{resource}");
        let (Some((request, shown)), Some((limit, most))) = (request, amount(&limited)) else { continue };
        if request > limit {
            told.push(format!("ResourceQuota {name} ({shown}) should be less than {limited} ({most})"));
        }
    }
}

/// Adds warnings about the nodes of a runtime class.
pub(in crate::builtin) fn runtime_class(object: &Value, _: Option<&Value>, told: &mut Told) {
    let scheduling = Field::of(object, "scheduling");
    let selector = scheduling.field("nodeSelector");
    for (label, _) in selector.entries() {
        if let Some(why) = node_labels::deprecation(label) {
            warn(&selector, why, told);
        }
    }
}

/// Adds a warning about the name of a webhook configuration or an admission policy.
pub(in crate::builtin) fn admission(object: &Value, _: Option<&Value>, told: &mut Told) {
    if metadata::text(object, "name").ends_with(STATIC) {
        told.push(format!(
            "metadata.name: names ending with {STATIC:?} are reserved for static manifest-based configurations and cannot be managed via the API"
        ));
    }
}

/// Adds a warning about the driver of a resource slice. Other kinds of devices have no such field.
pub(in crate::builtin) fn resource_slice(object: &Value, _: Option<&Value>, told: &mut Told) {
    let spec = Field::of(object, "spec");
    let driver = spec.field("driver");
    if driver.text().contains(char::is_uppercase) {
        let why = format!("driver names should be lowercase; {:?} contains uppercase characters", driver.text());
        warn(&driver, &why, told);
    }
}

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const STATIC: &str = ".static.k8s.io";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quota_compares_requests_or_bare_names_with_limits() {
        let with = |hard: Value| {
            let mut told = Told::default();
            quota(&json!({"spec": {"hard": hard}}), None, &mut told);
            told.texts
        };
        let why = "ResourceQuota cpu (2) should be less than limits.cpu (1500m)";
        assert_eq!(with(json!({"cpu": "2", "limits.cpu": "1500m"})), [why]);
        assert_eq!(with(json!({"cpu": "2", "requests.cpu": "1", "limits.cpu": "1500m"})), [""; 0]);
        assert_eq!(with(json!({"storage": "2", "limits.storage": "1"})), [""; 0]);
    }
}
