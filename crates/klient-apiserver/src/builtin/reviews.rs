//! Reviews: objects that are posted to ask a question. The server fills in their status and stores nothing.
//!
//! The embedded server has no roles: every authenticated user may do everything.

use serde_json::{Value, json};

use crate::{call::Call, server::Core};

/// Returns the user of the request.
pub(super) fn who_am_i(core: &Core, call: &Call, _: &Value) -> Value {
    json!({"userInfo": user(core.authentication.user(&call.headers))})
}

/// Returns the user of a token.
pub(super) fn token(core: &Core, _: &Call, review: &Value) -> Value {
    match core.authentication.user_of(review["spec"]["token"].as_str().unwrap_or_default()) {
        Some(name) => json!({"authenticated": true, "user": user(name)}),
        None => json!({"user": {}}),
    }
}

/// Returns everything that the user may do.
pub(super) fn rules(_: &Core, _: &Call, _: &Value) -> Value {
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    json!({"resourceRules": everything, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false})
}

/// Allows every request.
pub(super) fn access(_: &Core, _: &Call, _: &Value) -> Value {
    json!({"allowed": true})
}

fn user(name: &str) -> Value {
    json!({"username": name, "groups": ["system:masters", "system:authenticated"]})
}
