//! YAML of small values, in the layout of Go's encoder: the protobuf form of documents has extensions and defaults as YAML.

use serde_json::Value;

/// Returns a value as YAML, with a line break at its end.
pub(super) fn print(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(_) | Value::Array(_) => node(value, 0, &mut out),
        other => {
            scalar(other, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Returns the kind of an operation as YAML. It is a struct in Go, whose fields have this order.
pub(super) fn print_kind(kind: &Value) -> String {
    let field = |name: &str| print(&serde_json::json!({name: kind[name]}));
    ["group", "version", "kind"].map(field).concat()
}

/// Returns validation rules as YAML. They are structs in Go, whose fields have this order.
pub(super) fn print_rules(rules: &Value) -> String {
    let mut out = String::new();
    for rule in rules.as_array().into_iter().flatten() {
        let fields = ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];
        let fields = fields.iter().filter_map(|name| Some((*name, rule.get(*name)?)));
        for (at, (name, value)) in fields.enumerate() {
            out.push_str(if at == 0 { "- " } else { "  " });
            out.push_str(&print(&serde_json::json!({name: value})));
        }
    }
    out
}

/// Prints a list or map whose first line starts at the current column.
fn node(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (name, inner)) in fields.iter().enumerate() {
                if at > 0 {
                    pad(indent, out);
                }
                text(name, out);
                out.push(':');
                match inner {
                    Value::Object(inner_fields) if !inner_fields.is_empty() => below(inner, indent, out),
                    Value::Array(items) if !items.is_empty() => below(inner, indent, out),
                    other => {
                        out.push(' ');
                        scalar(other, out);
                        out.push('\n');
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(indent, out);
                }
                out.push_str("- ");
                node(item, indent + 2, out);
            }
        }
        other => {
            scalar(other, out);
            out.push('\n');
        }
    }
}

/// Prints a list or map on the lines after its name.
fn below(value: &Value, indent: usize, out: &mut String) {
    out.push('\n');
    let inner = (indent + STEP) / STEP * STEP;
    pad(inner, out);
    node(value, inner, out);
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(value: &Value, out: &mut String) {
    match value {
        Value::String(value) => text(value, out),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => out.push_str(&other.to_string()),
    }
}

/// Prints a text without quotes if it reads back as the same text.
fn text(value: &str, out: &mut String) {
    let is_word = value.starts_with(|first: char| first.is_ascii_alphabetic() || "/._".contains(first))
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_./, +()$<>=".contains(c))
        && !value.ends_with(' ')
        && !RESERVED.contains(&value.to_ascii_lowercase().as_str())
        && value.parse::<f64>().is_err();
    let needs_escapes = value.is_empty()
        || value.contains(|c: char| c.is_control())
        || value.starts_with(|first: char| first.is_ascii_digit())
        || RESERVED.contains(&value);
    if is_word {
        out.push_str(value);
    } else if needs_escapes {
        out.push_str(&Value::from(value).to_string());
    } else {
        out.push('\'');
        out.push_str(&value.replace('\'', "''"));
        out.push('\'');
    }
}

/// Words that YAML reads as something other than text.
const RESERVED: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".nan", ".inf"];
/// The indentation of Go's encoder.
const STEP: usize = 4;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_has_the_layout_of_go() {
        assert_eq!(print(&json!("merge")), "merge\n");
        assert_eq!(print(&json!(true)), "true\n");
        assert_eq!(print(&json!(["a", "b"])), "- a\n- b\n");
        assert_eq!(
            print(&json!([{"group": "", "kind": "Pod", "version": "v1"}, {"group": "apps"}])),
            "- group: \"\"\n  kind: Pod\n  version: v1\n- group: apps\n"
        );
        assert_eq!(print(&json!({"a": {"b": [1]}})), "a:\n    b:\n        - 1\n");
        assert_eq!(print(&json!([{"a": {"b": "x,y"}}])), "- a:\n    b: x,y\n");
        let operation = json!({"group": "apps", "kind": "Deployment", "version": "v1"});
        assert_eq!(print_kind(&operation), "group: apps\nversion: v1\nkind: Deployment\n");
    }
}
