//! Service accounts: references to their secrets have names only.

use serde_json::{Value, json};

/// Removes everything but the names from the references to secrets.
pub(super) fn clean(object: &mut Value) {
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = secret.get("name").cloned();
        *secret = name.map_or_else(|| json!({}), |name| json!({"name": name}));
    }
}
