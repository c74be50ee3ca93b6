//! The defaults in the schema of a custom kind: each must be a valid value of its own schema, also if it is part of metadata.

use klient_core::StatusCause;
use serde_json::{Map, Value, json};

use super::{embedded, prune, rules::Rules, validate};

/// The place of a schema in the innermost resource around it: the custom object itself, or an embedded one.
#[derive(Clone, Default)]
struct Place {
    /// The names of fields from the resource to the value. An item of a list has the name `[]`.
    location: Vec<String>,
    is_in_metadata: bool,
}

impl Place {
    /// Returns the place of a schema whose parent is at this place.
    fn of(self, schema: &Value) -> Self {
        if is_resource(schema) { Self::default() } else { self }
    }

    fn below(&self, name: &str) -> Self {
        let is_root = self.location.is_empty();
        let is_metadata = is_root && matches!(name, "metadata" | "apiVersion" | "kind");
        let location = self.location.iter().cloned().chain([name.to_owned()]).collect();
        Self { location, is_in_metadata: self.is_in_metadata || is_metadata }
    }

    /// Returns a resource with a value at this place.
    fn resource(&self, value: &Value) -> Map<String, Value> {
        let mut value = value.clone();
        for name in self.location.iter().rev() {
            value = if name == ITEM { json!([value]) } else { Value::Object(Map::from_iter([(name.clone(), value)])) };
        }
        let mut resource = if let Value::Object(fields) = value { fields } else { Map::new() };
        for (name, text) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            resource.entry(name).or_insert_with(|| json!(text));
        }
        resource
    }

    /// Returns the value at this place of a resource.
    fn find(&self, resource: Map<String, Value>) -> Option<Value> {
        self.location.iter().try_fold(Value::Object(resource), |mut value, name| {
            let found = if name == ITEM { value.get_mut(0) } else { value.get_mut(name) };
            found.map(Value::take)
        })
    }
}

fn is_resource(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

/// Returns the invalid defaults of a schema and of the schemas in it.
pub(super) fn check(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    if schema.get("default").is_some() {
        // The default of the whole object must be a resource.
        let mut schema = schema.clone();
        schema["x-kubernetes-embedded-resource"] = json!(true);
        return visit(&schema, path, Place::default(), causes);
    }
    visit(schema, path, Place::default(), causes);
}

fn visit(schema: &Value, path: &str, place: Place, causes: &mut Vec<StatusCause>) {
    let place = place.of(schema);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = format!("{path}.default");
        causes.extend(if place.is_in_metadata {
            problems_in_metadata(default, schema, &at, &place)
        } else {
            problems(default, schema, &at)
        });
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        visit(items, &format!("{path}.items"), place.below(ITEM), causes);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        visit(inner, &format!("{path}.properties[{name}]"), place.below(name), causes);
    }
}

/// Returns the problems of a default that may contain embedded resources.
fn problems(default: &Value, schema: &Value, at: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if prune::has_unknown_fields(default, schema) {
        causes.push(StatusCause::invalid(at, default.clone(), "must not have unknown fields"));
    }
    let mut shaped = default.clone();
    let of_resources = match embedded::coerce(&mut shaped, schema) {
        Err(cause) => vec![cause],
        Ok(_) => embedded::validate(&shaped, schema),
    };
    let found = if of_resources.is_empty() { problems_of_value(&shaped, schema) } else { of_resources };
    causes.extend(found.into_iter().map(|cause| below(at, cause)));
    causes
}

/// Returns the problems of a default by its own schema, and then by the rules of the schema.
fn problems_of_value(default: &Value, schema: &Value) -> Vec<StatusCause> {
    let mut untyped = schema.clone();
    accept_any_either(&mut untyped);
    let problems = validate::validate(default, &untyped, None);
    if problems.is_empty() { Rules::violations_by_default(schema, default) } else { problems }
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
fn problems_in_metadata(default: &Value, schema: &Value, at: &str, place: &Place) -> Vec<StatusCause> {
    let mut resource = place.resource(default);
    let of_resource = match embedded::coerce_one(&mut resource, "") {
        Err(cause) => vec![cause],
        Ok(_) => embedded::check(&resource),
    };
    if of_resource.is_empty() {
        return problems_of_value(default, schema).into_iter().map(|cause| below(at, cause)).collect();
    }
    let texts: Vec<String> = of_resource.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let text = if let [only] = &texts[..] { only.clone() } else { format!("[{}]", texts.join(", ")) };
    vec![StatusCause::invalid(at, default.clone(), &format!("must result in valid metadata: {text}"))]
}

fn below(at: &str, mut cause: StatusCause) -> StatusCause {
    cause.field = match cause.field.trim_start_matches('.') {
        "" | "<nil>" => at.to_owned(),
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

fn prune_below(schema: &mut Value, which: Defaults, place: Place) {
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
        let mut causes = Vec::new();
        check(&schema, "s", &mut causes);
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
    fn default_in_metadata_must_result_in_valid_metadata() {
        let name = json!({"type": "string", "default": ".."});
        let metadata =
            json!({"type": "object", "properties": {"name": name, "unknown": {"type": "string", "default": "u"}}});
        let schema = json!({"type": "object", "properties": {"pod": {"type": "object",
            "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}}}});
        let mut causes = Vec::new();
        check(&schema, "s", &mut causes);
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
