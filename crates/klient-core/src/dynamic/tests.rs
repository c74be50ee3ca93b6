//! Dynamic objects preserve all fields, and convert like the JSON that they were read from.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GroupVersionKind, Scope};

fn decode(value: &Value) -> DynamicObject {
    // Objects arrive as text, so the test goes through text.
    serde_json::from_str(&value.to_string()).unwrap()
}

#[test]
fn dynamic_object_keeps_unknown_fields() {
    let value = json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": "w",
            "uid": "1",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"a": "b"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
            "fromTheFuture": {"deep": [1, null, 2.5]},
            "clusterName": "c",
        },
        "spec": {"big": 18_446_744_073_709_551_615_u64, "null": null, "empty": {}},
        "status": [],
        "other": null,
    });
    assert_eq!(serde_json::to_value(decode(&value)).unwrap(), value);
    let text = value.to_string();
    assert_eq!(serde_json::from_slice::<DynamicObject>(text.as_bytes()).unwrap(), decode(&value));
    assert_eq!(serde_json::from_reader::<_, DynamicObject>(text.as_bytes()).unwrap(), decode(&value));
    assert_eq!(serde_json::from_value::<DynamicObject>(value.clone()).unwrap(), decode(&value));
}

#[test]
fn null_metadata_field_is_treated_as_absent() {
    let object = decode(&json!({"apiVersion": null, "kind": null, "metadata": null}));
    assert_eq!(object, DynamicObject::default());
    assert_eq!(serde_json::to_value(&object).unwrap(), json!({}));
    let object = decode(&json!({"metadata": {"creationTimestamp": null, "name": "x"}}));
    assert_eq!(serde_json::to_value(&object).unwrap(), json!({"metadata": {"name": "x"}}));
}

#[test]
fn last_of_duplicate_keys_wins() {
    let object: DynamicObject = serde_json::from_str(
        r#"{"metadata": {"name": "a", "x": 1}, "spec": 1, "metadata": {"name": "b", "y": 2}, "spec": 2}"#,
    )
    .unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), json!({"metadata": {"name": "b", "y": 2}, "spec": 2}));
}

#[test]
fn error_names_the_problem_of_an_invalid_object() {
    for (text, message) in [
        ("[]", "a Kubernetes object"),
        ("{\"kind\": 3}", "expected a string"),
        ("{\"metadata\": 3}", "ObjectMeta"),
        ("{\"metadata\": {\"labels\": 3}}", "expected a map"),
    ] {
        let error = serde_json::from_str::<DynamicObject>(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn data_that_is_not_an_object_is_not_encoded() {
    let widgets = ApiResource::new(GroupVersionKind::new("example.com", "v1", "Widget"), "widgets", Scope::Cluster);
    let object = DynamicObject::new("w", &widgets).data(json!([1]));
    assert!(serde_json::to_string(&object).unwrap_err().to_string().contains("must be a JSON object"));
    assert!(object.try_parse::<Pod>().is_err());
}

#[test]
fn type_fields_are_written_once() {
    let pods = ApiResource::of::<Pod>();
    let object = DynamicObject::new("web", &pods).data(json!({"kind": "Other", "metadata": {}, "spec": {}}));
    let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {}});
    assert_eq!(serde_json::to_value(&object).unwrap(), expected);
    assert_eq!(object.into_value().unwrap(), expected);
}

#[test]
fn get_reads_any_path_of_the_object() {
    let object = decode(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "x"}, "unknown": [true]},
        "spec": {"containers": [{"image": "nginx"}]},
    }));
    for (path, expected) in [
        ("apiVersion", Some(json!("v1"))),
        ("kind", Some(json!("Pod"))),
        ("kind.x", None),
        ("metadata.name", Some(json!("web"))),
        ("metadata.labels['app.kubernetes.io/name']", Some(json!("x"))),
        ("metadata.unknown[0]", Some(json!(true))),
        ("metadata.uid", None),
        ("spec.containers[0].image", Some(json!("nginx"))),
        ("spec.containers[1].image", None),
        ("spec.containers.image", None),
        ("spec[0]", None),
    ] {
        let path: FieldPath = path.parse().unwrap();
        assert_eq!(object.get(&path).map(Cow::into_owned), expected, "{path}");
    }
}

#[test]
fn dynamic_object_converts_to_a_type_and_back() {
    let pod: Pod = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))
    .unwrap();
    let object = DynamicObject::from_typed(&pod).unwrap();
    assert_eq!(object.data["spec"]["containers"][0]["image"], "nginx");
    assert_eq!(object.clone().try_parse::<Pod>().unwrap(), pod);

    let error = object.try_parse::<Deployment>().unwrap_err();
    assert_eq!(error.to_string(), "object \"default/web\" is not a valid apps/v1 Deployment");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("apps/v1"));
}

#[test]
fn fill_types_sets_the_kind_of_list_items() {
    let mut item = decode(&json!({"metadata": {"name": "web"}}));
    item.fill_types(&ApiResource::of::<Pod>());
    assert_eq!(item.types, Some(TypeMeta::new("v1", "Pod")));
    item.fill_types(&ApiResource::of::<Deployment>());
    assert_eq!(item.types, Some(TypeMeta::new("v1", "Pod")));
}

/// Any JSON of a few levels. Floats are short, because `serde_json` rounds the last digit of long ones.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof!["metadata|apiVersion|kind|spec|name|labels|uid|finalizers", ".{0,6}"]
}

/// Removes the parts in which two spellings of one object may differ: empty and null metadata and type fields.
fn canonical(mut value: Value) -> Value {
    if let Value::Object(object) = &mut value {
        for name in ["apiVersion", "kind"] {
            if matches!(object.get(name), Some(Value::Null)) || object.get(name).is_some_and(|text| text == "") {
                object.remove(name);
            }
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for name in ["name", "labels", "uid", "finalizers"] {
                if metadata.get(name).is_some_and(Value::is_null) {
                    metadata.remove(name);
                }
            }
        }
        if object.get("metadata").is_some_and(|metadata| metadata.is_null() || metadata == &json!({})) {
            object.remove("metadata");
        }
    }
    value
}

proptest! {
    #[test]
    fn any_json_object_is_rejected_or_round_trips(mut value in any_json(), metadata in any_json(), spec in any_json()) {
        if let Value::Object(object) = &mut value {
            object.entry("metadata").or_insert(metadata);
            object.insert("spec".to_owned(), spec);
        }
        let text = value.to_string();
        if let Ok(object) = serde_json::from_str::<DynamicObject>(&text) {
            let back = serde_json::to_value(&object).unwrap();
            prop_assert_eq!(canonical(back), canonical(serde_json::from_str(&text).unwrap()));
            let again: DynamicObject = serde_json::from_value(object.clone().into_value().unwrap()).unwrap();
            prop_assert_eq!(again, object);
        }
    }

    #[test]
    fn any_data_round_trips(data in prop::collection::btree_map(".{0,6}", any_json(), 0..5)) {
        let data = Value::Object(data.into_iter().collect());
        let object = DynamicObject::default().data(data.clone());
        let back: DynamicObject = serde_json::from_str(&serde_json::to_string(&object).unwrap()).unwrap();
        prop_assert_eq!(back.data, data);
    }
}
