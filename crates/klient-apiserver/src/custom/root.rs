//! The keywords that may be at the root of a schema whose kind has a status subresource. The real server validates the status by itself,
//! as the property of that name, so that rules about the whole object would be lost.

use klient_core::StatusCause;
use serde_json::Value;

use crate::causes::{Causes, MAX_TEXT};

/// Checks the root of a schema, and reports the first keyword that it cannot have.
pub(crate) fn check(schema: &Value, path: &str, causes: &mut Causes) {
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
            causes.add(|| {
                let mut shown = Printed::default();
                shown.schema(schema);
                let message = format!("Invalid value: {}: {detail}", shown.text);
                StatusCause::new(StatusCause::FIELD_VALUE_INVALID, path, message)
            });
            return;
        }
        if schema["type"] != "object" {
            let detail =
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            causes.add(|| StatusCause::invalid(format!("{path}.type"), schema["type"].clone(), detail));
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

/// JSON of the real server's own type for schemas, which has a key for every field.
///
/// It is much longer than the schema: an empty one has 760 bytes. So nothing is written behind a limit.
#[derive(Default)]
struct Printed {
    text: String,
}

impl Printed {
    const fn is_full(&self) -> bool {
        self.text.len() >= MAX_TEXT
    }

    /// Writes a text. Go writes JSON for HTML.
    fn push(&mut self, text: &str) {
        for part in text.split_inclusive(['<', '>', '&']) {
            if self.is_full() {
                return;
            }
            let (plain, escaped) = match part.as_bytes().last() {
                Some(b'<') => (&part[..part.len() - 1], "\\u003c"),
                Some(b'>') => (&part[..part.len() - 1], "\\u003e"),
                Some(b'&') => (&part[..part.len() - 1], "\\u0026"),
                _ => (part, ""),
            };
            self.text.push_str(plain);
            self.text.push_str(escaped);
        }
    }

    fn json(&mut self, value: &Value) {
        self.push(&value.to_string());
    }

    /// Writes the entries of a list or a map between brackets.
    fn entries<T>(
        &mut self,
        brackets: [&str; 2],
        entries: impl Iterator<Item = T>,
        mut print: impl FnMut(&mut Self, T),
    ) {
        self.push(brackets[0]);
        for (index, entry) in entries.enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.push(",");
            }
            print(self, entry);
        }
        self.push(brackets[1]);
    }

    fn list(&mut self, value: &Value, print: impl Fn(&mut Self, &Value)) {
        self.entries(["[", "]"], value.as_array().into_iter().flatten(), print);
    }

    fn map(&mut self, value: &Value, print: impl Fn(&mut Self, &Value)) {
        self.entries(["{", "}"], value.as_object().into_iter().flatten(), |out, (name, part)| {
            out.push(&Value::from(name.as_str()).to_string());
            out.push(":");
            print(out, part);
        });
    }

    /// Writes a struct of Go, with the names and shapes of its fields.
    fn fields(&mut self, fields: &[(&str, &Value, Shape)]) {
        self.entries(["{", "}"], fields.iter(), |out, (name, value, shape)| {
            out.push(&format!("\"{name}\":"));
            out.value(value, *shape);
        });
    }

    fn schema(&mut self, schema: &Value) {
        self.entries(["{", "}"], FIELDS.iter(), |out, (name, keyword, shape)| {
            out.push(&format!("\"{name}\":"));
            out.value(schema.get(*keyword).unwrap_or(&Value::Null), *shape);
        });
    }

    fn value(&mut self, value: &Value, shape: Shape) {
        const NULL: &Value = &Value::Null;
        match (shape, value) {
            (Shape::Text, Value::Null) => self.push("\"\""),
            (Shape::Flag, Value::Null) => self.push("false"),
            (_, Value::Null) => self.push("null"),
            (Shape::Text | Shape::Flag | Shape::Json, value) => self.json(value),
            (Shape::Schema, value) => self.schema(value),
            (Shape::Schemas, value) => self.list(value, Self::schema),
            (Shape::SchemaMap, value) => self.map(value, Self::schema),
            (Shape::SchemaOrList, Value::Array(_)) => {
                self.fields(&[("Schema", NULL, Shape::Json), ("JSONSchemas", value, Shape::Schemas)]);
            }
            (Shape::SchemaOrList, value) => {
                self.fields(&[("Schema", value, Shape::Schema), ("JSONSchemas", NULL, Shape::Json)]);
            }
            (Shape::SchemaOrFlag, Value::Bool(_)) => {
                self.fields(&[("Allows", value, Shape::Flag), ("Schema", NULL, Shape::Json)]);
            }
            (Shape::SchemaOrFlag, value) => {
                self.fields(&[("Allows", &Value::Bool(true), Shape::Flag), ("Schema", value, Shape::Schema)]);
            }
            (Shape::Dependencies, value) => self.map(value, |out, part| match part {
                Value::Array(_) => out.fields(&[("Schema", NULL, Shape::Json), ("Property", part, Shape::Json)]),
                _ => out.fields(&[("Schema", part, Shape::Schema), ("Property", NULL, Shape::Json)]),
            }),
            (Shape::Documentation, _) => {
                let text = |name: &str| &value[name];
                self.fields(&[("Description", text("description"), Shape::Text), ("URL", text("url"), Shape::Text)]);
            }
            (Shape::Rules, value) => self.list(value, |out, rule| {
                out.fields(&[
                    ("Rule", &rule["rule"], Shape::Text),
                    ("Message", &rule["message"], Shape::Text),
                    ("MessageExpression", &rule["messageExpression"], Shape::Text),
                    ("Reason", &rule["reason"], Shape::Json),
                    ("FieldPath", &rule["fieldPath"], Shape::Text),
                    ("OptionalOldSelf", &rule["optionalOldSelf"], Shape::Json),
                ]);
            }),
        }
    }
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
        let mut causes = Causes::new();
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
