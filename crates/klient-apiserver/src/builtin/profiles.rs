//! AppArmor profiles of containers: annotations once, and fields now.

use serde_json::{Value, json};

use crate::metadata;

/// Sets the fields of a new pod's containers from its annotations, as the real server does for old clients. Adds warnings about them.
pub(super) fn copy(object: &mut Value, told: &mut Vec<String>) {
    let annotations = &object["metadata"]["annotations"];
    let is_used = annotations.as_object().is_some_and(|all| all.keys().any(|key| key.starts_with(ANNOTATION)));
    if !is_used || object["spec"]["os"]["name"] == "windows" {
        return;
    }
    let annotations = annotations.clone();
    let of_pod = object["spec"]["securityContext"]["appArmorProfile"].clone();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let pointer = format!("/spec/{list}");
        let containers = metadata::at_mut(object, &pointer).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let key = format!("{ANNOTATION}{}", container["name"].as_str().unwrap_or_default());
            let Some(annotation) = annotations[&key].as_str() else { continue };
            if !container["securityContext"]["appArmorProfile"].is_null() {
                continue;
            }
            let profile = of_annotation(annotation).filter(is_valid);
            let is_told = profile.as_ref() != Some(&of_pod);
            if let Some(profile) = profile.filter(|_| is_told) {
                container["securityContext"]["appArmorProfile"] = profile;
            }
            if is_told {
                told.push(format!("metadata.annotations[{key}]: {DEPRECATED}"));
            }
        }
    }
}

/// Returns the profile that an annotation names.
pub(super) fn of_annotation(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let profile = annotation.strip_prefix("localhost/").filter(|profile| !profile.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": profile}))
        }
    }
}

/// Returns whether a profile is valid as a field.
fn is_valid(profile: &Value) -> bool {
    let path = profile["localhostProfile"].as_str();
    path.is_none_or(|path| path.trim() == path && path.len() <= MAX_PATH)
}

/// The prefix of the annotations, before the name of the container.
pub(super) const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The warning about an annotation.
pub(super) const DEPRECATED: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
const MAX_PATH: usize = 4095;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_set_unless_pod_has_the_same_profile() {
        let key = format!("{ANNOTATION}a");
        let with = |annotation: &str, of_pod: Value, own: Value| {
            let container = json!({"name": "a", "securityContext": {"appArmorProfile": own}});
            let spec = json!({"securityContext": {"appArmorProfile": of_pod}, "containers": [container]});
            let mut object = json!({"metadata": {"annotations": {&key: annotation}}, "spec": spec});
            let mut told = Vec::new();
            copy(&mut object, &mut told);
            (object["spec"]["containers"][0]["securityContext"]["appArmorProfile"].clone(), told.len())
        };
        let (unconfined, default) = (json!({"type": "Unconfined"}), json!({"type": "RuntimeDefault"}));
        assert_eq!(with("unconfined", Value::Null, Value::Null), (unconfined.clone(), 1));
        assert_eq!(with("unconfined", unconfined.clone(), Value::Null), (Value::Null, 0));
        assert_eq!(with("unconfined", Value::Null, default.clone()), (default, 0));
        assert_eq!(with("localhost/ x", unconfined, Value::Null), (Value::Null, 1));
    }
}
