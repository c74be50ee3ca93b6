//! The messages of OpenAPI documents: the members of JSON objects and their field numbers.

use serde_json::Value;

use super::{
    Chosen,
    Form::{
        Any, Anys, Choice, Choices, Extension, Flag, Float, Integer, Items, Many, Map, One, Requirements, Scalar, Text,
        Texts, Types,
    },
    Message, yaml,
};

pub(super) static DOCUMENT_V2: Message = Message {
    members: &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO_V2)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, Texts),
        ("consumes", 6, Texts),
        ("produces", 7, Texts),
        ("paths", 8, One(&PATHS_V2)),
        ("definitions", 9, Map(1, &One(&SCHEMA_V2))),
        ("parameters", 10, Map(1, &Choice(parameter))),
        ("security", 12, Requirements),
        ("securityDefinitions", 13, Map(1, &Choice(|_| (2, Chosen::Message(&API_KEY))))),
    ],
    extensions: Some(16),
};

static INFO_V2: Message = Message {
    members: &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text), ("termsOfService", 4, Text)],
    extensions: Some(7),
};

static PATHS_V2: Message = Message { members: &[("", 2, One(&PATH_V2))], extensions: None };

static PATH_V2: Message = Message {
    members: &[
        ("get", 2, One(&OPERATION_V2)),
        ("put", 3, One(&OPERATION_V2)),
        ("post", 4, One(&OPERATION_V2)),
        ("delete", 5, One(&OPERATION_V2)),
        ("options", 6, One(&OPERATION_V2)),
        ("head", 7, One(&OPERATION_V2)),
        ("patch", 8, One(&OPERATION_V2)),
        ("parameters", 9, Choices(parameter_or_reference)),
    ],
    extensions: Some(10),
};

static OPERATION_V2: Message = Message {
    members: &[
        ("tags", 1, Texts),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Choices(parameter_or_reference)),
        ("responses", 9, One(&RESPONSES_V2)),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
        ("x-kubernetes-group-version-kind", 13, Extension(kind_v2)),
    ],
    extensions: Some(13),
};

/// Returns the kind of an operation. The real server's aggregator has read all of them but its own from JSON, which sorts the fields.
fn kind_v2(kind: &Value) -> String {
    if kind["group"] == "apiregistration.k8s.io" { yaml::print_kind(kind) } else { yaml::print(kind) }
}

static RESPONSES_V2: Message =
    Message { members: &[("", 1, Choice(|_| (1, Chosen::Message(&RESPONSE_V2))))], extensions: Some(2) };

static RESPONSE_V2: Message = Message {
    members: &[("description", 1, Text), ("schema", 2, Choice(|_| (1, Chosen::Message(&SCHEMA_V2))))],
    extensions: Some(5),
};

fn parameter_or_reference(value: &Value) -> (u32, Chosen) {
    if value.get("$ref").is_some() { (2, Chosen::Message(&REFERENCE)) } else { (1, Chosen::Nested(parameter)) }
}

fn parameter(value: &Value) -> (u32, Chosen) {
    if value["in"] == "body" { (1, Chosen::Message(&BODY_PARAMETER)) } else { (2, Chosen::Nested(other_parameter)) }
}

fn other_parameter(value: &Value) -> (u32, Chosen) {
    match value["in"].as_str() {
        Some("header") => (1, Chosen::Message(&PLAIN_PARAMETER)),
        Some("path") => (4, Chosen::Message(&PLAIN_PARAMETER)),
        _ => (3, Chosen::Message(&QUERY_PARAMETER)),
    }
}

static REFERENCE: Message = Message { members: &[("$ref", 1, Text), ("description", 2, Text)], extensions: None };

static BODY_PARAMETER: Message = Message {
    members: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA_V2)),
    ],
    extensions: Some(6),
};

/// A parameter of the path or a header.
static PLAIN_PARAMETER: Message = Message {
    members: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("pattern", 16, Text),
        ("uniqueItems", 19, Flag),
    ],
    extensions: Some(22),
};

static QUERY_PARAMETER: Message = Message {
    members: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("pattern", 17, Text),
        ("uniqueItems", 20, Flag),
    ],
    extensions: Some(23),
};

static API_KEY: Message = Message {
    members: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: Some(5),
};

static SCHEMA_V2: Message = Message {
    members: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Float),
        ("maximum", 7, Float),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Float),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, Choice(additional_v2)),
        ("type", 22, Types),
        ("items", 23, Items(&One(&SCHEMA_V2))),
        ("allOf", 24, Many(&SCHEMA_V2)),
        ("properties", 25, Map(1, &One(&SCHEMA_V2))),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("externalDocs", 29, One(&DOCS)),
        ("example", 30, Any),
    ],
    extensions: Some(31),
};

fn additional_v2(value: &Value) -> (u32, Chosen) {
    if value.is_boolean() { (2, Chosen::Flag) } else { (1, Chosen::Message(&SCHEMA_V2)) }
}

static DOCS: Message = Message { members: &[("description", 1, Text), ("url", 2, Text)], extensions: Some(3) };

