//! CEL rules: their syntax, and the cost that the server estimates before it takes a definition.

use klient_core::rule_cost::{self, Estimate, Occurrence, RULE_LIMIT, TOTAL_LIMIT};
use serde_json::Value;

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
        let texts = [("rule", Some(text)), ("message expression", rule["messageExpression"].as_str())];
        for (what, text) in texts.into_iter().filter_map(|(what, text)| text.map(|text| (what, text))) {
            let estimate = rule_cost::estimate(text, schema, occurrence, rule["optionalOldSelf"] == true);
            total = total.saturating_add(check_expression(what, text, estimate, occurrence, problem));
        }
    }
    total
}

/// Checks one expression. Returns its cost.
fn check_expression(
    what: &str,
    text: &str,
    estimate: Result<Estimate, String>,
    occurrence: Occurrence,
    problem: &mut dyn FnMut(String),
) -> u64 {
    let estimate = match estimate {
        Ok(estimate) => estimate,
        Err(error) => {
            problem(format!("the CEL {what} {text:?} is not valid: {error}"));
            return 0;
        }
    };
    if estimate.reads_old && !occurrence.correlates() {
        let remedy = "use `ListMerge::Map` on the list around it, so that items have an identity";
        problem(format!(
            "the CEL {what} {text:?} compares with `oldSelf`, which items of a list do not have: {remedy}"
        ));
    }
    let cost = estimate.cost;
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

#[cfg(test)]
mod tests;
