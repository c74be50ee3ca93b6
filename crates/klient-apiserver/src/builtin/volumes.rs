//! Persistent volumes and claims: finalizers keep them while they are in use.

use serde_json::{Value, json};

use crate::metadata;

/// Adds a finalizer to a new volume or claim.
pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
        metadata::of(object).insert("finalizers".to_owned(), json!(finalizers));
    }
}
