//! The keywords that may be at the root of a schema whose kind has a status subresource. The real server validates the status by itself,
//! as the property of that name, so that rules about the whole object would be lost.

use klient_core::StatusCause;
use serde_json::Value;

/// Checks the root of a schema, and reports the first keyword that it cannot have.
pub(crate) fn check(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    for (name, keyword, shape) in FIELDS {
        let is_zero = match (schema.get(*keyword), shape) {
            (None | Some(Value::Null), _) => true,
            (Some(value), Shape::Text) => value == "",
            (Some(value), Shape::Flag) => *value == Value::Bool(false),
            _ => false,
        };
        if is_zero || ALLOWED.contains(name) && *name != "Type" {
            continue;
        }
        if *name != "Type" {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ALLOWED.join(" ")
            );
            // Go writes JSON for HTML.
            let shown = printed(schema).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
            let mut cause = StatusCause::invalid(path, Value::Null, &detail);
            cause.message = format!("Invalid value: {shown}: {detail}");
            causes.push(cause);
            return;
        }
        if schema["type"] != "object" {
            let detail =
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            causes.push(StatusCause::invalid(format!("{path}.type"), schema["type"].clone(), detail));
            return;
        }
    }
}

/// The shape of a field of the real server's own type for schemas.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    /// Any JSON, or null.
    Json,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrList,
    SchemaOrFlag,
    Dependencies,
    Documentation,
    Rules,
}

/// Returns a schema as JSON of the real server's own type, which has a key for every field.
fn printed(schema: &Value) -> String {
    let fields = FIELDS.iter().map(|(name, keyword, shape)| {
        let value = schema.get(*keyword).unwrap_or(&Value::Null);
        format!("\"{name}\":{}", shape.printed(value))
    });
    object(fields)
}

impl Shape {
    fn printed(self, value: &Value) -> String {
        let null = || "null".to_owned();
        let text =
            |name: &str| value[name].as_str().map_or_else(|| "\"\"".to_owned(), |text| Value::from(text).to_string());
        match (self, value) {
            (Self::Text, Value::Null) => "\"\"".to_owned(),
            (Self::Flag, Value::Null) => "false".to_owned(),
            (_, Value::Null) => null(),
            (Self::Text | Self::Flag | Self::Json, value) => value.to_string(),
            (Self::Schema, value) => printed(value),
            (Self::Schemas, value) => list(value, printed),
            (Self::SchemaMap, value) => map(value, printed),
            (Self::SchemaOrList, Value::Array(_)) => {
                object([("Schema", null()), ("JSONSchemas", list(value, printed))].map(pair))
            }
            (Self::SchemaOrList, value) => object([("Schema", printed(value)), ("JSONSchemas", null())].map(pair)),
            (Self::SchemaOrFlag, Value::Bool(flag)) => {
                object([("Allows", flag.to_string()), ("Schema", null())].map(pair))
            }
            (Self::SchemaOrFlag, value) => {
                object([("Allows", "true".to_owned()), ("Schema", printed(value))].map(pair))
            }
            (Self::Dependencies, value) => map(value, |part| match part {
                Value::Array(_) => object([("Schema", null()), ("Property", part.to_string())].map(pair)),
                _ => object([("Schema", printed(part)), ("Property", null())].map(pair)),
            }),
            (Self::Documentation, _) => object([("Description", text("description")), ("URL", text("url"))].map(pair)),
            (Self::Rules, value) => list(value, |rule| {
                let text = |name: &str| Self::Text.printed(&rule[name]);
                object(
                    [
                        ("Rule", text("rule")),
                        ("Message", text("message")),
                        ("MessageExpression", text("messageExpression")),
                        ("Reason", rule["reason"].to_string()),
                        ("FieldPath", text("fieldPath")),
                        ("OptionalOldSelf", rule["optionalOldSelf"].to_string()),
                    ]
                    .map(pair),
                )
            }),
        }
    }
}

fn pair((name, value): (&str, String)) -> String {
    format!("\"{name}\":{value}")
}

fn object(fields: impl IntoIterator<Item = String>) -> String {
    format!("{{{}}}", fields.into_iter().collect::<Vec<_>>().join(","))
}

