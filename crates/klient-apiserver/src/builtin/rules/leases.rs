//! Validation of leases.

use serde_json::Value;

use super::field::{Causes, Field};

/// Validates a lease.
pub(in crate::builtin) fn lease(object: &Value, _: Option<&Value>, causes: &mut Causes) {
    let spec = Field::of(object, "spec");
    let (duration, transitions) = (spec.field("leaseDurationSeconds"), spec.field("leaseTransitions"));
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        duration.invalid("must be greater than 0", causes);
    }
    transitions.not_negative(causes);
    let strategy = spec.field("strategy");
    if strategy.is_set() {
        // The field is named twice.
        let at = strategy.field("strategy");
        let at = at.with(strategy.value);
        if strategy.text().contains('/') {
            at.qualified_name(causes);
        } else if strategy.text() != "OldestEmulationVersion" {
            at.not_supported(&["OldestEmulationVersion"], causes);
        }
    }
    let preferred = spec.field("preferredHolder");
    if !preferred.text().is_empty() && strategy.text().is_empty() {
        preferred.forbidden("may only be specified if `strategy` is defined", causes);
    }
}
