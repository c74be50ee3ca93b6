//! Warnings about pods and templates of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::{Told, addresses, node_labels, ports, storage, virtual_paths, warn};
use crate::builtin::{profiles, rules::Field};

/// Adds warnings about a pod or a template, given its metadata and its spec.
pub(super) fn pod(metadata: &Field<'_, '_>, spec: &Field<'_, '_>, is_template: bool, told: &mut Told) {
    let annotations = metadata.field("annotations");
    node_selection(spec, told);
    deprecated_annotations(&annotations, told);
    volumes(&spec.field("volumes"), told);
    virtual_paths::overlaps(&spec.field("volumes"), told);
    duplicates(&spec.field("hostAliases"), "ip", told);
    duplicates(&spec.field("imagePullSecrets"), "name", told);
    for secret in spec.field("imagePullSecrets").items() {
        let name = secret.field("name");
        if name.text().is_empty() {
            warn(&name, "invalid empty name \"\"", told);
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        fractional_bytes(&spec.field("overhead").key(resource), told);
    }
    if !spec.field("securityContext").field("seccompProfile").is_set() {
        annotation(&annotations, SECCOMP_POD, USE_SECCOMP_FIELD, told);
    }
    let profile = spec.field("securityContext");
    let profile = profile.field("appArmorProfile");
    each_container(spec, |container| {
        container_annotations(container, &annotations, profile.value, is_template, told);
        for (resource, list) in [
            ("memory", "limits"),
            ("memory", "requests"),
            ("ephemeral-storage", "limits"),
            ("ephemeral-storage", "requests"),
        ] {
            fractional_bytes(&container.field("resources").field(list).key(resource), told);
        }
        hidden_variables(&container.field("env"), told);
    });
    ports::duplicates(spec, told);
    if spec.field("terminationGracePeriodSeconds").number() < 0 {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warn(&spec.field("terminationGracePeriodSeconds"), why, told);
    }
    pod_affinity(&spec.field("affinity"), told);
    addresses::addresses(&spec.field("dnsConfig").field("nameservers"), told);
    for alias in spec.field("hostAliases").items() {
        addresses::address(&alias.field("ip"), told);
    }
}

/// Calls a function with each container, init containers first.
pub(super) fn each_container<'v>(spec: &Field<'_, 'v>, mut visit: impl FnMut(&Field<'_, 'v>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.field(list).items().for_each(|container| visit(&container));
    }
}

/// Adds a warning about an amount of bytes that is not whole.
pub(super) fn fractional_bytes(amount: &Field<'_, '_>, told: &mut Told) {
    if amount.quantity().is_some_and(|amount| amount.milli_value() % 1000 != 0) {
        warn(amount, &format!("fractional byte value {:?} is invalid, must be an integer", amount.text()), told);
    }
}

/// Adds a warning about an annotation, if it exists.
fn annotation(annotations: &Field<'_, '_>, key: &str, why: &str, told: &mut Told) {
    let annotation = annotations.key(key);
    if annotation.is_set() {
        warn(&annotation, why, told);
    }
}

/// Adds warnings about the selection of nodes by deprecated labels, and about constraints that match nothing.
fn node_selection(spec: &Field<'_, '_>, told: &mut Told) {
    for (label, entry) in spec.field("nodeSelector").entries() {
        if let Some(why) = node_labels::deprecation(label) {
            warn(&entry, why, told);
        }
    }
    let affinity = spec.field("affinity");
    let affinity = affinity.field("nodeAffinity");
    let required = affinity.field("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.field("nodeSelectorTerms").items() {
        node_labels::expressions(&term, false, told);
    }
    for term in affinity.field("preferredDuringSchedulingIgnoredDuringExecution").items() {
        node_labels::expressions(&term.field("preference"), true, told);
    }
    for constraint in spec.field("topologySpreadConstraints").items() {
        let key = constraint.field("topologyKey");
        if let Some(why) = node_labels::deprecation(key.text()) {
            warn(&key, &format!("{} is {why}", key.text()), told);
        }
        missing_selector(&constraint, told);
    }
}

fn missing_selector(term: &Field<'_, '_>, told: &mut Told) {
    let selector = term.field("labelSelector");
    if !selector.is_set() {
        warn(&selector, "a null labelSelector results in matching no pod", told);
    }
}

fn pod_affinity(affinity: &Field<'_, '_>, told: &mut Told) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.field(kind);
        for term in affinity.field("requiredDuringSchedulingIgnoredDuringExecution").items() {
            missing_selector(&term, told);
        }
        for term in affinity.field("preferredDuringSchedulingIgnoredDuringExecution").items() {
            missing_selector(&term.field("podAffinityTerm"), told);
        }
    }
}

