//! The evaluation of rules along an object and the one that it replaces.

use std::borrow::Cow;

use klient_cel::{Budget, CelValue, Variables, optional_of, to_cel};
use serde_json::Value;

use super::{
    rules::{CompiledRule, Node},
    violation::{Violation, ViolationKind},
};
use crate::custom::rule::Message;

/// One evaluation of all rules.
#[derive(Default)]
pub(super) struct Walk {
    found: Vec<Violation>,
}

impl Walk {
    pub(super) fn of(mut self, root: &Node, value: &Value, old: Option<&Value>) -> Vec<Violation> {
        self.visit(root, value, old, "");
        self.found
    }

    fn visit(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &str) {
        // The server does not evaluate rules on null.
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !node.rules.is_empty() {
            self.evaluate(node, value, old, path);
        }
        let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Object(fields) => {
                for (name, below) in &node.properties {
                    if let Some(value) = fields.get(name) {
                        self.visit(below, value, old.and_then(|old| old.get(name)), &join(name));
                    }
                }
                if let Some(below) = &node.entries {
                    for (key, value) in fields {
                        let entry = format!("{path}[{key}]");
                        self.visit(below, value, old.and_then(|old| old.get(key)), &entry);
                    }
                }
            }
            Value::Array(items) => {
                let Some(below) = &node.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let former = old.and_then(|old| find(old, item, &node.list_keys));
                    self.visit(below, item, former, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn evaluate(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &str) {
        let is_unchanged = old == Some(value);
        let mut variables = Variables::new();
        variables.set("self", to_cel(value, &node.schema));
        let old = old.map(|old| to_cel(old, &node.schema));
        for rule in &node.rules {
            let is_optional = rule.rule.optional_old_self == Some(true);
            if (is_unchanged && !rule.reads_old) || (rule.reads_old && old.is_none() && !is_optional) {
                continue;
            }
            if is_optional {
                variables.set("oldSelf", optional_of(old.clone()));
            } else if let Some(old) = &old {
                variables.set("oldSelf", old.clone());
            }
            self.found.extend(violation(rule, &variables, path));
        }
    }
}

/// Evaluates a rule. Returns `None` if it is true.
fn violation(rule: &CompiledRule, variables: &Variables<'_>, path: &str) -> Option<Violation> {
    let result = rule.expression.as_ref().map(|rule| rule.evaluate(variables, &mut Budget::new(RULE_BUDGET)));
    let (kind, message) = match result {
        Ok(Ok(CelValue::Bool(true))) => return None,
        Ok(Ok(CelValue::Bool(false))) => (ViolationKind::Violated, message(rule, variables)),
        Ok(Ok(_)) => (ViolationKind::Unsupported, "the rule is not a boolean".to_owned()),
        Ok(Err(error)) if error.is_undeclared() => {
            let message = format!("the rule uses something that cannot be evaluated on the client: {error}");
            (ViolationKind::Unsupported, message)
        }
        Ok(Err(error)) => (ViolationKind::Failed, format!("cannot evaluate the rule: {error}")),
        Err(error) => (ViolationKind::Unsupported, format!("cannot parse the rule: {error}")),
    };
    let rule = &rule.rule;
    let field = rule.field_path.as_deref().unwrap_or_default();
    let path = format!("{path}{field}").trim_start_matches('.').to_owned();
    Some(Violation { path, rule: rule.rule.clone(), message, reason: rule.reason.unwrap_or_default(), kind })
}

/// Returns the message of a violated rule. A message expression that fails, or gives no single line, has no effect.
fn message(rule: &CompiledRule, variables: &Variables<'_>) -> String {
    let computed =
        rule.message.as_ref().and_then(|message| match message.evaluate(variables, &mut Budget::new(RULE_BUDGET)) {
            Ok(CelValue::String(text)) => {
                Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains('\n'))
            }
            _ => None,
        });
    let fixed = match &rule.rule.message {
        Some(Message::Message(text)) => Cow::Borrowed(text.as_str()),
        _ => Cow::Owned(format!("failed rule: {}", rule.rule.rule)),
    };
    computed.unwrap_or_else(|| fixed.into_owned())
}

/// Returns the former item with the same keys. Items of lists without keys have no identity.
fn find<'a>(old: &'a Value, item: &Value, keys: &[String]) -> Option<&'a Value> {
    if keys.is_empty() {
        return None;
    }
    old.as_array()?.iter().find(|former| keys.iter().all(|key| former.get(key) == item.get(key)))
}

/// The server's limit of what one evaluation of a rule may cost.
const RULE_BUDGET: u64 = 1_000_000;
