//! The roles and bindings that every API server has from the start.
//!
//! `rbac.json.gz` was recorded from the real server: `cargo xtask registry` writes it. It is read only by servers with RBAC.

use std::io::Read as _;

use serde_json::Value;

/// Returns the recorded objects.
pub(crate) fn objects() -> Vec<Value> {
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(RECORDED).read_to_string(&mut text);
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

const RECORDED: &[u8] = include_bytes!("../../bootstrap/rbac.json.gz");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_roles_and_bindings_are_those_of_1_36() {
        let objects = objects();
        let count = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
        let counts = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].map(count);
        assert_eq!(counts, [69, 50, 7, 7]);
    }
}
