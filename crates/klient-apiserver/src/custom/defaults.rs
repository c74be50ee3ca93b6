//! The defaults in the schema of a custom kind: each must be a valid value of its own schema, also if it is part of metadata.

use klient_core::StatusCause;
use serde_json::{Map, Value, json};

use super::{
    embedded,
    path::Path,
    prune,
    rules::{Left, Rules},
    validate,
};
use crate::causes::Causes;

/// The place of a schema in the innermost resource around it: the custom object itself, or an embedded one.
#[derive(Clone, Copy, Default)]
struct Place<'p> {
    /// The place of the parent and the name of the field in it, unless it is the resource. An item of a list has the name `[]`.
    location: Option<(&'p Place<'p>, &'p str)>,
    is_in_metadata: bool,
}

impl<'p> Place<'p> {
    /// Returns the place of a schema whose parent is at this place.
    fn of(self, schema: &Value) -> Self {
        if is_resource(schema) { Self::default() } else { self }
    }

    fn below<'a>(&'a self, name: &'a str) -> Place<'a> {
        let is_root = self.location.is_none();
        let is_metadata = is_root && matches!(name, "metadata" | "apiVersion" | "kind");
        Place { location: Some((self, name)), is_in_metadata: self.is_in_metadata || is_metadata }
    }

    /// Returns the names of fields from the value to the resource.
    fn names(&self) -> impl Iterator<Item = &'p str> + use<'p> {
        let first = self.location;
        std::iter::successors(first, |(parent, _)| parent.location).map(|(_, name)| name)
    }

    /// Returns a resource with a value at this place.
    fn resource(&self, value: &Value) -> Map<String, Value> {
        let mut value = value.clone();
        for name in self.names() {
            value =
                if name == ITEM { json!([value]) } else { Value::Object(Map::from_iter([(name.to_owned(), value)])) };
        }
        let mut resource = if let Value::Object(fields) = value { fields } else { Map::new() };
        for (name, text) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            resource.entry(name).or_insert_with(|| json!(text));
        }
        resource
    }

    /// Returns the value at this place of a resource.
    fn find(&self, resource: Map<String, Value>) -> Option<Value> {
        let names: Vec<&str> = self.names().collect();
        names.into_iter().rev().try_fold(Value::Object(resource), |mut value, name| {
            let found = if name == ITEM { value.get_mut(0) } else { value.get_mut(name) };
            found.map(Value::take)
        })
    }
}

fn is_resource(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

/// Returns the invalid defaults of a schema and of the schemas in it.
pub(super) fn check(schema: &Value, path: &Path<'_>, causes: &mut Causes) {
    let mut left = Left::for_object();
    if schema.get("default").is_some() {
        // The default of the whole object must be a resource.
        let mut schema = schema.clone();
        schema["x-kubernetes-embedded-resource"] = json!(true);
        return visit(&schema, path, Place::default(), &mut left, causes);
    }
    visit(schema, path, Place::default(), &mut left, causes);
}

fn visit(schema: &Value, path: &Path<'_>, place: Place<'_>, left: &mut Left, causes: &mut Causes) {
    // All defaults share one budget. The real server stops when it is spent, too.
    if *left == Left::Nothing || causes.is_full() {
        return;
    }
    let place = place.of(schema);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = &path.keyword("default");
        causes.extend(if place.is_in_metadata {
            problems_in_metadata(default, schema, at, &place, left)
        } else {
            problems(default, schema, at, left)
        });
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        visit(items, &path.keyword("items"), place.below(ITEM), left, causes);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        visit(inner, &path.property(name), place.below(name), left, causes);
    }
}

/// Returns the problems of a default that may contain embedded resources.
fn problems(default: &Value, schema: &Value, at: &Path<'_>, left: &mut Left) -> Causes {
    let mut causes = Causes::new();
    if prune::has_unknown_fields(default, schema) {
        causes.add(|| StatusCause::invalid(*at, default.clone(), "must not have unknown fields"));
    }
    let mut shaped = default.clone();
    let of_resources = match embedded::coerce(&mut shaped, schema) {
        Err(cause) => Causes::from_iter([cause]),
        Ok(_) => embedded::validate(&shaped, schema),
    };
    let found = if of_resources.is_empty() { problems_of_value(&shaped, schema, left) } else { of_resources };
    causes.extend(found.into_iter().map(|cause| below(at, cause)));
    causes
}

/// Returns the problems of a default by its own schema, and then by the rules of the schema.
fn problems_of_value(default: &Value, schema: &Value, left: &mut Left) -> Causes {
    let mut untyped = schema.clone();
    accept_any_either(&mut untyped);
    let problems = validate::validate(default, &untyped, None);
    if problems.is_empty() { Rules::violations_by_default(schema, default, left) } else { problems }
}

/// Removes the mark of integers or texts from a schema: the real server accepts defaults of any type there.
fn accept_any_either(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    fields.remove("x-kubernetes-int-or-string");
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).map(accept_any_either);
    }
    fields
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
        .for_each(|(_, inner)| accept_any_either(inner));
}

