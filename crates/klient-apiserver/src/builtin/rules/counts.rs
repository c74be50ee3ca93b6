//! Validation of numbers that may be percentages, and of the counters of a status.

use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

impl Field<'_, '_> {
    /// Validates a count or a percentage.
    pub(super) fn count_or_percent(&self, causes: &mut Causes) {
        match self.value {
            Value::String(text) => self.problems(formats::percent_problems(text), causes),
            _ => self.not_negative(causes),
        }
    }

    /// Validates that a percentage is not above 100%.
    pub(super) fn at_most_all(&self, causes: &mut Causes) {
        if percent(self.value).is_some_and(|percent| percent > 100) {
            self.invalid("must not be greater than 100%", causes);
        }
    }

    /// Returns the number of a count or percentage. A text that is neither has the number at its start, or zero.
    pub(super) fn count(&self) -> i64 {
        match self.value {
            Value::String(text) => percent(self.value).or_else(|| text.parse().ok()).unwrap_or_default(),
            _ => self.number(),
        }
    }
}

fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| formats::percent_problems(text).is_empty())?;
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// Validates counters of a status, and that none of some exceeds the number of replicas.
pub(super) fn replicas(object: &Value, counters: &[&str], below: &[&str], ready: &str, causes: &mut Causes) {
    let status = Field::of(object, "status");
    counters.iter().for_each(|name| status.field(name).not_negative(causes));
    // Absent counters are zero, and other ones can be negative.
    let zero = Value::from(0);
    let counter = |name| match status.field(name) {
        field if field.value.is_null() => field.with(&zero),
        field => field,
    };
    let total = status.field("replicas").number();
    for name in below {
        if counter(name).number() > total {
            counter(name).invalid("cannot be greater than status.replicas", causes);
        }
    }
    let available = counter("availableReplicas");
    if available.number() > status.field("readyReplicas").number() {
        available.invalid(&format!("cannot be greater than {ready}"), causes);
    }
}

/// Validates that the count of collisions does not become lower.
pub(super) fn collisions(object: &Value, old: &Value, causes: &mut Causes) {
    let status = Field::of(object, "status");
    let count = status.field("collisionCount");
    let before = old["status"]["collisionCount"].as_i64();
    let is_lower = match (count.int(), before) {
        (None, Some(_)) => true,
        (Some(now), Some(before)) => now < before,
        _ => false,
    };
    if is_lower {
        count.invalid_as(count.number(), "cannot be decremented", causes);
    }
}
