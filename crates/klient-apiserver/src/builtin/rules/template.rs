//! Validation of pod templates, and of annotations that pods and templates share.

use serde_json::Value;

use super::{
    field::{Causes, Field},
    pod_spec, scheduling,
};

/// Validates a pod template.
pub(super) fn validate(template: &Field<'_, '_>, causes: &mut Causes) {
    let metadata = &template.value["metadata"];
    let labels = template.field("labels");
    labels.with(&metadata["labels"]).labels(causes);
    let annotations = template.field("annotations");
    let annotations = annotations.with(&metadata["annotations"]);
    annotations.annotations(causes);
    let spec = template.field("spec");
    of_pod(&annotations, &spec, causes);
    pod_spec::validate(&spec, None, causes);
    profiles(&metadata["annotations"], &spec, causes);
    if !spec.field("ephemeralContainers").is_empty() {
        spec.field("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template", causes);
    }
}

/// Validates the labels and annotations of a template again, as some kinds do.
pub(super) fn metadata_again(template: &Field<'_, '_>, causes: &mut Causes) {
    let metadata = &template.value["metadata"];
    let labels = template.field("labels");
    labels.with(&metadata["labels"]).labels(causes);
    let annotations = template.field("annotations");
    let annotations = annotations.with(&metadata["annotations"]);
    annotations.annotations(causes);
    of_pod(&annotations, &template.field("spec"), causes);
}

/// Validates the annotations that have a meaning for pods.
pub(super) fn of_pod(annotations: &Field<'_, '_>, spec: &Field<'_, '_>, causes: &mut Causes) {
    if annotations.is_empty() {
        return;
    }
    let mirror = annotations.key(MIRROR);
    if mirror.is_set() && spec.field("nodeName").text().is_empty() {
        mirror.invalid("must set spec.nodeName if mirror pod annotation is set", causes);
    }
    let tolerations = &annotations.value[TOLERATIONS];
    if let Some(text) = tolerations.as_str().filter(|text| !text.is_empty())
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
    {
        let at = annotations.path();
        let root = serde_json::json!({ "": parsed });
        let mut found = Causes::new();
        scheduling::tolerations(&Field::of(&root, ""), &mut found);
        causes.extend(found.into_iter().map(|mut cause| {
            cause.field = format!("{at}.{TOLERATIONS}{}", cause.field);
            cause
        }));
    }
    let cost = annotations.key(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        cost.invalid("must be a 32bit integer", causes);
    }
    for (key, value) in annotations.entries() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(&annotations.field(key).with(value.value), causes);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            let mut is_known = false;
            pod_spec::for_each_container(spec, |known| is_known |= known.field("name").text() == container);
            if !is_known {
                value.invalid_as(container, "container not found", causes);
            }
            let text = value.text();
            if !matches!(text, "" | "runtime/default" | "unconfined") && !text.starts_with("localhost/") {
                value.invalid(&format!("invalid AppArmor profile name: {text:?}"), causes);
            }
        }
    }
}

fn is_cost(text: &str) -> bool {
    let starts_well = text == "0" || text.starts_with('-') || text.starts_with(|c: char| ('1'..='9').contains(&c));
    starts_well && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &Field<'_, '_>, causes: &mut Causes) {
    let text = profile.text();
    if matches!(text, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match text.strip_prefix("localhost/") {
        Some(path) => {
            let path = Value::from(path);
            profile.with(&path).descending_path(causes);
        }
        None => profile.invalid("must be a valid seccomp profile", causes),
    }
}

/// Validates that the profiles in annotations are those of the fields.
pub(super) fn profiles(annotations: &Value, spec: &Field<'_, '_>, causes: &mut Causes) {
    if annotations.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let context = spec.field("securityContext");
    let of_pod = context.field("seccompProfile");
    if let Some(text) = annotations[SECCOMP_POD].as_str().filter(|_| of_pod.is_set()) {
        same_profile(&of_pod, &of_pod, text, &["runtime/default", "docker/default"], "seccomp", causes);
    }
    pod_spec::for_each_container(spec, |container| {
        let context = container.field("securityContext");
        let own = context.field("seccompProfile");
        let key = format!("{SECCOMP_CONTAINER}{}", container.field("name").text());
        if let Some(text) = annotations[&key].as_str().filter(|_| own.is_set()) {
            same_profile(&own, &own, text, &["runtime/default", "docker/default"], "seccomp", causes);
        }
    });
    if spec.field("os").field("name").text() == "windows" {
        return;
    }
    pod_spec::for_each_container(spec, |container| {
        let own_context = container.field("securityContext");
        let at = own_context.field("appArmorProfile");
        let own = if at.is_set() { at } else { at.with(&context.value["appArmorProfile"]) };
        let key = format!("{APP_ARMOR}{}", container.field("name").text());
        if let Some(text) = annotations[&key].as_str().filter(|_| own.is_set()) {
            same_profile(&at, &own, text, &["runtime/default"], "apparmor", causes);
        }
    });
}

fn same_profile(
    at: &Field<'_, '_>,
    profile: &Field<'_, '_>,
    text: &str,
    defaults: &[&str],
    what: &str,
    causes: &mut Causes,
) {
    let is_same = match profile.field("type").text() {
        "Unconfined" => text == "unconfined",
        "RuntimeDefault" => defaults.contains(&text),
        "Localhost" => match text.strip_prefix("localhost/") {
            Some(path) => {
                if profile.field("localhostProfile").value.as_str() != Some(path) {
                    let detail = format!("{what} profile in annotation and field must match");
                    at.field("localhostProfile").forbidden(&detail, causes);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !is_same {
        at.field("type").forbidden(&format!("{what} type in annotation and field must match"), causes);
    }
}

/// The path of causes that are about no field, as Go writes it.
pub(super) const NOWHERE: &str = "[]";
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
