//! The evaluation of rules along an object and the one that it replaces.

use std::{borrow::Cow, sync::Arc};

use kube_cel::{
    KubeCelExt as _,
    cel::{Context, ExecutionError, Value as Cel, objects::OptionalValue},
};
use serde_json::Value;

use super::{
    rules::{CompiledRule, Node},
    value::to_cel,
    violation::{Violation, ViolationKind},
};
use crate::custom::rule::Message;

/// One evaluation of all rules.
pub(super) struct Walk {
    functions: Context<'static>,
    found: Vec<Violation>,
}

impl Walk {
    pub(super) fn new() -> Self {
        let mut functions = Context::default().with_all();
        functions.add_function("type", |value: Cel| Ok::<_, ExecutionError>(Cel::from(type_name(&value))));
        for name in TYPES {
            functions.add_variable_from_value(*name, Cel::from(*name));
        }
        Self { functions, found: Vec::new() }
    }

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
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value("self", to_cel(value, &node.schema, &self.functions));
        let old = old.map(|old| to_cel(old, &node.schema, &self.functions));
        let mut found = Vec::new();
        for rule in &node.rules {
            let is_optional = rule.rule.optional_old_self == Some(true);
            if (is_unchanged && !rule.reads_old) || (rule.reads_old && old.is_none() && !is_optional) {
                continue;
            }
            let mut context = context.new_inner_scope();
            match (&old, is_optional) {
                (Some(old), false) => context.add_variable_from_value("oldSelf", old.clone()),
                (None, false) => {}
                (old, true) => {
                    let old = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                    context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
                }
            }
            found.extend(violation(rule, &context, path));
        }
        self.found.extend(found);
    }
}

/// Evaluates a rule. Returns `None` if it is true.
fn violation(rule: &CompiledRule, context: &Context<'_>, path: &str) -> Option<Violation> {
    let result = rule.program.as_ref().map(|program| program.execute(context));
    let (kind, message) = match result {
        Ok(Ok(Cel::Bool(true))) => return None,
        Ok(Ok(Cel::Bool(false))) => (ViolationKind::Violated, message(rule, context)),
        Ok(Ok(_)) => (ViolationKind::Unsupported, "the rule is not a boolean".to_owned()),
        Ok(Err(ExecutionError::UndeclaredReference(name))) => {
            let message = format!("the rule uses {name}, which cannot be evaluated on the client");
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
fn message(rule: &CompiledRule, context: &Context<'_>) -> String {
    let computed = rule.message.as_ref().and_then(|program| match program.execute(context) {
        Ok(Cel::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains('\n')),
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

/// Returns the name of a value's type, as expressions write it: `type(self) == string`. The `cel` crate has no types as values.
fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Null => "null_type",
        _ => "other",
    }
}

const TYPES: &[&str] = &["list", "map", "int", "uint", "double", "string", "bytes", "bool", "null_type"];
