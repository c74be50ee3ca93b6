//! CEL rules and merge strategies, as the attributes `#[x_kube(...)]` name them.

use schemars::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A CEL rule that the server evaluates when an object is written (`x-kubernetes-validations`).
///
/// ```
/// use klient::custom::{Reason, Rule};
///
/// let rule = Rule::new("self == oldSelf").message("the name cannot be changed").reason(Reason::FieldValueForbidden);
/// assert_eq!(serde_json::to_value(&rule)?["message"], "the name cannot be changed");
/// assert_eq!(Rule::from(("self > 0", "must be positive")), Rule::new("self > 0").message("must be positive"));
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The expression. `self` is the value that has the rule, and `oldSelf` the value that it replaces.
    pub rule: String,
    /// The message of a violation; by default the server writes `failed rule: ...`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// The field that a violation names, relative to the value: `.spec.size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// The reason of a violation, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether a rule with `oldSelf` is also evaluated on creation, where `oldSelf` is an empty optional value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// Creates a rule.
    pub fn new(rule: impl Into<String>) -> Self {
        Self { rule: rule.into(), ..Self::default() }
    }

    /// Sets the message of a violation.
    #[must_use]
    pub fn message(mut self, message: impl Into<Message>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets the reason of a violation.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<Reason>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets the field that a violation names.
    #[must_use]
    pub fn field_path(mut self, field_path: impl Into<String>) -> Self {
        self.field_path = Some(field_path.into());
        self
    }

    /// Sets whether a rule with `oldSelf` is also evaluated on creation.
    #[must_use]
    pub fn optional_old_self(mut self, optional: bool) -> Self {
        self.optional_old_self = Some(optional);
        self
    }
}

impl From<&str> for Rule {
    fn from(rule: &str) -> Self {
        Self::new(rule)
    }
}

impl From<(&str, &str)> for Rule {
    /// Creates a rule from an expression and a message.
    fn from((rule, message): (&str, &str)) -> Self {
        Self::new(rule).message(message)
    }
}

/// The message of a [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A text without line breaks.
    #[serde(rename = "message")]
    Message(String),
    /// A CEL expression that gives the text.
    #[serde(rename = "messageExpression")]
    Expression(String),
}

impl From<&str> for Message {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

/// The reason that the server gives for a violation of a [`Rule`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The value is malformed or out of bounds.
    #[default]
    FieldValueInvalid,
    /// The value is well-formed but not allowed here.
    FieldValueForbidden,
    /// A value is missing.
    FieldValueRequired,
    /// The value occurs twice.
    FieldValueDuplicate,
}

/// How server-side apply merges a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// The list is replaced as a whole, and has one owner.
    Atomic,
    /// The list is a set of scalars, each with its owners.
    Set,
    /// The list is a map whose elements are identified by these fields.
    Map(Vec<String>),
}

/// How server-side apply merges a map or a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMerge {
    /// The map is replaced as a whole, and has one owner.
    Atomic,
    /// Each field has its owners.
    Granular,
}

/// How server-side apply merges a struct, in kube-derive's words.
///
/// It has no effect: CustomResourceDefinitions have no keyword for it. Use [`MapMerge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructMerge {
    /// The struct is replaced as a whole.
    Atomic,
    /// Each field has its owners.
    Granular,
}

/// How server-side apply merges a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStrategy {
    /// The field is a list.
    ListType(ListMerge),
    /// The field is a map or a struct.
    MapType(MapMerge),
    /// The field is a struct; without effect.
    StructType(StructMerge),
}

impl From<ListMerge> for MergeStrategy {
    fn from(merge: ListMerge) -> Self {
        Self::ListType(merge)
    }
}

impl From<MapMerge> for MergeStrategy {
    fn from(merge: MapMerge) -> Self {
        Self::MapType(merge)
    }
}

impl From<StructMerge> for MergeStrategy {
    fn from(merge: StructMerge) -> Self {
        Self::StructType(merge)
    }
}

impl MergeStrategy {
    fn keywords(&self) -> Vec<(&'static str, Value)> {
        let list = |kind: &str| ("x-kubernetes-list-type", Value::from(kind));
        match self {
            Self::ListType(ListMerge::Atomic) => vec![list("atomic")],
            Self::ListType(ListMerge::Set) => vec![list("set")],
            Self::ListType(ListMerge::Map(keys)) => vec![list("map"), ("x-kubernetes-list-map-keys", json!(keys))],
            Self::MapType(MapMerge::Atomic) => vec![("x-kubernetes-map-type", "atomic".into())],
            Self::MapType(MapMerge::Granular) => vec![("x-kubernetes-map-type", "granular".into())],
            Self::StructType(_) => Vec::new(),
        }
    }
}

/// Adds a rule to a schema.
pub fn add_rule(schema: &mut Schema, rule: impl Into<Rule>) {
    add_to(schema.ensure_object(), &rule.into());
}

/// Adds a rule to the first property of a schema.
pub fn add_property_rule(schema: &mut Schema, rule: impl Into<Rule>) {
    if let Some(property) = first_property(schema) {
        add_to(property, &rule.into());
    }
}

/// Sets how the first property of a schema is merged.
pub fn set_merge(schema: &mut Schema, strategy: impl Into<MergeStrategy>) {
    if let Some(property) = first_property(schema) {
        let keywords = strategy.into().keywords();
        property.extend(keywords.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)));
    }
}

/// Replaces the properties that another schema has as well.
pub fn replace_properties(schema: &mut Schema, other: &Schema) {
    let Some(Value::Object(new)) = other.as_object().and_then(|other| other.get("properties")).cloned() else { return };
    let properties = schema.ensure_object().entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.extend(new);
    }
}

fn add_to(schema: &mut Map<String, Value>, rule: &Rule) {
    // A rule has strings and booleans alone, which always have a JSON form.
    let rule = serde_json::to_value(rule).unwrap_or_default();
    match schema.entry("x-kubernetes-validations").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(rules) => rules.push(rule),
        other => *other = Value::Array(vec![rule]),
    }
}

fn first_property(schema: &mut Schema) -> Option<&mut Map<String, Value>> {
    let properties = schema.as_object_mut()?.get_mut("properties")?.as_object_mut()?;
    let property = properties.values_mut().next()?;
    // `true` is a schema too, without keywords.
    if property.is_boolean() {
        *property = Value::Object(Map::new());
    }
    property.as_object_mut()
}
