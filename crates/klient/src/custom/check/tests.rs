//! One definition that passes, and one change for each problem.

use serde_json::{Value, json};

use super::*;

fn definition() -> Value {
    json!({
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Shop", "plural": "shops"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "selectableFields": [{"jsonPath": ".spec.size"}],
                "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 1},
                        "ports": {
                            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"}, "note": {"type": "string"}, "inner": {"type": "object"},
                            }},
                        },
                        "choice": {
                            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                            "oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"enum": ["x"]}}}],
                        },
                    }},
                    "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    })
}

/// Changes the definition at a pointer, and returns the problems as text.
fn changed(pointer: &str, value: Value) -> Vec<String> {
    let mut definition = definition();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = definition.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} does not exist"));
    match (parent, value) {
        (Value::Object(parent), Value::Null) => drop(parent.remove(field)),
        (Value::Object(parent), value) => drop(parent.insert(field.to_owned(), value)),
        (Value::Array(parent), value) => parent[field.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer} has no parent"),
    }
    let definition = serde_json::from_value(definition).unwrap();
    check(&definition).map_or_else(|error| error.problems().iter().map(Problem::to_string).collect(), |()| Vec::new())
}

const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

#[test]
fn check_passes_for_a_valid_definition() {
    check(&serde_json::from_value(definition()).unwrap()).unwrap();
}

#[test]
fn check_names_kind_version_path_and_reason() {
    let problem = changed(&format!("{SPEC}/ports/x-kubernetes-list-map-keys"), json!(["nam"]));
    assert_eq!(
        problem,
        [r#"Shop v1: spec.ports: unknown merge key "nam": the items have the fields inner, name, note"#]
    );
}

#[test]
fn check_finds_each_problem() {
    let cases = [
        ("/metadata/name".to_owned(), json!("shop"), "metadata.name: must be shops.example.com"),
        (
            "/spec/versions/0/storage".to_owned(),
            json!(false),
            "exactly one version must have `storage = true`, found none",
        ),
        ("/spec/versions/0/schema".to_owned(), json!({}), "has no schema"),
        ("/spec/versions/0/additionalPrinterColumns/0/jsonPath".to_owned(), json!(".spec.sizes"), "no field \"sizes\""),
        (
            "/spec/versions/0/selectableFields/0/jsonPath".to_owned(),
            json!(".spec.ports"),
            "must be a string, an integer",
        ),
        ("/spec/versions/0/subresources/scale/specReplicasPath".to_owned(), json!(".spec.x"), "no field \"x\""),
        (format!("{SPEC}/size/type"), Value::Null, "spec.size: is not structural: it has no type"),
        (format!("{SPEC}/size/type"), json!("int"), "spec.size: has the unknown type int"),
        (format!("{SPEC}/size/default"), json!("one"), "spec.size: default \"one\" is not a integer"),
        (format!("{SPEC}/size/x-kubernetes-list-type"), json!("set"), "`ListMerge` is for lists, found integer"),
        (format!("{SPEC}/size/x-kubernetes-map-type"), json!("atomic"), "`MapMerge` is for maps and structs"),
        (format!("{SPEC}/ports/items"), Value::Null, "spec.ports: has no schema for its items"),
        (format!("{SPEC}/ports/items/required"), Value::Null, "merge key \"name\" must be required"),
        (format!("{SPEC}/ports/x-kubernetes-list-map-keys"), json!(["inner"]), "merge key \"inner\" must be a scalar"),
        (format!("{SPEC}/ports/x-kubernetes-list-map-keys"), json!([]), "needs at least one key"),
        (format!("{SPEC}/ports/x-kubernetes-list-type"), json!("set"), "`ListMerge::Set` is for lists of scalars"),
        (format!("{SPEC}/ports/items"), json!([{"type": "string"}]), "tuples are not supported"),
        (format!("{SPEC}/ports/uniqueItems"), json!(true), "`uniqueItems` is not supported"),
        (format!("{SPEC}/choice/additionalProperties"), json!({"type": "string"}), "exclude each other"),
        (format!("{SPEC}/choice/$ref"), json!("#/a"), "`$ref` is not supported"),
        (format!("{SPEC}/choice/oneOf/0/type"), json!("object"), "`type` is not allowed in `oneOf`"),
        (
            format!("{SPEC}/size/x-kubernetes-validations"),
            json!([{"rule": "self >"}]),
            "is not valid: the expression is incomplete",
        ),
        (
            format!("{SPEC}/choice/x-kubernetes-validations"),
            json!([{"rule": "true", "fieldPath": ".a"}, {"rule": "true", "fieldPath": ".c"}]),
            "spec.choice: the field path \".c\" of a CEL rule is not a field of its schema",
        ),
    ];
    for (pointer, value, expected) in cases {
        let found = changed(&pointer, value.clone());
        assert!(found.iter().any(|problem| problem.contains(expected)), "{pointer} = {value}: {found:#?}");
    }
}
