//! The checks of CEL rules when a definition is written: their fields, their types and their estimated costs.

use klient_cel::{Expression, Scope, Type, check};
use klient_core::{
    StatusCause,
    rule_cost::{self, Estimate, Occurrence, RULE_LIMIT, TOTAL_LIMIT},
};
use serde_json::{Value, json};

use super::path::Path;
use crate::causes::Causes;

/// Compiles the rules of a valid schema at a path of a definition, and estimates their costs.
pub(super) fn check_rules(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    let mut costs = Costs::default();
    let place = Place { path: *path, occurrence: Occurrence::ROOT, uncorrelated: None, is_root: true };
    compile(schema, &place, &mut costs, causes);
    costs.check_total(path, causes);
}

fn rules(schema: &Value) -> impl Iterator<Item = (usize, &Value)> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate()
}

fn text<'a>(rule: &'a Value, name: &str) -> &'a str {
    rule[name].as_str().unwrap_or_default()
}

/// Checks the fields of a schema's own rules.
pub(super) fn fields_of_rules(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    for (index, rule) in rules(schema) {
        let list = path.item("x-kubernetes-validations", index);
        let at = |name: &'static str| list.keyword(name);
        let message = text(rule, "message");
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        if text(rule, "rule").trim().is_empty() {
            causes.add(|| StatusCause::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            causes.add(|| StatusCause::invalid(at("message"), message, "must be non-empty if specified"));
        } else if has_breaks(message.trim()) {
            causes.add(|| StatusCause::invalid(at("message"), message, "must not contain line breaks"));
        } else if has_breaks(text(rule, "rule").trim()) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            causes.add(|| StatusCause::required(at("message"), detail));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            causes.add(|| StatusCause::required(at("messageExpression"), detail));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            causes.add(|| StatusCause::not_supported(at("reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        if field.is_empty() {
            continue;
        }
        if field.trim().is_empty() {
            causes.add(|| StatusCause::invalid(at("fieldPath"), field, "must be non-empty if specified"));
        }
        if has_breaks(field) {
            causes.add(|| StatusCause::invalid(at("fieldPath"), field, "must not contain line breaks"));
        }
        if !leads_somewhere(schema, field) {
            causes.add(|| StatusCause::invalid(at("fieldPath"), field, "must be a valid path"));
        }
    }
}

/// Returns whether a path such as `.a.b` or `['a.b']` leads to a field of a schema.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let Some(first) = path.chars().next() else { return false };
    let (name, rest) = match first {
        '.' => {
            let end = path[1..].find(['.', '[']).map_or(path.len(), |at| at + 1);
            (&path[1..end], &path[end..])
        }
        '[' => {
            let quoted = path.strip_prefix("['").and_then(|rest| rest.split_once("']"));
            let Some((name, rest)) = quoted else { return false };
            (name, rest)
        }
        _ => return false,
    };
    let part =
        schema["properties"].get(name).or_else(|| schema.get("additionalProperties").filter(|part| part.is_object()));
    part.is_some_and(|part| rest.is_empty() || leads_somewhere(part, rest))
}

/// A place in a schema.
struct Place<'p> {
    path: Path<'p>,
    occurrence: Occurrence,
    /// The path of the list in which old values cannot be found.
    uncorrelated: Option<&'p Path<'p>>,
    is_root: bool,
}

impl Place<'_> {
    fn below<'a>(&'a self, schema: &Value, keyword: &'a str) -> Place<'a> {
        let is_atomic = keyword == "items" && schema["x-kubernetes-list-type"] != "map";
        Place {
            path: self.path.keyword(keyword),
            occurrence: self.occurrence.within(schema),
            uncorrelated: self.uncorrelated.or_else(|| is_atomic.then_some(&self.path)),
            is_root: false,
        }
    }

    fn property<'a>(&'a self, name: &'a str) -> Place<'a> {
        let path = self.path.property(name);
        Place { path, occurrence: self.occurrence.field(), uncorrelated: self.uncorrelated, is_root: false }
    }
}

