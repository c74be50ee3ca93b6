//! Daemon sets, whose template generation is an annotation in objects and a field inside the real server, and jobs, which select their pods.

use serde_json::{Value, json};

use crate::metadata;

/// Adds the annotation to an object that has none, so that its writer owns it.
pub(super) fn default_template_generation(object: &mut Value) {
    let annotations = metadata::of(object).entry("annotations").or_insert_with(|| json!({}));
    if annotations.get(TEMPLATE_GENERATION).is_none() {
        annotations[TEMPLATE_GENERATION] = json!("0");
    }
}

/// Sets the annotation of a new object.
pub(super) fn set_template_generation(object: &mut Value) {
    object["metadata"]["annotations"][TEMPLATE_GENERATION] = json!("1");
}

/// Counts a change of the template.
pub(super) fn update_template_generation(object: &mut Value, old: &Value) {
    let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    let before: i64 = before.and_then(|text| text.parse().ok()).unwrap_or_default();
    let is_changed = object["spec"]["template"] != old["spec"]["template"];
    object["metadata"]["annotations"][TEMPLATE_GENERATION] = json!((before + i64::from(is_changed)).to_string());
}

/// Keeps the annotation of an object whose status is written.
pub(super) fn keep_template_generation(object: &mut Value, old: &Value) {
    if let Some(generation) = old.pointer(&format!("/metadata/annotations/{TEMPLATE_GENERATION}")) {
        object["metadata"]["annotations"][TEMPLATE_GENERATION] = generation.clone();
    }
}

/// Removes the annotation, which the rows of the real server's tables do not have.
pub(super) fn remove_template_generation(object: &mut Value) {
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.remove(TEMPLATE_GENERATION);
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            metadata.remove("annotations");
        }
    }
}

/// Adds the selector of a new job, and the labels that it selects.
pub(super) fn select_pods(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (name, uid) = (metadata::text(object, "name").to_owned(), metadata::text(object, "uid").to_owned());
    // The labels of a job that has none of its own are those of its pods, in Go, too.
    let is_shared = object["metadata"].get("labels") == object["spec"]["template"]["metadata"].get("labels");
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    for (label, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        if labels.get(label).is_none() {
            labels[label] = json!(value);
        }
    }
    if is_shared {
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }
    let selector = &mut object["spec"]["selector"]["matchLabels"];
    if selector.get("batch.kubernetes.io/controller-uid").is_none() {
        selector["batch.kubernetes.io/controller-uid"] = json!(uid);
    }
}

pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
