//! The rules that the schema of a custom kind must follow: its structure is declared outside of `allOf`, `anyOf`, `oneOf` and `not`.

use klient_core::StatusCause;
use serde_json::{Map, Value, json};

use super::path::Path;
use crate::causes::Causes;

/// The place of a schema in the schema of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The keywords whose schemas only validate values.
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the violated rules of the schema at a path of a definition.
pub(crate) fn validate(schema: &Value, path: &str) -> Causes {
    let path = &Path::of(path);
    let mut causes = Causes::new();
    if schema["nullable"] == true {
        causes.add(|| StatusCause::forbidden(path.keyword("nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = unsupported(schema);
    let mut structure = Causes::new();
    if unsupported.is_none() {
        invariants(schema, Level::Root, path, &mut structure);
        completeness(schema, Some(schema), path, path, &mut structure);
        structure.sort();
        if structure.is_empty() {
            super::defaults::check(schema, path, &mut structure);
        }
    }
    causes.extend(structure);
    super::keywords::check(schema, path, &mut causes);
    // Most of what is unsupported has been reported as a keyword.
    if causes.is_empty()
        && let Some(problem) = unsupported
    {
        causes.add(|| StatusCause::invalid(*path, "", problem));
    }
    if causes.is_empty() {
        super::rule_check::check_rules(schema, path, &mut causes);
    }
    causes
}

/// Returns why a schema has no structure that could be checked.
fn unsupported(schema: &Value) -> Option<&'static str> {
    let Value::Object(_) = schema else { return None };
    let is_given = |keyword: &str| match schema.get(keyword) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty() || keyword == "additionalItems",
        Some(_) => true,
    };
    for (keyword, problem) in [
        ("id", "OpenAPIV3Schema 'id' is not supported"),
        ("$schema", "OpenAPIV3Schema 'schema' is not supported"),
        ("$ref", "OpenAPIV3Schema '$ref' is not supported"),
        ("patternProperties", "OpenAPIV3Schema 'patternProperties' is not supported"),
        ("dependencies", "OpenAPIV3Schema 'dependencies' is not supported"),
        ("additionalItems", "OpenAPIV3Schema 'additionalItems' is not supported"),
        ("definitions", "OpenAPIV3Schema 'definitions' is not supported"),
    ] {
        if is_given(keyword) {
            return Some(problem);
        }
    }
    let in_junctors =
        || JUNCTORS.into_iter().flat_map(|keyword| list(schema, keyword)).find_map(|(_, part)| unsupported(part));
    let in_extensions = || {
        let is_false = schema["x-kubernetes-preserve-unknown-fields"] == false;
        is_false.then_some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
    };
    let in_items = || match &schema["items"] {
        Value::Array(items) if !items.is_empty() => Some("OpenAPIV3Schema 'items' must be a schema, but is an array"),
        items => unsupported(items),
    };
    unsupported_part(schema, "not")
        .or_else(in_junctors)
        .or_else(in_extensions)
        .or_else(in_items)
        .or_else(|| properties(schema).find_map(|(_, part)| unsupported(part)))
        .or_else(|| unsupported_part(schema, "additionalProperties"))
}

fn unsupported_part(schema: &Value, keyword: &str) -> Option<&'static str> {
    schema.get(keyword).and_then(unsupported)
}

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == true
}

fn kind_of(schema: &Value) -> &str {
    schema["type"].as_str().unwrap_or_default()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn list<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    schema[keyword].as_array().into_iter().flatten().enumerate()
}

/// Checks a schema that declares structure.
fn invariants(schema: &Value, level: Level, path: &Path<'_>, causes: &mut Causes) {
    let at = |keyword: &'static str| path.keyword(keyword);
    match schema.get("items") {
        None if kind_of(schema) == "array" => causes.add(|| StatusCause::required(at("items"), "must be specified")),
        Some(items @ Value::Object(_)) => invariants(items, Level::Item, &at("items"), causes),
        _ => {}
    }
    for (name, inner) in properties(schema) {
        invariants(inner, Level::Field, &path.property(name), causes);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        if level == Level::Root {
            causes.add(|| StatusCause::forbidden(at("additionalProperties"), "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &at("additionalProperties"), causes);
        }
    }
    extensions(schema, path, causes);
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let skips_any = schema["anyOf"] == either;
    let skips_first = schema["allOf"][0]["anyOf"] == either;
    values(schema, skips_any, skips_first, path, causes);
    kinds(schema, level, path, causes);
}

fn extensions(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    if !is_set(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if is_set(schema, keyword) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            causes.add(|| StatusCause::invalid(path.keyword(keyword), true, detail));
        }
    }
}

/// Checks the type of a schema, and its properties for the metadata of resources.
fn kinds(schema: &Value, level: Level, path: &Path<'_>, causes: &mut Causes) {
    let at = |keyword: &'static str| path.keyword(keyword);
    let kind = kind_of(schema);
    let is_embedded = is_set(schema, "x-kubernetes-embedded-resource");
    let preserves = is_set(schema, "x-kubernetes-preserve-unknown-fields");
    if is_embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        causes.add(|| match kind {
            "" => StatusCause::required(at("type"), detail),
            other => StatusCause::invalid(at("type"), other, detail),
        });
    } else if kind.is_empty() && !is_set(schema, "x-kubernetes-int-or-string") && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.add(|| StatusCause::required(at("type"), detail));
    }
    if is_embedded && schema.get("additionalProperties").is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        causes.add(|| StatusCause::forbidden(at("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        causes.add(|| StatusCause::invalid(at("type"), kind, "must be object at the root"));
    }
    let is_resource = level == Level::Root || is_embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(inner) = schema["properties"].get(name).filter(|_| is_resource)
            && kind_of(inner) != "string"
        {
            causes.add(|| StatusCause::invalid(path.property(name).keyword("type"), kind_of(inner), "must be string"));
        }
    }
    if let Some(metadata) = schema["properties"].get("metadata") {
        of_metadata(metadata, is_resource, level, &path.property("metadata"), causes);
    }
    if is_embedded && !preserves && schema["properties"].as_object().is_none_or(Map::is_empty) {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        causes.add(|| StatusCause::required(at("properties"), detail));
    }
}

