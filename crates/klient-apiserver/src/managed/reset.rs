//! The fields that an endpoint does not change, so that its writers never own them.

use klient_core::fields::{FieldSet, PathElement};

use crate::registry::Resource;

/// Returns the fields that writes to a resource or one of its subresources ignore.
pub(super) fn fields(resource: &Resource, subresource: &str) -> FieldSet {
    let paths: &[&str] = match subresource {
        "" => match resource.hooks.reset_fields {
            Some(fields) => fields,
            None if resource.subresource("status").is_some() => &["status"],
            None => &[],
        },
        "status" => resource.hooks.status_reset_fields,
        "finalize" => &["status"],
        "approval" => &["spec", "status.certificate"],
        _ => &[],
    };
    paths.iter().map(|path| path.split('.').map(PathElement::field).collect::<Vec<_>>()).collect()
}
