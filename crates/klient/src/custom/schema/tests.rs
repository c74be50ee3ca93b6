//! Schemas beyond kube-derive's: those for which it panics, or that the server refuses. The others are in `xtask/custom-types`.

#![allow(dead_code, reason = "the fields are read by the derives alone")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

fn schema<T: JsonSchema>() -> Value {
    let mut schema = serde_json::to_value(structural_schema::<T>()).unwrap();
    schema.as_object_mut().unwrap().remove("title");
    schema
}

/// Returns the schema of the field `value`.
fn field<T: JsonSchema>() -> Value {
    #[derive(JsonSchema)]
    struct Holder<T> {
        value: T,
    }
    schema::<Holder<T>>()["properties"]["value"].clone()
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Git {
    url: String,
}

#[test]
fn internally_tagged_enum_has_a_tag_with_all_values() {
    #[derive(JsonSchema)]
    #[serde(tag = "type", rename_all = "camelCase")]
    enum Source {
        /// From a repository.
        Git(Git),
        Image {
            name: String,
            tag: Option<String>,
        },
        None,
    }
    let expected = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["git", "image", "none"]},
            "url": {"type": "string"},
            "name": {"type": "string"},
            "tag": {"type": "string", "nullable": true},
        },
        "required": ["type"],
        "oneOf": [
            {"properties": {"type": {"enum": ["git"]}}, "required": ["url"]},
            {"properties": {"type": {"enum": ["image"]}}, "required": ["name"]},
            {"properties": {"type": {"enum": ["none"]}}},
        ],
    });
    assert_eq!(schema::<Source>(), expected);
}

