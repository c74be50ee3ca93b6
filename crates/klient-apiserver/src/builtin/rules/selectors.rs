//! Validation of selectors: of labels, and of nodes.

use klient_core::LabelSelector;
use serde_json::Value;

use super::field::{Causes, Field};
use crate::metadata::formats;

impl Field<'_, '_> {
    /// Validates a label selector.
    pub(super) fn label_selector(&self, causes: &mut Causes) {
        self.field("matchLabels").labels(causes);
        for expression in self.field("matchExpressions").items() {
            let (operator, values) = (expression.field("operator"), expression.field("values"));
            match operator.text() {
                "In" | "NotIn" => {
                    if values.is_empty() {
                        values.required("must be specified when `operator` is 'In' or 'NotIn'", causes);
                    }
                }
                "Exists" | "DoesNotExist" => {
                    if !values.is_empty() {
                        let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                        values.forbidden(detail, causes);
                    }
                }
                _ => operator.invalid("not a valid selector operator", causes),
            }
            expression.field("key").qualified_name(causes);
            values.items().for_each(|value| value.problems(formats::label_value_problems(value.text()), causes));
        }
    }

    /// Validates a node selector.
    pub(super) fn node_selector(&self, causes: &mut Causes) {
        let terms = self.field("nodeSelectorTerms");
        if terms.is_empty() {
            return terms.required("must have at least one node selector term", causes);
        }
        terms.items().for_each(|term| term.node_selector_term(true, causes));
    }

    /// Validates a term of a node selector. Preferred terms may have any values.
    pub(super) fn node_selector_term(&self, checks_values: bool, causes: &mut Causes) {
        for expression in self.field("matchExpressions").items() {
            let (operator, values) = (expression.field("operator"), expression.field("values"));
            match operator.text() {
                "In" | "NotIn" if values.is_empty() => {
                    values.required("must be specified when `operator` is 'In' or 'NotIn'", causes);
                }
                "Exists" | "DoesNotExist" if !values.is_empty() => {
                    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", causes);
                }
                "Gt" | "Lt" if values.list().len() != 1 => {
                    values.required("must be specified single value when `operator` is 'Lt' or 'Gt'", causes);
                }
                "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
                _ => operator.invalid("not a valid selector operator", causes),
            }
            expression.field("key").qualified_name(causes);
            if checks_values {
                values.items().for_each(|value| value.problems(formats::label_value_problems(value.text()), causes));
            }
        }
        for field in self.field("matchFields").items() {
            let (operator, values) = (field.field("operator"), field.field("values"));
            match operator.text() {
                "In" | "NotIn" if values.list().len() != 1 => {
                    let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    values.required(detail, causes);
                }
                "In" | "NotIn" => {}
                _ => operator.invalid("not a valid selector operator", causes),
            }
            match field.field("key") {
                key if key.text() != "metadata.name" => key.invalid("not a valid field selector key", causes),
                _ => values.items().for_each(|value| value.subdomain(causes)),
            }
        }
    }
}

/// Returns whether a selector selects no labels in particular.
pub(super) fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
}

/// Returns whether a selector selects labels, or nothing if the selector is invalid.
pub(super) fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    let parsed = serde_json::from_value(selector.clone()).ok()?;
    let parsed = LabelSelector::from_api(Option::as_ref(&parsed)).ok()?;
    Some(parsed.matches(|key: &str| labels[key].as_str().map(str::to_owned)))
}

/// Returns the text of a selector in messages, with fields in the order of Go's struct.
pub(super) fn text(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let mut parts = Vec::new();
    if let Some(labels) = selector.get("matchLabels") {
        parts.push(format!("\"matchLabels\":{labels}"));
    }
    if let Some(expressions) = selector.get("matchExpressions") {
        // The names of the fields are in alphabetical order in Go, too.
        parts.push(format!("\"matchExpressions\":{expressions}"));
    }
    format!("{{{}}}", parts.join(","))
}

/// Returns the text of a volume's node affinity in messages, with its fields in Go.
pub(super) fn affinity_text(affinity: &Value) -> String {
    match &affinity["required"] {
        _ if affinity.is_null() => "null".to_owned(),
        Value::Null => "{\"Required\":null}".to_owned(),
        required => {
            let terms: Vec<String> =
                required["nodeSelectorTerms"].as_array().into_iter().flatten().map(term_text).collect();
            let terms = if terms.is_empty() { "null".to_owned() } else { format!("[{}]", terms.join(",")) };
            format!("{{\"Required\":{{\"NodeSelectorTerms\":{terms}}}}}")
        }
    }
}

/// Returns the text of a term of a node selector in messages, with its fields in Go.
pub(super) fn term_text(term: &Value) -> String {
    let requirements = |list: &Value| match list.as_array() {
        None => "null".to_owned(),
        Some(list) => {
            let shown = list.iter().map(|item| {
                let text = |name: &str| Value::from(item[name].as_str().unwrap_or_default());
                format!("{{\"Key\":{},\"Operator\":{},\"Values\":{}}}", text("key"), text("operator"), item["values"])
            });
            format!("[{}]", shown.collect::<Vec<_>>().join(","))
        }
    };
    let (expressions, fields) = (requirements(&term["matchExpressions"]), requirements(&term["matchFields"]));
    format!("{{\"MatchExpressions\":{expressions},\"MatchFields\":{fields}}}")
}