fn deprecated_annotations(annotations: &Field<'_, '_>, told: &mut Told) {
    for (key, version, field) in [
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11", "sysctls"),
    ] {
        annotation(annotations, key, &format!("non-functional in {version}+; use the \"{field}\" field instead"), told);
    }
}

/// Adds warnings about sources of volumes that are deprecated or removed.
fn volumes(volumes: &Field<'_, '_>, told: &mut Told) {
    for volume in volumes.items() {
        for (name, shown, why) in [
            ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
            ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
            ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
            ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
            ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
            ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
            ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ] {
            if volume.field(name).is_set() {
                warn(&volume.named(name, shown), why, told);
            }
        }
        let claim = volume.field("ephemeral");
        storage::claim_spec(&claim.field("volumeClaimTemplate").field("spec"), told);
        for name in ["cephfs", "rbd"] {
            if let Some(source) = volume.set(name) {
                warn(&source, "deprecated in v1.28, non-functional in v1.31+", told);
            }
        }
    }
}

/// Adds warnings about items of a list that have the same value in a field.
fn duplicates(list: &Field<'_, '_>, name: &str, told: &mut Told) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let field = item.field(name);
        if !seen.insert(field.text()) {
            warn(&field, &format!("duplicate {name} {:?}", field.text()), told);
        }
    }
}

/// Adds warnings about annotations of a container that fields have replaced.
fn container_annotations(
    container: &Field<'_, '_>,
    annotations: &Field<'_, '_>,
    pod_profile: &Value,
    is_template: bool,
    told: &mut Told,
) {
    if annotations.is_empty() {
        return;
    }
    let (name, context) = (container.field("name").text(), container.field("securityContext"));
    if !context.field("seccompProfile").is_set() {
        annotation(annotations, &format!("{SECCOMP_CONTAINER}{name}"), USE_SECCOMP_FIELD, told);
    }
    // Pods get the field from the annotation.
    if !is_template || context.field("appArmorProfile").is_set() {
        return;
    }
    let key = format!("{}{name}", profiles::ANNOTATION);
    let value = annotations.key(&key);
    let value = value.text();
    if profiles::of_annotation(value).as_ref() != Some(pod_profile) {
        annotation(annotations, &key, profiles::DEPRECATED, told);
    }
}

/// Adds warnings about variables that hide another one of the same name. A value that refers to the other one extends it instead.
fn hidden_variables(variables: &Field<'_, '_>, told: &mut Told) {
    if variables.list().len() < 2 {
        return;
    }
    let mut seen = HashSet::new();
    for variable in variables.items() {
        let name = variable.field("name").text();
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.field("value").text();
        let extends = !variable.field("valueFrom").is_set() && value != reference && value.contains(&reference);
        if !extends {
            let why = format!("hides previous definition of {name:?}, which may be dropped when using apply");
            warn(&variable, &why, told);
        }
    }
}

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const USE_SECCOMP_FIELD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(object: &Value, is_template: bool) -> Vec<String> {
        let mut told = Told::default();
        pod(&Field::of(object, "metadata"), &Field::of(object, "spec"), is_template, &mut told);
        told.texts
    }

    #[test]
    fn variables_that_extend_another_are_not_hidden() {
        let with = |variable: Value| {
            let variables = json!([{"name": "A", "value": "1"}, variable]);
            told(&json!({"spec": {"containers": [{"name": "a", "env": variables}]}}), false).len()
        };
        assert_eq!(with(json!({"name": "A", "value": "$(A)2"})), 0);
        assert_eq!(with(json!({"name": "A", "value": "$(A)"})), 1);
        assert_eq!(with(json!({"name": "A", "value": "2"})), 1);
        assert_eq!(with(json!({"name": "A", "valueFrom": {}})), 1);
        assert_eq!(with(json!({"name": "B", "value": "1"})), 0);
    }

    #[test]
    fn profile_annotation_of_template_must_match_field() {
        let key = "container.apparmor.security.beta.kubernetes.io/a";
        let with = |annotation: &str, profile: Value| {
            let spec = json!({"securityContext": {"appArmorProfile": profile}, "containers": [{"name": "a"}]});
            let object = json!({"metadata": {"annotations": {key: annotation}}, "spec": spec});
            (told(&object, true).len(), told(&object, false).len())
        };
        assert_eq!(with("unconfined", json!(null)), (1, 0));
        assert_eq!(with("unconfined", json!({"type": "Unconfined"})), (0, 0));
        assert_eq!(with("localhost/", json!({"type": "Unconfined"})), (1, 0));
        assert_eq!(with("localhost/x", json!({"type": "Localhost", "localhostProfile": "x"})), (0, 0));
    }
}