/// Returns the problems of a default that is part of the metadata or type of a resource.
fn problems_in_metadata(default: &Value, schema: &Value, at: &Path<'_>, place: &Place<'_>, left: &mut Left) -> Causes {
    let mut resource = place.resource(default);
    let of_resource = match embedded::coerce_one(&mut resource, "") {
        Err(cause) => Causes::from_iter([cause]),
        Ok(_) => embedded::check(&resource),
    };
    if of_resource.is_empty() {
        return problems_of_value(default, schema, left).into_iter().map(|cause| below(at, cause)).collect();
    }
    let texts: Vec<String> = of_resource.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let text = if let [only] = &texts[..] { only.clone() } else { format!("[{}]", texts.join(", ")) };
    let detail = format!("must result in valid metadata: {text}");
    Causes::from_iter([StatusCause::invalid(*at, default.clone(), &detail)])
}

fn below(at: &Path<'_>, mut cause: StatusCause) -> StatusCause {
    cause.field = match cause.field.trim_start_matches('.') {
        "" | "<nil>" => at.to_string(),
        field => format!("{at}.{field}"),
    };
    cause
}

/// Removes fields that metadata does not have from the defaults of a schema.
pub(crate) fn prune_metadata(schema: &mut Value, which: Defaults) {
    prune_below(schema, which, Place::default());
}

/// The defaults of a schema.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Defaults {
    All,
    /// Those of metadata itself are left out. The real server stores these as they are.
    AroundMetadata,
}

fn prune_below(schema: &mut Value, which: Defaults, place: Place<'_>) {
    let place = place.of(schema);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let mut pruned = Some(default.clone());
        if !place.is_in_metadata {
            // What is invalid was refused when the definition was written.
            let _ = pruned.as_mut().map(|default| embedded::coerce(default, schema));
        } else if which == Defaults::All {
            let mut resource = place.resource(default);
            let _ = embedded::coerce_one(&mut resource, "");
            pruned = place.find(resource);
        }
        match (pruned, schema.as_object_mut()) {
            (Some(default), Some(fields)) => drop(fields.insert("default".to_owned(), default)),
            (None, Some(fields)) => drop(fields.remove("default")),
            _ => {}
        }
    }
    if let Some(items @ Value::Object(_)) = schema.get_mut("items") {
        prune_below(items, which, place.below(ITEM));
    }
    for (name, inner) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        prune_below(inner, which, place.below(name));
    }
}

const ITEM: &str = "[]";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_must_be_valid_value_of_its_schema() {
        let size = json!({"type": "integer", "minimum": 3, "default": 2});
        let part = json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": "x"}});
        let schema = json!({"type": "object", "properties": {"size": size, "part": part}});
        let mut causes = Causes::new();
        check(&schema, &Path::of("s"), &mut causes);
        let told: Vec<(&str, &str)> =
            causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
        assert_eq!(
            told,
            [
                ("s.properties[part].default", "Invalid value: {\"b\":\"x\"}: must not have unknown fields"),
                ("s.properties[size].default", "Invalid value: 2:  in body should be greater than or equal to 3"),
            ]
        );
    }

    #[test]
    fn rules_of_all_defaults_share_one_budget() {
        let expensive = format!("!self.contains('{}')", "b".repeat(1000));
        let rule = vec![expensive; 9].join(" && ");
        let part =
            |_| json!({"type": "string", "default": "a".repeat(10_000), "x-kubernetes-validations": [{"rule": rule}]});
        let properties: Map<String, Value> = (10..30).map(|n| (format!("p{n}"), part(n))).collect();
        let mut causes = Causes::new();
        check(&json!({"type": "object", "properties": properties}), &Path::of("s"), &mut causes);
        let [cause] = &causes[..] else { panic!("{causes:?}") };
        assert_eq!(cause.field, "s.properties[p21].default");
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        assert_eq!(cause.message, format!("Invalid value: \"string\": {detail}"));
    }

    #[test]
    fn default_in_metadata_must_result_in_valid_metadata() {
        let name = json!({"type": "string", "default": ".."});
        let metadata =
            json!({"type": "object", "properties": {"name": name, "unknown": {"type": "string", "default": "u"}}});
        let schema = json!({"type": "object", "properties": {"pod": {"type": "object",
            "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}}}});
        let mut causes = Causes::new();
        check(&schema, &Path::of("s"), &mut causes);
        let [cause] = &causes[..] else { panic!("{causes:?}") };
        assert_eq!(cause.field, "s.properties[pod].properties[metadata].properties[name].default");
        let expected = "must result in valid metadata: metadata.name: Invalid value: \"..\": may not be '..'";
        assert!(cause.message.ends_with(expected), "{}", cause.message);
    }

    #[test]
    fn fields_that_metadata_lacks_are_removed_from_defaults() {
        let embedded = |default: &Value| {
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "default": {"kind": "A", "metadata": default},
                "properties": {"metadata": {"type": "object", "default": default, "properties": {
                    "odd": {"type": "string", "default": "x"}, "name": {"type": "string", "default": "x"}}}}})
        };
        let mut schema = embedded(&json!({"name": "n", "odd": "x"}));
        prune_metadata(&mut schema, Defaults::AroundMetadata);
        assert_eq!(schema["default"], json!({"kind": "A", "metadata": {"name": "n"}}));
        assert_eq!(schema["properties"]["metadata"]["default"], json!({"name": "n", "odd": "x"}));
        prune_metadata(&mut schema, Defaults::All);
        let metadata = &schema["properties"]["metadata"];
        assert_eq!(metadata["default"], json!({"name": "n"}));
        assert_eq!(metadata["properties"]["odd"], json!({"type": "string"}));
        assert_eq!(metadata["properties"]["name"]["default"], "x");
    }
}