pub(super) static DOCUMENT_V3: Message = Message {
    members: &[
        ("openapi", 1, Text),
        ("info", 2, One(&INFO_V3)),
        ("paths", 4, One(&PATHS_V3)),
        ("components", 5, One(&COMPONENTS)),
        ("security", 6, Requirements),
    ],
    extensions: Some(9),
};

static INFO_V3: Message = Message {
    members: &[("title", 1, Text), ("description", 2, Text), ("termsOfService", 3, Text), ("version", 6, Text)],
    extensions: Some(7),
};

static PATHS_V3: Message = Message { members: &[("", 1, One(&PATH_V3))], extensions: Some(2) };

static PATH_V3: Message = Message {
    members: &[
        ("summary", 2, Text),
        ("description", 3, Text),
        ("get", 4, One(&OPERATION_V3)),
        ("put", 5, One(&OPERATION_V3)),
        ("post", 6, One(&OPERATION_V3)),
        ("delete", 7, One(&OPERATION_V3)),
        ("options", 8, One(&OPERATION_V3)),
        ("head", 9, One(&OPERATION_V3)),
        ("patch", 10, One(&OPERATION_V3)),
        ("parameters", 13, Choices(|value| or_reference(value, &PARAMETER_V3))),
    ],
    extensions: Some(14),
};

static OPERATION_V3: Message = Message {
    members: &[
        ("tags", 1, Texts),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, Choices(|value| or_reference(value, &PARAMETER_V3))),
        ("requestBody", 7, Choice(|value| or_reference(value, &REQUEST_BODY))),
        ("responses", 8, One(&RESPONSES_V3)),
        ("deprecated", 10, Flag),
        ("x-kubernetes-group-version-kind", 13, Extension(yaml::print_kind)),
    ],
    extensions: Some(13),
};

/// Returns a reference, or a message in its place.
fn or_reference(value: &Value, message: &'static Message) -> (u32, Chosen) {
    if value.get("$ref").is_some() { (2, Chosen::Message(&REFERENCE_V3)) } else { (1, Chosen::Message(message)) }
}

static REFERENCE_V3: Message =
    Message { members: &[("$ref", 1, Text), ("summary", 2, Text), ("description", 3, Text)], extensions: None };

static PARAMETER_V3: Message = Message {
    members: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("deprecated", 5, Flag),
        ("allowEmptyValue", 6, Flag),
        ("schema", 10, Choice(schema_or_reference)),
    ],
    extensions: Some(14),
};

static REQUEST_BODY: Message = Message {
    members: &[("description", 1, Text), ("content", 2, Map(1, &One(&MEDIA_TYPE))), ("required", 3, Flag)],
    extensions: Some(4),
};

static MEDIA_TYPE: Message =
    Message { members: &[("schema", 1, Choice(schema_or_reference)), ("example", 2, Any)], extensions: Some(5) };

static RESPONSES_V3: Message = Message {
    members: &[
        ("default", 1, Choice(|value| or_reference(value, &RESPONSE_V3))),
        ("", 2, Choice(|value| or_reference(value, &RESPONSE_V3))),
    ],
    extensions: Some(3),
};

static RESPONSE_V3: Message =
    Message { members: &[("description", 1, Text), ("content", 3, Map(1, &One(&MEDIA_TYPE)))], extensions: Some(5) };

static COMPONENTS: Message = Message {
    members: &[
        ("schemas", 1, Map(1, &Choice(schema_or_reference))),
        ("securitySchemes", 7, Map(1, &Choice(|value| or_reference(value, &SECURITY_SCHEME)))),
    ],
    extensions: Some(10),
};

static SECURITY_SCHEME: Message = Message {
    members: &[
        ("type", 1, Text),
        ("description", 2, Text),
        ("name", 3, Text),
        ("in", 4, Text),
        ("scheme", 5, Text),
        ("bearerFormat", 6, Text),
    ],
    extensions: Some(9),
};

fn schema_or_reference(value: &Value) -> (u32, Chosen) {
    or_reference(value, &SCHEMA_V3)
}

static SCHEMA_V3: Message = Message {
    members: &[
        ("nullable", 1, Flag),
        ("readOnly", 3, Flag),
        ("writeOnly", 4, Flag),
        ("externalDocs", 6, One(&DOCS)),
        ("example", 7, Any),
        ("deprecated", 8, Flag),
        ("title", 9, Text),
        ("multipleOf", 10, Float),
        ("maximum", 11, Float),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Float),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, Texts),
        ("enum", 24, Anys),
        ("type", 25, Text),
        ("allOf", 26, Choices(schema_or_reference)),
        ("oneOf", 27, Choices(schema_or_reference)),
        ("anyOf", 28, Choices(schema_or_reference)),
        ("not", 29, One(&SCHEMA_V3)),
        ("items", 30, Items(&Choice(schema_or_reference))),
        ("properties", 31, Map(1, &Choice(schema_or_reference))),
        ("additionalProperties", 32, Choice(additional_v3)),
        ("default", 33, Scalar),
        ("description", 34, Text),
        ("format", 35, Text),
        ("x-kubernetes-validations", 36, Extension(yaml::print_rules)),
    ],
    extensions: Some(36),
};

fn additional_v3(value: &Value) -> (u32, Chosen) {
    if value.is_boolean() { (2, Chosen::Flag) } else { (1, Chosen::Nested(schema_or_reference)) }
}