fn list(value: &Value, print: impl FnMut(&Value) -> String) -> String {
    format!("[{}]", value.as_array().into_iter().flatten().map(print).collect::<Vec<_>>().join(","))
}

fn map(value: &Value, mut print: impl FnMut(&Value) -> String) -> String {
    let entries = value.as_object().into_iter().flatten();
    object(entries.map(|(name, part)| format!("{}:{}", Value::from(name.as_str()), print(part))))
}

/// The fields of the real server's type in their order: its name, the keyword and the shape.
const FIELDS: &[(&str, &str, Shape)] = &[
    ("ID", "id", Shape::Text),
    ("Schema", "$schema", Shape::Text),
    ("Ref", "$ref", Shape::Json),
    ("Description", "description", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Nullable", "nullable", Shape::Flag),
    ("Format", "format", Shape::Text),
    ("Title", "title", Shape::Text),
    ("Default", "default", Shape::Json),
    ("Maximum", "maximum", Shape::Json),
    ("ExclusiveMaximum", "exclusiveMaximum", Shape::Flag),
    ("Minimum", "minimum", Shape::Json),
    ("ExclusiveMinimum", "exclusiveMinimum", Shape::Flag),
    ("MaxLength", "maxLength", Shape::Json),
    ("MinLength", "minLength", Shape::Json),
    ("Pattern", "pattern", Shape::Text),
    ("MaxItems", "maxItems", Shape::Json),
    ("MinItems", "minItems", Shape::Json),
    ("UniqueItems", "uniqueItems", Shape::Flag),
    ("MultipleOf", "multipleOf", Shape::Json),
    ("Enum", "enum", Shape::Json),
    ("MaxProperties", "maxProperties", Shape::Json),
    ("MinProperties", "minProperties", Shape::Json),
    ("Required", "required", Shape::Json),
    ("Items", "items", Shape::SchemaOrList),
    ("AllOf", "allOf", Shape::Schemas),
    ("OneOf", "oneOf", Shape::Schemas),
    ("AnyOf", "anyOf", Shape::Schemas),
    ("Not", "not", Shape::Schema),
    ("Properties", "properties", Shape::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Shape::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Shape::SchemaMap),
    ("Dependencies", "dependencies", Shape::Dependencies),
    ("AdditionalItems", "additionalItems", Shape::SchemaOrFlag),
    ("Definitions", "definitions", Shape::SchemaMap),
    ("ExternalDocs", "externalDocs", Shape::Documentation),
    ("Example", "example", Shape::Json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::Json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Shape::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shape::Json),
    ("XListType", "x-kubernetes-list-type", Shape::Json),
    ("XMapType", "x-kubernetes-map-type", Shape::Json),
    ("XValidations", "x-kubernetes-validations", Shape::Rules),
];
/// The fields that may be at the root.
const ALLOWED: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(schema, "s", &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn root_with_allowed_keywords_is_valid() {
        let schema = json!({"type": "object", "description": "d", "required": ["spec"], "properties": {"spec": {}},
            "nullable": false, "x-kubernetes-validations": [{"rule": "true"}]});
        assert_eq!(found(&schema), Vec::<String>::new());
    }

    #[test]
    fn first_other_keyword_is_reported_with_the_schema() {
        let schema = json!({"type": "object", "minProperties": 1, "oneOf": [], "properties": {"a": {"pattern": "<"}}});
        let [problem] = &found(&schema)[..] else { panic!("{:?}", found(&schema)) };
        let first =
            r#"s: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"#;
        assert!(problem.starts_with(first), "{problem}");
        for part in [
            r#""MinProperties":1,"Required":null,"Items":null,"AllOf":null,"OneOf":[],"AnyOf":null,"#,
            r#""Properties":{"a":{"ID":"","#,
            r#""Pattern":"\u003c","#,
            r#""XValidations":null}: only [Description Type Format "#,
            " XValidations] fields are allowed at the root of the schema if the status subresource is enabled",
        ] {
            assert!(problem.contains(part), "{part} is not in {problem}");
        }
    }

    #[test]
    fn other_type_is_reported_before_later_keywords() {
        let problems = found(&json!({"type": "array", "minProperties": 1}));
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        assert_eq!(problems, [format!("s.type: Invalid value: \"array\": {detail}")]);
    }
}