/// Checks the schema of metadata, which may only restrict names.
fn of_metadata(metadata: &Value, is_resource: bool, level: Level, path: &Path<'_>, causes: &mut Causes) {
    if is_resource && kind_of(metadata) != "object" {
        causes.add(|| StatusCause::invalid(path.keyword("type"), kind_of(metadata), "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let names_only = properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let known = |keyword: &str| matches!(keyword, "type" | "default" | "properties");
    let others = metadata.as_object().into_iter().flatten().filter(|(_, value)| **value != json!(false));
    if !names_only || others.map(|(keyword, _)| keyword).any(|keyword| !known(keyword)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.add(|| StatusCause::forbidden(*path, detail));
    }
}

/// Checks the keywords of a schema that only validate values.
fn values(schema: &Value, skips_any: bool, skips_first: bool, path: &Path<'_>, causes: &mut Causes) {
    for keyword in JUNCTORS {
        if keyword == "anyOf" && skips_any {
            continue;
        }
        for (index, inner) in list(schema, keyword) {
            let skips = keyword == "allOf" && skips_first && index == 0;
            nested(inner, skips, &path.item(keyword, index), causes);
        }
    }
    if let Some(inner) = schema.get("not") {
        nested(inner, false, &path.keyword("not"), causes);
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && let Some(problem) = super::patterns::problem(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        causes.add(|| StatusCause::invalid(path.keyword("pattern"), pattern, &detail));
    }
}

/// Checks a schema under a junctor, which must not declare structure.
fn nested(schema: &Value, skips_any: bool, path: &Path<'_>, causes: &mut Causes) {
    let at = |keyword: &'static str| path.keyword(keyword);
    values(schema, skips_any, false, path, causes);
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        nested(items, false, &at("items"), causes);
    }
    for (name, inner) in properties(schema) {
        nested(inner, false, &path.property(name), causes);
    }
    for (keyword, detail) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let is_empty = |value: &Value| match value {
            Value::Bool(false) => keyword != "additionalProperties",
            // The types of lists and maps are pointers in Go.
            Value::String(text) => text.is_empty() && !keyword.ends_with("-type") && keyword != "default",
            Value::Array(items) => items.is_empty() && keyword != "default",
            Value::Null => true,
            _ => false,
        };
        if schema.get(keyword).is_some_and(|value| !is_empty(value)) {
            causes.add(|| StatusCause::forbidden(at(keyword), detail));
        }
    }
    if schema["properties"].get("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        causes.add(|| StatusCause::forbidden(path.property("metadata"), detail));
    }
}

/// Checks that whatever is validated under a junctor is declared outside of it.
fn completeness(values: &Value, structure: Option<&Value>, path: &Path<'_>, from: &Path<'_>, causes: &mut Causes) {
    let mut check = |inner: &Value, at: Path<'_>| match structure {
        Some(structure) => nested_completeness(inner, structure, path, &at, causes),
        None => causes.add(|| StatusCause::required(*path, &format!("because it is defined in {from}"))),
    };
    if let Some(inner) = values.get("not") {
        check(inner, from.keyword("not"));
    }
    for keyword in JUNCTORS {
        for (index, inner) in list(values, keyword) {
            check(inner, from.item(keyword, index));
        }
    }
}

fn nested_completeness(values: &Value, structure: &Value, path: &Path<'_>, from: &Path<'_>, causes: &mut Causes) {
    completeness(values, Some(structure), path, from, causes);
    if let Some(items @ Value::Object(_)) = values.get("items") {
        match structure.get("items") {
            Some(declared) => {
                nested_completeness(items, declared, &path.keyword("items"), &from.keyword("items"), causes);
            }
            None => causes.add(|| {
                StatusCause::required(path.keyword("items"), &format!("because it is defined in {from}.items"))
            }),
        }
    }
    for (name, inner) in properties(values) {
        let (declared_at, at) = (path.property(name), from.property(name));
        match structure["properties"].get(name) {
            Some(declared) => nested_completeness(inner, declared, &declared_at, &at, causes),
            None => causes.add(|| StatusCause::required(declared_at, &format!("because it is defined in {at}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(schema: &Value) -> Vec<String> {
        validate(schema, "s").into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn structural_schema_has_no_violations() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "list": {"type": "array", "items": {"type": "string"}}},
                "anyOf": [{"required": ["port"]}, {"properties": {"list": {"minItems": 1}}}]}}});
        assert_eq!(messages(&schema), Vec::<String>::new());
    }

    #[test]
    fn violations_are_reported_with_their_paths() {
        let schema = json!({"type": "object", "additionalProperties": true, "properties": {
            "a": {"anyOf": [{"type": "string", "properties": {"x": {}}}]},
            "b": {"type": "array", "uniqueItems": true}}});
        assert_eq!(
            messages(&schema),
            [
                "s.additionalProperties: Forbidden: must not be used at the root",
                "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[b].items: Required value: must be specified",
                "s.properties[b].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ]
        );
    }
}
