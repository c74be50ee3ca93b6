//! Ingresses: the groups of their backends, which Go writes as null where they have none.

use serde_json::{Map, Value};

/// Adds the groups of backends that have none.
pub(super) fn null_groups(object: &mut Value) {
    let Value::Object(spec) = &mut object["spec"] else { return };
    if let Some(backend) = spec.get_mut("defaultBackend") {
        null_group(backend);
    }
    for rule in spec.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
        let paths = rule.pointer_mut("/http/paths").and_then(Value::as_array_mut);
        paths.into_iter().flatten().filter_map(|path| path.get_mut("backend")).for_each(null_group);
    }
}

fn null_group(backend: &mut Value) {
    let resource = backend.get_mut("resource").and_then(Value::as_object_mut);
    if let Some(resource) = resource {
        add_null(resource, "apiGroup");
    }
}

fn add_null(fields: &mut Map<String, Value>, name: &str) {
    fields.entry(name).or_insert(Value::Null);
}
