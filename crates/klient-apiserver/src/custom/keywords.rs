//! The checks of keywords, for the schema of a custom kind and all schemas in it, in the order of the real server.

use klient_core::StatusCause;
use serde_json::{Value, json};

use super::{list_types, path::Path, rule_check};
use crate::causes::Causes;

/// Checks a schema at a path of a definition.
pub(super) fn check(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    visit(schema, path, Place { is_root: true, ..Place::default() }, causes);
}

/// The place of a schema.
#[derive(Clone, Copy, Default)]
struct Place {
    is_root: bool,
    is_in_metadata: bool,
    /// Why defaults are forbidden.
    forbids_defaults: Option<&'static str>,
}

impl Place {
    fn below(self) -> Self {
        Self { is_root: false, ..self }
    }

    /// Returns the place of a property of a schema.
    fn property(self, schema: &Value, name: &str) -> Self {
        let reason = match name {
            "metadata" => "in top-level metadata",
            "kind" => "in top-level kind",
            "apiVersion" => "in top-level apiVersion",
            _ => return self.below(),
        };
        if !self.is_root && schema["x-kubernetes-embedded-resource"] != true {
            return self.below();
        }
        let forbids_defaults = if self.is_root { Some(reason) } else { self.forbids_defaults };
        Self { is_root: false, is_in_metadata: true, forbids_defaults }
    }

    fn additional(self) -> Self {
        match self.is_in_metadata {
            true => {
                let reason = "inside additionalProperties applying to object metadata";
                Self { forbids_defaults: Some(reason), ..self.below() }
            }
            false => self.below(),
        }
    }
}

fn visit(schema: &Value, path: &Path<'_>, place: Place, causes: &mut Causes) {
    let Value::Object(_) = schema else { return };
    unsupported(schema, path, place, causes);
    if schema["uniqueItems"] == true {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.add(|| StatusCause::forbidden(path.keyword("uniqueItems"), detail));
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let has_properties = entries(schema, "properties").next().is_some();
        if has_properties && *additional != json!(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            causes.add(|| StatusCause::forbidden(path.keyword("additionalProperties"), detail));
        }
        visit(additional, &path.keyword("additionalProperties"), place.additional(), causes);
    }
    for (name, part) in entries(schema, "properties") {
        visit(part, &path.property(name), place.property(schema, name), causes);
    }
    visit(&schema["not"], &path.keyword("not"), place.below(), causes);
    for keyword in ["allOf", "oneOf", "anyOf"] {
        visit_list(schema, keyword, path, place, causes);
    }
    for (name, part) in entries(schema, "definitions") {
        visit(part, &path.entry("definitions", name), place.below(), causes);
    }
    visit(&schema["items"], &path.keyword("items"), place.below(), causes);
    visit_list(schema, "items", path, place, causes);
    for (name, part) in entries(schema, "dependencies") {
        visit(part, &path.entry("dependencies", name), place.below(), causes);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let field = path.keyword("x-kubernetes-preserve-unknown-fields");
        causes.add(|| StatusCause::invalid(field, false, "must be true or undefined"));
    }
    list_types::validate(schema, path, causes);
    rule_check::fields_of_rules(schema, path, causes);
}

fn visit_list(schema: &Value, keyword: &str, path: &Path<'_>, place: Place, causes: &mut Causes) {
    for (index, part) in schema[keyword].as_array().into_iter().flatten().enumerate() {
        visit(part, &path.item(keyword, index), place.below(), causes);
    }
}

/// Checks for types and keywords that schemas of custom kinds cannot have.
fn unsupported(schema: &Value, path: &Path<'_>, place: Place, causes: &mut Causes) {
    let kind = schema["type"].as_str().unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        causes.add(|| StatusCause::not_supported(path.keyword("type"), kind, &TYPES));
    }
    let mut forbid = |keyword: &str, detail: &str| {
        causes.add(|| StatusCause::forbidden(path.keyword(keyword), detail));
    };
    if let Some(reason) = place.forbids_defaults
        && schema.get("default").is_some()
    {
        forbid("default", &format!("must not be set {reason}"));
    }
    for (keyword, detail) in [
        ("id", "id is not supported"),
        ("additionalItems", "additionalItems is not supported"),
        ("patternProperties", "patternProperties is not supported"),
        ("definitions", "definitions is not supported"),
        ("dependencies", "dependencies is not supported"),
        ("$ref", "$ref is not supported"),
    ] {
        if schema.get(keyword).is_some() {
            forbid(keyword, detail);
        }
    }
    if kind == "null" {
        forbid("type", "type cannot be set to null, use nullable as an alternative");
    }
    if schema["items"].as_array().is_some_and(|items| !items.is_empty()) {
        forbid("items", "items must be a schema object and not an array");
    }
    if place.is_in_metadata && schema["x-kubernetes-embedded-resource"] == true {
        forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    }
}

fn entries<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[keyword].as_object().into_iter().flatten()
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
