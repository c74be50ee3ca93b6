//! Warnings about labels of nodes that are deprecated.

use super::{Told, warn};
use crate::{builtin::rules::Field, metadata::formats};

/// Returns why a label should not be used.
pub(super) fn deprecation(label: &str) -> Option<&'static str> {
    DEPRECATED.iter().find(|(name, _)| *name == label).map(|(_, why)| *why)
}

/// Adds warnings about the expressions of a selector of nodes, and about values that no label can have if `checks_values` is set.
pub(super) fn expressions(term: &Field<'_, '_>, checks_values: bool, told: &mut Told) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        if let Some(why) = deprecation(key.text()) {
            warn(&key, &format!("{} is {why}", key.text()), told);
        }
        if !checks_values {
            continue;
        }
        for value in expression.field("values").items() {
            for problem in formats::label_value_problems(value.text()) {
                warn(&value, &format!("{} is invalid, {problem}", value.text()), told);
            }
        }
    }
}

const DEPRECATED: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];
