//! The CEL rules of a schema (`x-kubernetes-validations`), compiled once and evaluated along an object and the one that it replaces.

use klient_cel::{Budget, CelValue, Expression, Variables, to_cel, with_metadata};
use klient_core::StatusCause;
use serde_json::{Value, json};

use super::ratchet;
use crate::causes::Causes;

/// The rules of a schema.
#[derive(Debug)]
pub(super) struct Rules {
    root: Node,
}

/// The units of cost that are left for several evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    /// A rule cost more than what was left. No further one is evaluated.
    Nothing,
    Units(u64),
}

impl Left {
    /// Returns the units for all rules of an object, or for all defaults of a definition.
    pub(super) const fn for_object() -> Self {
        Self::Units(OBJECT_BUDGET)
    }
}

/// The violations that an evaluation found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) causes: Causes,
    /// Violations that are accepted, because the value did not change.
    pub(super) warnings: Vec<String>,
}

/// A part of a schema that has rules, or parts with rules.
#[derive(Debug)]
struct Node {
    schema: Value,
    rules: Vec<Rule>,
    properties: Vec<(String, Node)>,
    items: Option<Box<Node>>,
    /// The values of a map.
    entries: Option<Box<Node>>,
}

#[derive(Debug)]
struct Rule {
    source: Value,
    expression: Result<Expression, String>,
    message: Option<Expression>,
    reads_old: bool,
}

impl Rules {
    /// Compiles the rules of a schema, or returns `None` if there are none.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        Node::of(&with_metadata(schema)).map(|root| Self { root })
    }

    /// Returns the violations of the rules of a schema by its default, as a value that stays and as a new one.
    /// Of both evaluations, the more expensive one is deducted from what is left for the defaults of a definition.
    pub(super) fn violations_by_default(schema: &Value, default: &Value, left: &mut Left) -> Causes {
        let (Some(root), Left::Units(budget)) = (Node::of(schema), *left) else { return Causes::new() };
        let rules = Self { root };
        let (mut found, after) = rules.evaluate_within(budget, false, default, Some(default));
        *left = after;
        if found.causes.is_empty() {
            let after;
            (found, after) = rules.evaluate_within(budget, false, default, None);
            *left = after.min(*left);
        }
        found.causes
    }

    /// Evaluates the rules for an object. A violation of a value that is equal in the old object is a warning.
    pub(super) fn evaluate(&self, object: &Value, old: Option<&Value>) -> Found {
        self.evaluate_within(OBJECT_BUDGET, true, object, old).0
    }

    /// Evaluates the rules with a limit of costs, and with or without tolerance for unchanged values. Returns what is left, too.
    fn evaluate_within(&self, budget: u64, tolerates: bool, object: &Value, old: Option<&Value>) -> (Found, Left) {
        let mut walk = Walk { budget, tolerates, found: Found::default() };
        let left = match walk.visit(&self.root, Pair { value: object, old, is_unchanged: false }, "") {
            Ok(()) => Left::Units(walk.budget),
            Err(Exhausted) => Left::Nothing,
        };
        (walk.found, left)
    }
}

impl Node {
    fn of(schema: &Value) -> Option<Self> {
        let rules: Vec<Rule> =
            schema["x-kubernetes-validations"].as_array().into_iter().flatten().map(Rule::of).collect();
        let properties: Vec<_> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.clone(), Self::of(schema)?)))
            .collect();
        let part = |name: &str| schema.get(name).filter(|part| part.is_object()).and_then(Self::of).map(Box::new);
        let (items, entries) = (part("items"), part("additionalProperties"));
        let is_empty = rules.is_empty() && properties.is_empty() && items.is_none() && entries.is_none();
        (!is_empty).then(|| Self { schema: schema.clone(), rules, properties, items, entries })
    }
}

