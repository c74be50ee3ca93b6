//! CEL rules: their syntax, and the cost that the server estimates before it takes a definition.
//!
//! The server multiplies the highest cost of a rule by the highest number of values that have it. Both follow from
//! `maxItems`, `maxProperties` and `maxLength`; without them, from the size of the largest request. The estimate follows
//! cel-go's `checker/cost.go` and `apiserver/pkg/cel`. It knows no types beyond the schema's, so that rules near the limit may
//! be judged in another way by the server.

mod estimate;
mod expression;
mod sizes;

use serde_json::Value;

use self::{estimate::estimate, expression::parse, sizes::least_size};

/// The place of a schema: how often it occurs in one object, and whether the server can find its old value.
#[derive(Clone, Copy)]
pub(super) struct Occurrence {
    /// The highest number of values; `None` if a list or map around it is unbounded.
    count: Option<u64>,
    correlates: bool,
}

impl Occurrence {
    /// The whole object, which occurs once.
    pub(super) const ROOT: Self = Self { count: Some(1), correlates: true };

    /// Returns the place of the items of a list, or of the values of a map.
    pub(super) fn within(self, schema: &Value) -> Self {
        let is_list = schema["items"].is_object();
        let bound = schema[if is_list { "maxItems" } else { "maxProperties" }].as_u64();
        let count = self.count.zip(bound).map(|(count, bound)| count.saturating_mul(bound));
        let by_key = !is_list || schema["x-kubernetes-list-type"] == "map";
        Self { count, correlates: self.correlates && by_key }
    }

    fn highest(self, schema: &Value) -> u64 {
        self.count.unwrap_or_else(|| LARGEST_REQUEST / least_size(schema).max(1))
    }
}

/// Checks the rules of one schema. Returns their cost.
pub(super) fn check_rules(schema: &Value, occurrence: Occurrence, problem: &mut dyn FnMut(String)) -> u64 {
    let mut total = 0_u64;
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = rule["rule"].as_str().unwrap_or_default();
        if text.trim().is_empty() {
            problem("a CEL rule is empty".to_owned());
            continue;
        }
        match rule["message"].as_str() {
            Some(message) if message.contains('\n') => {
                problem(format!("the message of the CEL rule {text:?} must not have line breaks"));
            }
            None if text.contains('\n') && rule["messageExpression"].is_null() => {
                problem(format!("the CEL rule {text:?} has line breaks, and needs a message"));
            }
            _ => {}
        }
        total = total.saturating_add(check_expression("rule", text, schema, occurrence, problem));
        if let Some(text) = rule["messageExpression"].as_str() {
            total = total.saturating_add(check_expression("message expression", text, schema, occurrence, problem));
        }
    }
    total
}

/// Checks one expression. Returns its cost.
fn check_expression(
    what: &str,
    text: &str,
    schema: &Value,
    occurrence: Occurrence,
    problem: &mut dyn FnMut(String),
) -> u64 {
    let expression = match parse(text) {
        Ok(expression) => expression,
        Err(error) => {
            problem(format!("the CEL {what} {text:?} is not valid: {error}"));
            return 0;
        }
    };
    if expression.mentions("oldSelf") && !occurrence.correlates {
        let remedy = "use `ListMerge::Map` on the list around it, so that items have an identity";
        problem(format!(
            "the CEL {what} {text:?} compares with `oldSelf`, which items of a list do not have: {remedy}"
        ));
    }
    let cost = estimate(&expression, schema).saturating_mul(occurrence.highest(schema));
    if cost > RULE_LIMIT {
        problem(format!(
            "the CEL {what} {text:?} has an estimated cost of {} times the limit of the server: set `maxItems`, \
             `maxProperties` and `maxLength` on the lists, maps and strings that it reads, or simplify it",
            Factor(cost, RULE_LIMIT)
        ));
    }
    cost
}

/// Checks the cost of all rules of a version.
pub(super) fn check_total(total: u64) -> Option<String> {
    let factor = Factor(total, TOTAL_LIMIT);
    (total > TOTAL_LIMIT).then(|| format!("all CEL rules together cost {factor} times the limit of the server"))
}

struct Factor(u64, u64);

impl std::fmt::Display for Factor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 / self.1 {
            factor if factor > 100 => f.write_str("more than 100"),
            _ => write!(f, "{:.1}", self.0 as f64 / self.1 as f64),
        }
    }
}

const RULE_LIMIT: u64 = 10_000_000;
const TOTAL_LIMIT: u64 = 100_000_000;
/// The largest request that the server takes, in bytes.
const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;

#[cfg(test)]
mod tests;
