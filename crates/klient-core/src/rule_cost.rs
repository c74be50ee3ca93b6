//! The cost of CEL rules, as the server estimates it before it takes a definition.
//!
//! The server multiplies the highest cost of a rule by the highest number of values that have it. Both follow from
//! `maxItems`, `maxProperties` and `maxLength`; without them, from the size of the largest request. The estimate follows
//! cel-go's `checker/cost.go` and `apiserver/pkg/cel`. It knows no types beyond the schema's, so that rules near the limit may
//! be judged in another way by the server.

mod estimate;
mod expression;
mod sizes;

use serde_json::Value;

use self::sizes::least_size;

/// The estimate of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// The highest cost of all evaluations for one object.
    pub cost: u64,
    /// Whether the expression reads `oldSelf`.
    pub reads_old: bool,
}

/// The place of a schema: how often it occurs in one object, and whether the server can find its old value.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    /// The highest number of values; `None` if a list or map around it is unbounded.
    count: Option<u64>,
    correlates: bool,
}

impl Occurrence {
    /// The whole object, which occurs once.
    pub const ROOT: Self = Self { count: Some(1), correlates: true };

    /// Returns the place of the items of a list, or of the values of a map.
    #[must_use]
    pub fn within(self, schema: &Value) -> Self {
        let is_list = schema["items"].is_object();
        let bound = schema[if is_list { "maxItems" } else { "maxProperties" }].as_u64();
        let count = self.count.zip(bound).map(|(count, bound)| count.saturating_mul(bound));
        let by_key = !is_list || schema["x-kubernetes-list-type"] == "map";
        Self { count, correlates: self.correlates && by_key }
    }

    /// Returns whether the server can find the old value.
    #[must_use]
    pub fn correlates(self) -> bool {
        self.correlates
    }

    fn highest(self, schema: &Value) -> u64 {
        self.count.unwrap_or_else(|| LARGEST_REQUEST / least_size(schema).max(1))
    }
}

/// Estimates an expression in which `self` has a schema.
///
/// # Errors
///
/// Returns a message if the text is not an expression.
pub fn estimate(text: &str, schema: &Value, occurrence: Occurrence) -> Result<Estimate, String> {
    let expression = expression::parse(text)?;
    let cost = estimate::estimate(&expression, schema).saturating_mul(occurrence.highest(schema));
    Ok(Estimate { cost, reads_old: expression.mentions("oldSelf") })
}

/// The limit for one expression.
pub const RULE_LIMIT: u64 = 10_000_000;
/// The limit for all expressions of a version.
pub const TOTAL_LIMIT: u64 = 100_000_000;
/// The largest request that the server takes, in bytes.
const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;