fn compile(schema: &Value, place: &Place<'_>, costs: &mut Costs, causes: &mut Causes) {
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        compile(part, &place.property(name), costs, causes);
    }
    for keyword in ["additionalProperties", "items"] {
        if let Some(part) = schema.get(keyword).filter(|part| part.is_object()) {
            compile(part, &place.below(schema, keyword), costs, causes);
        }
    }
    let own = if place.is_root { Type::of_root(schema) } else { Type::of_schema(schema) };
    for (index, rule) in rules(schema) {
        let list = place.path.item("x-kubernetes-validations", index);
        let at = |name: &'static str| list.keyword(name);
        let has_optional_old = rule["optionalOldSelf"] == true;
        let old = if has_optional_old { Type::Optional(Box::new(own.clone())) } else { own.clone() };
        let scope = Scope::new().with("self", own.clone()).with("oldSelf", old);
        let source = text(rule, "rule");
        let estimated = |source: &str| rule_cost::estimate(source, schema, place.occurrence, has_optional_old).ok();
        match compiled(source, &scope, "", "cel expression must evaluate to a bool", is_bool) {
            Err(detail) => causes.add(|| wrong(at("rule"), rule, &detail)),
            Ok(()) => costs.observe(at("rule"), "rule", estimated(source), causes),
        }
        if let Some(source) = rule["messageExpression"].as_str() {
            let detail = "messageExpression must evaluate to a string";
            match compiled(source, &scope, "messageExpression ", detail, is_text) {
                Err(detail) => causes.add(|| wrong(at("messageExpression"), rule, &detail)),
                Ok(()) => costs.observe(at("messageExpression"), "messageExpression", estimated(source), causes),
            }
        }
        let reads_old = Expression::parse(source).is_ok_and(|expression| expression.reads("oldSelf"));
        match (&place.uncorrelated, rule.get("optionalOldSelf")) {
            (Some(list), _) if reads_old => {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                causes.add(|| StatusCause::invalid(at("rule"), source, &detail));
            }
            (_, Some(optional)) if !reads_old && !optional.is_null() => {
                let detail = "may not be set if oldSelf is not used in rule";
                causes.add(|| StatusCause::invalid(at("optionalOldSelf"), optional.clone(), detail));
            }
            _ => {}
        }
    }
}

/// Compiles an expression. Returns a message if it is wrong, or if its type is.
fn compiled(
    source: &str,
    scope: &Scope,
    what: &str,
    wrong_type: &str,
    is_right: fn(&Type) -> bool,
) -> Result<(), String> {
    let expression = Expression::parse(source).map_err(|error| format!("{what}compilation failed: {error}"))?;
    let found = check(&expression, scope).map_err(|error| format!("{what}compilation failed: {error}"))?;
    if is_right(&found) { Ok(()) } else { Err(wrong_type.to_owned()) }
}

fn is_bool(found: &Type) -> bool {
    matches!(found, Type::Bool | Type::Dyn)
}

fn is_text(found: &Type) -> bool {
    matches!(found, Type::String | Type::Dyn)
}

/// Returns the cause of a wrong expression. It shows the rule as the real server does: a Go struct as JSON.
fn wrong(field: Path<'_>, rule: &Value, detail: &str) -> StatusCause {
    let entries = [
        ("Rule", json!(text(rule, "rule"))),
        ("Message", json!(text(rule, "message"))),
        ("MessageExpression", json!(text(rule, "messageExpression"))),
        ("Reason", rule["reason"].clone()),
        ("FieldPath", json!(text(rule, "fieldPath"))),
        ("OptionalOldSelf", rule["optionalOldSelf"].clone()),
    ];
    let entries: Vec<String> = entries.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    // As Go escapes JSON.
    let shown = entries.join(",").replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    StatusCause::new("FieldValueInvalid", field, format!("Invalid value: {{{shown}}}: {detail}"))
}

/// The estimated costs of the expressions of a version.
#[derive(Default)]
struct Costs {
    total: u64,
    /// The expressions that contribute most, the highest cost first.
    each: Vec<(String, u64)>,
}

impl Costs {
    fn observe(&mut self, field: Path<'_>, what: &str, estimate: Option<Estimate>, causes: &mut Causes) {
        let Some(estimate) = estimate else { return };
        if estimate.cost > RULE_LIMIT {
            causes.add(|| {
                StatusCause::forbidden(field, &exceeded(&format!("estimated {what} cost"), estimate.cost, RULE_LIMIT))
            });
        }
        self.total = self.total.saturating_add(estimate.cost);
        let is_among = self.each.len() < MAX_SHOWN || self.each.iter().any(|(_, cost)| *cost < estimate.cost);
        if estimate.cost > TOTAL_LIMIT / 100 && is_among {
            self.each.push((field.to_string(), estimate.cost));
            self.each.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.each.truncate(MAX_SHOWN);
        }
    }

    /// Reports a total that is too high, and the expressions that contribute most.
    fn check_total(self, path: &Path<'_>, causes: &mut Causes) {
        if self.total <= TOTAL_LIMIT {
            return;
        }
        for (field, _) in self.each {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            causes.add(|| StatusCause::forbidden(field, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = exceeded(what, self.total, TOTAL_LIMIT);
        causes.add(|| StatusCause::forbidden(*path, &detail));
    }
}

fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 { "more than 100x".to_owned() } else { format!("{factor:.1}x") };
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
    format!("{what} exceeds budget by factor of {factor} {advice}")
}

/// The number of expressions that are named if all together cost too much.
const MAX_SHOWN: usize = 4;
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
