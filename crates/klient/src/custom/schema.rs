//! Structural schemas of Rust types.
//!
//! schemars gives a JSON schema. The server takes only a part of that: structural schemas, in which each field has one type,
//! outside of `oneOf` and `anyOf`. The passes below run in order on the whole schema. The result equals kube-derive's
//! byte for byte, unless kube-derive panics or the server refuses its result: `unite` and `repair` are about those.

mod hoist;
mod nullable;
mod repair;
mod unite;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use schemars::{JsonSchema, generate::SchemaSettings, transform::AddNullable};
use serde_json::{Map, Value};

/// Returns the structural schema of a type, as in a CustomResourceDefinition.
///
/// A schema that has no structural form is left as it is: [`check`](crate::custom::check()) and the server refuse it.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// #[serde(tag = "type")]
/// enum Source {
///     Git { url: String },
///     Image { name: String },
/// }
///
/// let schema = klient::custom::structural_schema::<Source>();
/// assert_eq!(schema.type_.as_deref(), Some("object"));
/// let properties = schema.properties.unwrap();
/// assert_eq!(properties.keys().collect::<Vec<_>>(), ["name", "type", "url"]);
/// assert_eq!(schema.one_of.unwrap().len(), 2);
/// ```
pub fn structural_schema<T: JsonSchema>() -> JSONSchemaProps {
    let settings = SchemaSettings::openapi3()
        .with(|settings| {
            // The server allows neither references nor `$schema`.
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default());
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    for pass in [hoist::hoist, nullable::optional_values, nullable::optional_int_or_strings, repair::repair] {
        everywhere(&mut schema, Place::Field, pass);
    }
    serde_json::from_value(schema).unwrap_or_else(|error| JSONSchemaProps {
        // Without a type, this is refused by `check` and by the server.
        description: Some(format!("{} has no schema: {error}", T::schema_name())),
        ..JSONSchemaProps::default()
    })
}

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It describes a field, an item, or the whole object.
    Field,
    /// It is in a branch of `oneOf`, `anyOf`, `allOf` or `not`, where the server allows validations alone.
    Branch,
}

type Pass = fn(&mut Map<String, Value>, Place);

/// Calls a function with each schema object, children first.
fn everywhere(schema: &mut Value, place: Place, pass: Pass) {
    let Value::Object(object) = schema else { return };
    for (keyword, value) in object.iter_mut() {
        match keyword.as_str() {
            "not" => everywhere(value, Place::Branch, pass),
            "if" | "then" | "else" | "contains" | "additionalProperties" | "propertyNames" | "additionalItems" => {
                everywhere(value, place, pass);
            }
            "allOf" | "anyOf" | "oneOf" => {
                let branches = value.as_array_mut().into_iter().flatten();
                branches.for_each(|branch| everywhere(branch, Place::Branch, pass));
            }
            "prefixItems" | "items" => match value {
                Value::Array(all) => all.iter_mut().for_each(|one| everywhere(one, place, pass)),
                one => everywhere(one, place, pass),
            },
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                let all = value.as_object_mut().into_iter().flatten();
                all.for_each(|(_, one)| everywhere(one, place, pass));
            }
            _ => {}
        }
    }
    pass(object, place);
}

/// Returns whether a schema says that its value is `null`.
fn is_null(schema: &Value) -> bool {
    schema["enum"] == serde_json::json!([null]) || schema["type"] == "null"
}

/// Returns whether a keyword is set to `true`.
fn is_set(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

#[cfg(test)]
mod tests;