impl Rule {
    fn of(source: &Value) -> Self {
        let text = |name: &str| source[name].as_str().unwrap_or_default();
        let expression = Expression::parse(text("rule")).map_err(|error| error.to_string());
        Self {
            reads_old: expression.as_ref().is_ok_and(|expression| expression.reads("oldSelf")),
            expression,
            message: source["messageExpression"].as_str().and_then(|text| Expression::parse(text).ok()),
            source: source.clone(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.source[name].as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns the text that messages show.
    fn shown(&self) -> &str {
        self.text("message").or_else(|| self.text("rule")).unwrap_or_default()
    }
}

/// A value, and the one that it replaces.
#[derive(Clone, Copy)]
struct Pair<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    /// Whether the nearest part with a former value is equal to it.
    is_unchanged: bool,
}

struct Walk {
    /// The units of cost that are left for the object.
    budget: u64,
    /// Whether violations of unchanged values are warnings.
    tolerates: bool,
    found: Found,
}

/// The object is too expensive to evaluate further rules.
struct Exhausted;

impl Walk {
    fn visit(&mut self, node: &Node, pair: Pair<'_>, path: &str) -> Result<(), Exhausted> {
        let Pair { value, old, .. } = pair;
        // The server does not evaluate rules on null.
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        let is_unchanged = match old {
            Some(old) => ratchet::is_unchanged(value, old, &node.schema),
            None => pair.is_unchanged,
        };
        let pair = Pair { value, old, is_unchanged };
        if !node.rules.is_empty() {
            self.evaluate(node, pair, path)?;
        }
        let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Object(fields) => {
                for (name, below) in &node.properties {
                    if let Some(value) = fields.get(name) {
                        let old = old.and_then(|old| old.get(name));
                        self.visit(below, Pair { value, old, is_unchanged }, &join(name))?;
                    }
                }
                let Some(below) = &node.entries else { return Ok(()) };
                for (key, value) in fields {
                    let old = old.and_then(|old| old.get(key));
                    self.visit(below, Pair { value, old, is_unchanged }, &format!("{path}[{key}]"))?;
                }
            }
            Value::Array(items) => {
                let Some(below) = &node.items else { return Ok(()) };
                for (index, value) in items.iter().enumerate() {
                    let old = old.and_then(|old| ratchet::item(value, old, &node.schema));
                    self.visit(below, Pair { value, old, is_unchanged }, &format!("{path}[{index}]"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn evaluate(&mut self, node: &Node, pair: Pair<'_>, path: &str) -> Result<(), Exhausted> {
        let kind = node.schema["type"].as_str().unwrap_or_default();
        if self.budget == 0 {
            let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.fail(path, kind, detail);
            return Err(Exhausted);
        }
        let mut variables = Variables::new();
        variables.set("self", to_cel(pair.value, &node.schema));
        let old = pair.old.map(|old| to_cel(old, &node.schema));
        for rule in &node.rules {
            let is_optional = rule.source["optionalOldSelf"] == true;
            if rule.reads_old && old.is_none() && !is_optional {
                continue;
            }
            if is_optional {
                variables.set("oldSelf", klient_cel::optional_of(old.clone()));
            } else if let Some(old) = &old {
                variables.set("oldSelf", old.clone());
            }
            self.apply(rule, &variables, pair, path, kind)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        rule: &Rule,
        variables: &Variables<'_>,
        pair: Pair<'_>,
        path: &str,
        kind: &str,
    ) -> Result<(), Exhausted> {
        let expression = match &rule.expression {
            Ok(expression) => expression,
            Err(why) => {
                self.fail(path, kind, &format!("rule compile error: compilation failed: {why}"));
                return Ok(());
            }
        };
        let mut budget = Budget::new(RULE_BUDGET);
        let result = expression.evaluate(variables, &mut budget);
        self.spend(&budget, path, kind)?;
        match result {
            Ok(CelValue::Bool(true)) => return Ok(()),
            Ok(CelValue::Bool(false)) => {}
            Ok(_) => {
                self.fail(path, kind, "rule compile error: cel expression must evaluate to a bool");
                return Ok(());
            }
            Err(error) if error.is_too_expensive() => {
                let shown = rule.shown();
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.fail(path, kind, &detail);
                return Err(Exhausted);
            }
            Err(error) if error.to_string().starts_with("no such overload") => {
                let shown = rule.shown();
                let detail = format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                );
                self.fail(path, kind, &detail);
                return Ok(());
            }
            Err(error) => {
                self.fail(path, kind, &format!("{error} evaluating rule: {}", rule.shown()));
                return Ok(());
            }
        }
        let detail = match self.computed_message(rule, variables, path, kind)? {
            Some(message) => message,
            None => rule.text("message").map_or_else(|| format!("failed rule: {}", rule.shown()), str::to_owned),
        };
        let cause = violation(rule, pair.value, path, kind, &detail);
        // The kind of an object is never tolerated.
        let is_kind = matches!(path, "apiVersion" | "kind");
        if self.tolerates && pair.is_unchanged && !rule.reads_old && !is_kind {
            self.found.warnings.push(format!("{}: {}", shown_path(&cause.field), cause.message));
        } else {
            self.found.causes.add(|| cause);
        }
        Ok(())
    }

    /// Returns the message that an expression gives, if it is one line.
    fn computed_message(
        &mut self,
        rule: &Rule,
        variables: &Variables<'_>,
        path: &str,
        kind: &str,
    ) -> Result<Option<String>, Exhausted> {
        let Some(expression) = &rule.message else { return Ok(None) };
        let mut budget = Budget::new(RULE_BUDGET);
        let result = expression.evaluate(variables, &mut budget);
        self.spend(&budget, path, kind)?;
        let Ok(CelValue::String(text)) = result else { return Ok(None) };
        let text = text.trim();
        let is_usable = !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE;
        Ok(is_usable.then(|| text.to_owned()))
    }

    fn spend(&mut self, budget: &Budget, path: &str, kind: &str) -> Result<(), Exhausted> {
        if budget.spent() > self.budget {
            let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.fail(path, kind, detail);
            return Err(Exhausted);
        }
        self.budget = self.budget.saturating_sub(budget.spent());
        Ok(())
    }

    fn fail(&mut self, path: &str, kind: &str, detail: &str) {
        self.found.causes.add(|| StatusCause::invalid(shown_path(path), kind, detail));
    }
}

/// Returns the cause of a violated rule.
fn violation(rule: &Rule, value: &Value, path: &str, kind: &str, detail: &str) -> StatusCause {
    let field = rule.text("fieldPath").unwrap_or_default();
    let field = format!("{path}{field}").trim_start_matches('.').to_owned();
    let field = shown_path(&field);
    match rule.text("reason") {
        Some("FieldValueForbidden") => StatusCause::forbidden(field, detail),
        Some("FieldValueRequired") => StatusCause::required(field, detail),
        Some("FieldValueDuplicate") if matches!(kind, "object" | "array") => {
            StatusCause::new("FieldValueDuplicate", field, "Duplicate value")
        }
        Some("FieldValueDuplicate") => StatusCause::duplicate(field, value.clone()),
        _ if matches!(kind, "object" | "array") => {
            StatusCause::new("FieldValueInvalid", field, format!("Invalid value: {detail}"))
        }
        _ => StatusCause::invalid(field, value.clone(), detail),
    }
}

/// The path of a whole object is shown as Go's nil.
fn shown_path(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

/// Returns the cause that stands for all rules if they are not evaluated.
pub(super) fn not_checked() -> StatusCause {
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    StatusCause::invalid("<nil>", json!(null), detail)
}

/// Returns whether a cause makes it impossible to evaluate rules, because values may have other types than the schema says.
pub(super) fn blocks(cause: &StatusCause) -> bool {
    matches!(
        cause.reason.as_str(),
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

/// The cost limits of the real server: for one evaluation of a rule, and for all rules of an object.
const RULE_BUDGET: u64 = 1_000_000;
const OBJECT_BUDGET: u64 = 10_000_000;
const MAX_MESSAGE: usize = 5 << 10;

#[cfg(test)]
mod tests;
