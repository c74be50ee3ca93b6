//! Reviews: questions that are posted like objects, answered, and not kept.

use serde_json::{Value, json};

use crate::{call::Call, registry::Resource, server::Core};

/// Whether objects of this kind are answers and not kept.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
}

/// Answers a review. Whoever is let in may do everything: there are no roles here.
pub(crate) fn answer(core: &Core, call: &Call, resource: &Resource, mut object: Value) -> Value {
    let user = |name: &str| json!({"username": name, "groups": ["system:masters", "system:authenticated"]});
    object["status"] = match resource.plural.as_str() {
        "selfsubjectreviews" => json!({"userInfo": user(core.authentication.user(&call.headers))}),
        "tokenreviews" => match core.authentication.user_of(object["spec"]["token"].as_str().unwrap_or_default()) {
            Some(name) => json!({"authenticated": true, "user": user(name)}),
            None => json!({"user": {}}),
        },
        "selfsubjectrulesreviews" => {
            let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
            json!({"resourceRules": everything, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false})
        }
        _ => json!({"allowed": true}),
    };
    object
}