#[test]
fn adjacently_tagged_enum_unites_its_contents() {
    #[derive(JsonSchema)]
    #[serde(tag = "kind", content = "value")]
    enum Objects {
        A { x: i32, both: String },
        B { y: bool, both: String },
    }
    let objects = schema::<Objects>();
    assert_eq!(objects["required"], json!(["kind", "value"]));
    assert_eq!(objects["properties"]["kind"], json!({"type": "string", "enum": ["A", "B"]}));
    let content = &objects["properties"]["value"];
    assert_eq!(content["type"], "object");
    assert_eq!(content["required"], json!(["both"]));
    assert_eq!(content["properties"].as_object().unwrap().len(), 3);
    let first = json!({"properties": {"kind": {"enum": ["A"]}, "value": {"required": ["x"]}}});
    assert_eq!(objects["oneOf"][0], first);

    #[derive(JsonSchema)]
    #[serde(tag = "kind", content = "value")]
    enum Mixed {
        Number(i32),
        Text(String),
        List(Vec<String>),
        Unit,
    }
    let mixed = schema::<Mixed>();
    assert_eq!(mixed["properties"]["value"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(mixed["required"], json!(["kind"]));
    assert_eq!(mixed["oneOf"][3], json!({"properties": {"kind": {"enum": ["Unit"]}}}));
}

#[test]
fn variants_with_one_field_of_several_types_are_united() {
    #[derive(JsonSchema)]
    #[serde(tag = "type")]
    enum Typed {
        A { size: i32, name: String },
        B { size: String, name: String },
        C { size: bool, name: Vec<String> },
    }
    let typed = schema::<Typed>();
    assert_eq!(typed["properties"]["size"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(typed["required"], json!(["name", "size", "type"]));

    #[derive(JsonSchema)]
    #[serde(tag = "type")]
    enum Bounds {
        A {
            #[schemars(range(min = 1, max = 5))]
            size: i32,
        },
        B {
            #[schemars(range(min = 1, max = 9))]
            size: i32,
        },
    }
    let bounds = schema::<Bounds>();
    assert_eq!(bounds["properties"]["size"], json!({"type": "integer", "format": "int32", "minimum": 1.0}));
    assert_eq!(bounds["oneOf"][0]["properties"]["size"], json!({"maximum": 5.0}));
}

#[test]
fn flattened_tagged_enum_joins_the_fields_around_it() {
    #[derive(JsonSchema)]
    #[serde(tag = "type")]
    enum Source {
        Git(Git),
        Image { name: String },
    }
    #[derive(JsonSchema)]
    struct Build {
        replicas: i32,
        #[serde(flatten)]
        source: Source,
    }
    let build = schema::<Build>();
    assert_eq!(build["required"], json!(["replicas", "type"]));
    let names: Vec<&String> = build["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["name", "replicas", "type", "url"]);
}

#[test]
fn untagged_scalars_have_one_type() {
    #[derive(JsonSchema)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(i64),
        Text(String),
    }
    #[derive(JsonSchema)]
    #[serde(untagged)]
    enum Numbers {
        Whole(i64),
        Part(f64),
    }
    #[derive(JsonSchema)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    assert_eq!(field::<NumberOrText>(), json!({"x-kubernetes-int-or-string": true}));
    assert_eq!(field::<Numbers>(), json!({"type": "number"}));
    assert_eq!(field::<OneOrMany>(), json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn untagged_enum_with_a_unit_variant_is_nullable() {
    #[derive(JsonSchema)]
    #[serde(untagged)]
    enum Maybe {
        Nothing,
        A { a: i32 },
        B { b: i32 },
    }
    let maybe = field::<Maybe>();
    assert_eq!(maybe["nullable"], true);
    assert_eq!(maybe["anyOf"], json!([{"required": ["a"]}, {"required": ["b"]}]));
}

#[test]
fn untagged_variants_that_differ_in_words_keep_the_first() {
    #[derive(JsonSchema)]
    #[serde(untagged)]
    enum Words {
        A {
            /// First words.
            name: String,
        },
        B {
            /// Other words.
            name: String,
            size: i32,
        },
    }
    assert_eq!(schema::<Words>()["properties"]["name"], json!({"type": "string", "description": "First words."}));
}

#[test]
fn any_value_preserves_unknown_fields() {
    assert_eq!(field::<Value>(), json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(field::<Vec<Value>>()["items"], json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn maps_with_integer_keys_have_additional_properties() {
    let map = field::<BTreeMap<i32, Git>>();
    assert_eq!(map["additionalProperties"]["properties"]["url"], json!({"type": "string"}));
    assert_eq!(map.get("patternProperties"), None);
}

#[test]
fn tuples_have_one_schema_for_all_items() {
    let same = field::<(i32, i32)>();
    assert_eq!(
        (&same["items"]["type"], &same["minItems"], &same["maxItems"]),
        (&json!("integer"), &json!(2), &json!(2))
    );
    assert_eq!(field::<[String; 0]>()["items"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(field::<(i32, bool)>()["items"], json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn recursion_ends_with_preserved_fields() {
    #[derive(JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
        parent: Option<Box<Tree>>,
    }
    let tree = field::<Tree>();
    let inner = &tree["properties"]["children"]["items"];
    assert!(inner.to_string().contains("x-kubernetes-preserve-unknown-fields"), "{tree}");
    assert!(!tree.to_string().contains("$ref"), "{tree}");
}

#[test]
fn typed_map_beside_fields_preserves_unknown_fields() {
    #[derive(JsonSchema)]
    struct Open {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, i32>,
    }
    let open = schema::<Open>();
    assert_eq!(open["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(open.get("additionalProperties"), None);
}

#[test]
fn exclusive_bounds_are_booleans() {
    #[derive(JsonSchema)]
    struct Bounded {
        #[schemars(extend("exclusiveMinimum" = 5))]
        value: i32,
    }
    let value = &schema::<Bounded>()["properties"]["value"];
    assert_eq!((&value["minimum"], &value["exclusiveMinimum"]), (&json!(5.0), &json!(true)));
}

#[test]
fn enum_of_units_and_data_is_left_unless_preserved() {
    #[derive(JsonSchema)]
    enum Mixed {
        Unit,
        Data(String),
    }
    assert_eq!(field::<Mixed>().get("type"), None);
    #[derive(JsonSchema)]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    enum Preserved {
        Unit,
        Data(String),
    }
    assert_eq!(field::<Preserved>(), json!({"x-kubernetes-preserve-unknown-fields": true}));
}
