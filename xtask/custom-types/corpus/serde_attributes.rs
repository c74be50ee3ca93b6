//! Attributes of serde and schemars.

use std::collections::BTreeMap;

use super::derives::*;

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Limits {
    cpu: String,
    memory: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct WithDefaults {
    replicas: i32,
    name: String,
    zones: Vec<String>,
    limits: Limits,
}

impl Default for WithDefaults {
    fn default() -> Self {
        Self { replicas: 3, name: "web".to_owned(), zones: vec!["a".to_owned()], limits: Limits::default() }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Choice {
    One(String),
    Two { size: i32 },
}

fn five() -> i32 {
    5
}

fn zone() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NoSchema(i64);

specs! {
    Defaults DefaultsSpec "Defaults" {
        #[serde(default)]
        a: i32,
        #[serde(default)]
        b: String,
        #[serde(default)]
        c: Vec<String>,
        #[serde(default)]
        d: Option<i32>,
        #[serde(default)]
        e: bool,
    }
    DefaultFunctions DefaultFunctionsSpec "DefaultFunctions" {
        #[serde(default = "five")]
        a: i32,
        #[serde(default = "zone")]
        b: Vec<String>,
        #[serde(default = "Limits::default")]
        c: Limits,
    }
    ContainerDefaults ContainerDefaultsSpec "ContainerDefaults" {
        a: WithDefaults,
        #[serde(default)]
        b: WithDefaults,
    }
    SkippedDefaults SkippedDefaultsSpec "SkippedDefaults" {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        b: Vec<String>,
        #[serde(default, skip_serializing_if = "is_zero")]
        c: i32,
    }
    Skipped SkippedSpec "Skipped" {
        a: String,
        #[serde(skip)]
        b: i32,
        #[serde(skip_serializing)]
        c: i32,
        #[serde(skip_deserializing)]
        d: i32,
    }
    FlattenedStructs FlattenedStructsSpec "FlattenedStructs" {
        name: String,
        #[serde(flatten)]
        limits: Limits,
    }
    FlattenedAny FlattenedAnySpec "FlattenedAny" {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }
    FlattenedAnyAlone FlattenedAnyAloneSpec "FlattenedAnyAlone" {
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }
    FlattenedMapAlone FlattenedMapAloneSpec "FlattenedMapAlone" {
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }
    FlattenedEnums FlattenedEnumsSpec "FlattenedEnums" {
        name: String,
        #[serde(flatten)]
        choice: Choice,
    }
    FlattenedOptions FlattenedOptionsSpec "FlattenedOptions" {
        name: String,
        #[serde(flatten)]
        choice: Option<Choice>,
    }
    With WithSpec "With" {
        #[schemars(with = "String")]
        a: NoSchema,
        #[schemars(with = "Option<i32>")]
        b: NoSchema,
    }
    Annotated AnnotatedSpec "Annotated" {
        #[schemars(title = "A title", description = "A description", example = 7)]
        a: i32,
        #[schemars(description = "Replaced")]
        /// Words.
        b: String,
    }
    Bounded BoundedSpec "Bounded" {
        #[schemars(range(min = 1, max = 10))]
        a: i32,
        #[schemars(length(min = 1, max = 63))]
        b: String,
        #[schemars(regex(pattern = "^[a-z]+$"))]
        c: String,
        #[schemars(length(max = 5), inner(length(max = 8)))]
        d: Vec<String>,
        #[schemars(range(min = 0.5))]
        e: Option<f64>,
    }
    Formats FormatsSpec "Formats" {
        #[schemars(email)]
        a: String,
        #[schemars(url)]
        b: Option<String>,
    }
    Extended ExtendedSpec "Extended" {
        #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
        a: Limits,
        #[schemars(extend("x-kubernetes-list-type" = "set"))]
        b: Vec<String>,
        #[schemars(extend("x-unknown" = 1))]
        c: i32,
    }
}
