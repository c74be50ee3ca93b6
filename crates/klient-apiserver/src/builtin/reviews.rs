//! Reviews: questions that are posted like objects, answered, and not kept.

use serde_json::{Value, json};

use crate::registry::Resource;

/// Whether objects of this kind are answers and not kept.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
}

/// Answers a review. Whoever is let in may do everything.
pub(crate) fn answer(resource: &Resource, mut object: Value) -> Value {
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let user = json!({"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]});
    object["status"] = match resource.plural.as_str() {
        "selfsubjectreviews" => json!({"userInfo": user}),
        "tokenreviews" => json!({"authenticated": true, "user": user}),
        "selfsubjectrulesreviews" => {
            json!({"resourceRules": everything, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false})
        }
        _ => json!({"allowed": true}),
    };
    object
}
