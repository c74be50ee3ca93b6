//! The rules of a schema, compiled once.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use klient_cel::Expression;
use serde::Serialize;
use serde_json::Value;

use super::{
    defaults::complete,
    violation::{InvalidObject, Violation, ViolationKind},
    walk::Walk,
};
use crate::custom::{Reason, rule};

/// The CEL rules of a schema.
///
/// `validate_cel` of derived types uses it. It also evaluates the rules of schemas without a Rust type:
///
/// ```
/// use klient::custom::Rules;
/// use serde_json::{from_value, json};
///
/// let schema = from_value(json!({"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-validations": [
///     {"rule": "self > 0", "message": "must be positive"},
/// ]}}}))?;
/// let rules = Rules::new("Shop", &schema);
/// assert!(rules.validate(&json!({"size": 1}), None).is_ok());
/// let error = rules.validate(&json!({"size": 0}), None).unwrap_err();
/// assert_eq!(error.to_string(), "Shop violates 1 of its rules; size: must be positive (rule `self > 0`, FieldValueInvalid)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Rules {
    kind: String,
    root: Node,
}

/// A node of a schema.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) schema: Value,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) properties: Vec<(String, Node)>,
    pub(super) items: Option<Box<Node>>,
    /// The values of a map.
    pub(super) entries: Option<Box<Node>>,
    /// The keys by which the items of a list are identified.
    pub(super) list_keys: Vec<String>,
}

/// A rule with its expressions.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: rule::Rule,
    pub(super) expression: Result<Expression, String>,
    pub(super) message: Option<Expression>,
    /// Whether the rule compares with the former value.
    pub(super) reads_old: bool,
}

impl Rules {
    /// Compiles the rules of a schema. Mistakes in rules are reported by [`validate`](Self::validate).
    #[must_use]
    pub fn new(kind: impl Into<String>, schema: &JSONSchemaProps) -> Self {
        let schema = serde_json::to_value(schema).unwrap_or_default();
        // Rules may read the name of an object, which schemas do not declare.
        Self { kind: kind.into(), root: Node::new(klient_cel::with_metadata(&schema)) }
    }

    /// Evaluates the rules for a new object, or for one that replaces `old`, as the server does.
    ///
    /// Defaults are set before. Rules with `oldSelf` are evaluated if there is an old value. Values that are equal to the old one
    /// are not evaluated again by other rules, so that an object which a newer rule forbids can still be changed elsewhere.
    ///
    /// # Errors
    ///
    /// Returns all rules that are violated, or that cannot be evaluated.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Result<(), InvalidObject> {
        let (mut value, mut old) = (value.clone(), old.cloned());
        complete(&self.root.schema, &mut value);
        if let Some(old) = &mut old {
            complete(&self.root.schema, old);
        }
        let violations = Walk::default().of(&self.root, &value, old.as_ref());
        if violations.is_empty() { Ok(()) } else { Err(InvalidObject { kind: self.kind.clone(), violations }) }
    }

    /// Evaluates the rules for a typed object.
    #[doc(hidden)]
    pub fn validate_typed(&self, value: &impl Serialize, old: Option<&impl Serialize>) -> Result<(), InvalidObject> {
        let unwritable = |error: serde_json::Error| {
            let message = format!("cannot serialize the object as JSON: {error}");
            let (path, rule) = (String::new(), String::new());
            let reason = Reason::FieldValueInvalid;
            let violation = Violation { path, rule, message, reason, kind: ViolationKind::Failed };
            InvalidObject { kind: self.kind.clone(), violations: vec![violation] }
        };
        let value = serde_json::to_value(value).map_err(unwritable)?;
        let old = old.map(serde_json::to_value).transpose().map_err(unwritable)?;
        self.validate(&value, old.as_ref())
    }
}

impl Node {
    fn new(schema: Value) -> Self {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        let rules = rules.filter_map(CompiledRule::new).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties = properties.map(|(name, schema)| (name.clone(), Self::new(schema.clone()))).collect();
        let part = |name: &str| {
            let schema = schema.get(name).filter(|schema| schema.is_object())?;
            Some(Box::new(Self::new(schema.clone())))
        };
        let (items, entries) = (part("items"), part("additionalProperties"));
        let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        let list_keys = keys.filter_map(|key| key.as_str().map(str::to_owned)).collect();
        Self { rules, properties, items, entries, list_keys, schema }
    }
}

impl CompiledRule {
    fn new(rule: &Value) -> Option<Self> {
        let rule: rule::Rule = serde_json::from_value(rule.clone()).ok()?;
        let expression = Expression::parse(&rule.rule).map_err(|error| error.to_string());
        let reads_old = expression.as_ref().is_ok_and(|expression| expression.reads("oldSelf"));
        let message = match &rule.message {
            Some(rule::Message::Expression(expression)) => Expression::parse(expression).ok(),
            _ => None,
        };
        Some(Self { rule, expression, message, reads_old })
    }
}
