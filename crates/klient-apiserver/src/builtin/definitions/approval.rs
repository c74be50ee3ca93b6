//! The approval of definitions in groups of the Kubernetes community, by an annotation.

use klient_core::StatusCause;
use serde_json::{Value, json};

use crate::causes::Causes;

/// The approval of a definition in a protected group.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// The annotation is a URL.
    Approved(String),
    /// The annotation says that the definition is not approved.
    Bypassed(String),
    Missing,
    Invalid(String),
}

/// Returns the approval of a definition, or nothing if its group is not protected.
pub(super) fn of(definition: &Value) -> Option<Approval> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|name| group.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    if !is_protected {
        return None;
    }
    let given = definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default().to_owned();
    Some(if given.is_empty() {
        Approval::Missing
    } else if given.starts_with("unapproved") {
        Approval::Bypassed(given)
    } else if is_url(&given) {
        Approval::Approved(given)
    } else {
        Approval::Invalid(given)
    })
}

/// Refuses a definition that is not approved, unless the stored one is not approved for the same reason.
pub(super) fn validate(definition: &Value, old: Option<&Value>, causes: &mut Causes) {
    let Some(approval) = of(definition) else { return };
    let is_same = |old: Approval| std::mem::discriminant(&old) == std::mem::discriminant(&approval);
    if old.and_then(of).is_some_and(is_same) {
        return;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match &approval {
        Approval::Missing => causes.add(|| StatusCause::required(field, &approval.message())),
        Approval::Invalid(given) => {
            causes.add(|| StatusCause::invalid(field, given.as_str(), &approval.message()));
        }
        Approval::Approved(_) | Approval::Bypassed(_) => {}
    }
}

/// Returns the condition that tells whether a definition is approved. A condition that is known already keeps its time.
pub(super) fn condition(definition: &Value, known: &[Value], now: &str) -> Option<Value> {
    let approval = of(definition)?;
    let (status, reason) = match approval {
        Approval::Approved(_) => ("True", "ApprovedAnnotation"),
        Approval::Bypassed(_) => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid(_) => ("False", "InvalidAnnotation"),
    };
    let old = known.iter().find(|old| old["type"] == CONDITION && old["status"] == status);
    let since = old.map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
    Some(json!({"type": CONDITION, "status": status, "lastTransitionTime": since, "reason": reason,
        "message": approval.message()}))
}

impl Approval {
    fn message(&self) -> String {
        let required = format!("protected groups must have approval annotation {ANNOTATION:?}");
        match self {
            Self::Approved(given) => format!("approved in {given}"),
            Self::Bypassed(given) => format!("not approved: {given:?}"),
            Self::Missing => format!("{required}, see {POLICY}"),
            Self::Invalid(_) => {
                format!("{required} with either a URL or a reason starting with \"unapproved\", see {POLICY}")
            }
        }
    }
}

/// Returns whether a text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    is_scheme && !host.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

const ANNOTATION: &str = "api-approved.kubernetes.io";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";
const POLICY: &str = "https://github.com/kubernetes/enhancements/pull/1111";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_follows_from_group_and_annotation() {
        let of = |group: &str, annotation: &str| {
            super::of(&json!({"spec": {"group": group}, "metadata": {"annotations": {ANNOTATION: annotation}}}))
        };
        assert_eq!(of("example.com", ""), None);
        assert_eq!(of("myk8s.io", ""), None);
        assert_eq!(of("k8s.io", ""), Some(Approval::Missing));
        assert_eq!(of("a.kubernetes.io", "nonsense"), Some(Approval::Invalid("nonsense".to_owned())));
        assert_eq!(of("a.k8s.io", "/only/path"), Some(Approval::Invalid("/only/path".to_owned())));
        assert_eq!(of("a.k8s.io", "unapproved, x"), Some(Approval::Bypassed("unapproved, x".to_owned())));
        let url = "https://github.com/kubernetes/kubernetes/pull/1";
        assert_eq!(of("a.k8s.io", url), Some(Approval::Approved(url.to_owned())));
    }
}
