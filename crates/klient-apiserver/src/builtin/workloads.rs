//! Daemon sets: their template generation is an annotation in objects, and a field inside the real server.

use serde_json::{Value, json};

use crate::metadata;

/// Adds the annotation to a new object.
pub(super) fn set_template_generation(object: &mut Value) {
    let annotations = metadata::of(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[TEMPLATE_GENERATION] = json!("1");
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

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
