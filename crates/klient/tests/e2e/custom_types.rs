//! Derived types on the real server: installation, versions, storage migration, and the server's verdict on schemas and rules.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use klient::{
    Api, CustomResource, CustomResourceExt, ErrorKind, KubeSchema, ResourceExt as _,
    custom::{check, install, merge_crds, migrate_storage, structural_schema},
    resource::ApiResource,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::{self, or_skip};

/// Declares one version of a shop in a group of its own, so that tests do not meet.
macro_rules! shop {
    ($module:ident, $group:literal, $version:literal, $field:ident) => {
        mod $module {
            use super::*;

            #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
            #[kube(group = $group, version = $version, kind = "Shop", namespaced, status = "ShopStatus")]
            pub(super) struct ShopSpec {
                #[serde(default)]
                pub(super) $field: i64,
            }

            #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
            pub(super) struct ShopStatus {
                pub(super) open: bool,
            }
        }
    };
}

fn message(error: &klient::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

#[tokio::test]
async fn install_serves_the_kind_and_can_be_repeated() {
    shop!(v1, "install.klient.invalid", "v1", size);
    let client = or_skip!(cluster::client());
    for _ in 0..2 {
        let definition = install(&client, v1::Shop::crd()).manager("shop-operator").await.unwrap();
        assert_eq!(definition.name(), v1::Shop::crd_name());
        // There is no retry: the kind is served when `install` returns.
        Api::<v1::Shop>::all(client.clone()).list().await.unwrap();
    }
    let namespace = cluster::namespace(&client, "install-custom-types").await;
    let shops: Api<v1::Shop> = Api::namespaced(client, &namespace);
    let mut shop = shops.create(&v1::Shop::new("corner", v1::ShopSpec { size: 3 })).await.unwrap();
    shop.status = Some(v1::ShopStatus { open: true });
    let shop = shops.update_status(&shop).await.unwrap();
    assert!(shop.spec.size == 3 && shop.status.is_some_and(|status| status.open));
}

#[tokio::test]
async fn install_refuses_to_undo_a_newer_definition() {
    shop!(v1, "downgrade.klient.invalid", "v1", size);
    shop!(v2, "downgrade.klient.invalid", "v2", size);
    let client = or_skip!(cluster::client());
    let both = merge_crds(vec![v1::Shop::crd(), v2::Shop::crd()], "v2").unwrap();
    install(&client, both.clone()).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client.clone());
    let before = definitions.get(v1::Shop::crd_name()).await.unwrap();

    let stored = install(&client, v1::Shop::crd()).allow_downgrade().await.unwrap_err();
    assert!(message(&stored).contains("objects may be stored in version v2"), "{}", message(&stored));
    let back = merge_crds(vec![v1::Shop::crd(), v2::Shop::crd()], "v1").unwrap();
    let older = install(&client, back.clone()).await.unwrap_err();
    assert!(message(&older).contains("version v2 is stored, and v1 would be stored instead"), "{}", message(&older));
    let after = definitions.get(v1::Shop::crd_name()).await.unwrap();
    assert_eq!(
        after.metadata.resource_version, before.metadata.resource_version,
        "a refused definition changed the server"
    );

    install(&client, back).allow_downgrade().await.unwrap();
    let removed = install(&client, v2::Shop::crd()).await.unwrap_err();
    assert_eq!(removed.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn install_reports_names_that_are_taken() {
    shop!(first, "taken.klient.invalid", "v1", size);
    let client = or_skip!(cluster::client());
    install(&client, first::Shop::crd()).await.unwrap();
    let mut second = first::Shop::crd();
    second.spec.names.plural = "shopz".to_owned();
    second.spec.names.singular = Some("shopz".to_owned());
    second.metadata.name = Some("shopz.taken.klient.invalid".to_owned());
    let error = install(&client, second).await.unwrap_err();
    assert!(message(&error).contains("the names are taken by another definition"), "{}", message(&error));
}

#[tokio::test]
async fn install_refuses_an_invalid_definition_before_any_request() {
    shop!(v1, "invalid.klient.invalid", "v1", size);
    let client = or_skip!(cluster::client());
    let mut definition = v1::Shop::crd();
    let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().insert("extra".to_owned(), JSONSchemaProps::default());
    let error = install(&client, definition).await.unwrap_err();
    assert!(message(&error).contains("Shop v1: extra: is not structural: it has no type"), "{}", message(&error));
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client);
    assert!(definitions.get_opt(v1::Shop::crd_name()).await.unwrap().is_none());
}

#[tokio::test]
async fn storage_migration_lets_a_version_be_removed() {
    shop!(v1beta1, "migrate.klient.invalid", "v1beta1", size);
    shop!(v1, "migrate.klient.invalid", "v1", size);
    let client = or_skip!(cluster::client());
    install(&client, v1beta1::Shop::crd()).await.unwrap();
    let namespace = cluster::namespace(&client, "migrate-custom-types").await;
    let old: Api<v1beta1::Shop> = Api::namespaced(client.clone(), &namespace);
    for name in ["a", "b", "c"] {
        old.create(&v1beta1::Shop::new(name, v1beta1::ShopSpec { size: 1 })).await.unwrap();
    }
    let both = merge_crds(vec![v1::Shop::crd(), v1beta1::Shop::crd()], "v1").unwrap();
    install(&client, both).await.unwrap();
    assert!(install(&client, v1::Shop::crd()).allow_downgrade().await.is_err());

    let migrated = migrate_storage(&client, v1::Shop::crd_name()).await.unwrap();
    assert_eq!((&*migrated.version, migrated.objects, migrated.removed), ("v1", 3, vec!["v1beta1".to_owned()]));
    install(&client, v1::Shop::crd()).allow_downgrade().await.unwrap();
    let shops: Api<v1::Shop> = Api::namespaced(client, &namespace);
    assert_eq!(shops.list().await.unwrap().items.len(), 3);
}

/// Types for which kube-derive panics, or gives a definition that the server refuses.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "beyond.klient.invalid", version = "v1", kind = "Beyond", namespaced)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BeyondSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    internal: Option<Internal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjacent: Option<Adjacent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scalar: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numbers: Option<BTreeMap<i32, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pair: Option<(i32, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Tree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maybe: Option<Maybe>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Internal {
    Git { url: String },
    Image { name: String, tag: Option<String> },
    None,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    A { x: i32 },
    B { y: String },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Scalar {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Maybe {
    Nothing,
    A { a: i32 },
    B { b: i32 },
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[tokio::test]
async fn schemas_beyond_kube_derive_validate_objects() {
    let client = or_skip!(cluster::client());
    install(&client, Beyond::crd()).await.unwrap();
    let namespace = cluster::namespace(&client, "beyond-custom-types").await;
    let objects = klient::client::DynamicClient::new(client).in_namespace(&ApiResource::of::<Beyond>(), &namespace);
    let cases = [
        (json!({"internal": {"type": "git", "url": "u"}}), true),
        (json!({"internal": {"type": "none"}}), true),
        (json!({"internal": {"type": "git"}}), false),
        (json!({"internal": {"type": "svn", "url": "u"}}), false),
        (json!({"internal": {"url": "u"}}), false),
        (json!({"adjacent": {"kind": "A", "value": {"x": 1}}}), true),
        (json!({"adjacent": {"kind": "B", "value": {"x": 1}}}), false),
        (json!({"scalar": 1}), true),
        (json!({"scalar": "one"}), true),
        (json!({"scalar": true}), false),
        (json!({"any": {"deep": [1, {"x": null}]}}), true),
        (json!({"numbers": {"1": "one"}}), true),
        (json!({"numbers": {"1": 1}}), false),
        (json!({"pair": [1, "a"]}), true),
        (json!({"pair": [1]}), false),
        (json!({"tree": {"name": "a", "children": [{"name": "b", "children": []}]}}), true),
        (json!({"tree": {"children": []}}), false),
        (json!({"maybe": {"a": 1}}), true),
        (json!({"maybe": {}}), false),
    ];
    for (index, (spec, is_valid)) in cases.into_iter().enumerate() {
        let object = klient::object::DynamicObject::new(&format!("case-{index}"), &ApiResource::of::<Beyond>())
            .data(json!({"spec": spec}));
        let created = objects.create(&object).await;
        assert_eq!(created.is_ok(), is_valid, "{spec}: {created:?}");
        if let Ok(created) = created {
            assert_eq!(created.data["spec"], spec, "the server pruned fields");
            serde_json::from_value::<BeyondSpec>(spec).unwrap();
        }
    }
}

#[derive(KubeSchema, Clone, Debug, Deserialize, Serialize)]
struct Bounded {
    #[schemars(length(max = 20), inner(length(max = 30)))]
    names: Vec<String>,
    texts: Vec<String>,
    text: String,
    map: BTreeMap<String, String>,
    items: Vec<Item>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Item {
    name: String,
    size: i64,
}

/// The verdict of `check` on a rule is the server's, except close to the limit.
#[tokio::test]
async fn check_judges_rules_as_the_server_does() {
    let client = or_skip!(cluster::client());
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client);
    let rules = [
        "self.names.all(a, self.names.exists(b, a == b))",
        "self.names.all(a, a.matches('^[a-z]+$'))",
        "self.texts.all(a, a.size() > 0)",
        "self.texts.all(a, a.contains('abcdefghijklmnopqrstuvwxyz'))",
        "self.texts.all(a, self.texts.all(b, a == b))",
        "self.text.contains('x')",
        "self.text.matches('^[a-z]+$')",
        "self.text == 'x' || self.text.startsWith('abc')",
        "self.map.all(k, self.map[k] != '')",
        "self.map.all(k, self.map.all(l, k != l))",
        "self.items.all(i, i.size > 0)",
        "self.items.all(i, i.name in self.names)",
        "self.items.map(i, i.name).all(n, self.items.exists_one(o, o.name == n))",
        "self.items.filter(i, i.size > 3).size() < 5",
        "size(self.text) > 1 && has(self.text)",
        "self.names == oldSelf.names",
        "self.text.",
        "self.text +",
        "self.names.all(a a)",
    ];
    let mut wrong = Vec::new();
    for rule in rules {
        let definition = with_rule(rule);
        let ours = check(&definition);
        let theirs = definitions.create(&definition).dry_run().await;
        if ours.is_ok() != theirs.is_ok() {
            wrong.push(format!("{rule}: check {ours:?}, server {:?}", theirs.map(drop)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn with_rule(rule: &str) -> CustomResourceDefinition {
    shop!(v1, "rules.klient.invalid", "v1", size);
    let mut definition = v1::Shop::crd();
    let mut bounded = serde_json::to_value(structural_schema::<Bounded>()).unwrap();
    bounded["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().insert("spec".to_owned(), serde_json::from_value(bounded).unwrap());
    definition
}

/// Problems of `check` are refusals of the server, and the other way round.
#[tokio::test]
async fn check_judges_schemas_as_the_server_does() {
    let client = or_skip!(cluster::client());
    let definitions: Api<CustomResourceDefinition> = Api::cluster(client);
    let fields = [
        json!({"type": "string"}),
        json!({}),
        json!({"type": "int"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": [{"type": "string"}]}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        json!({"type": "array", "items": {}}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        json!({"type": "array", "items": {"type": "string", "nullable": true}, "x-kubernetes-list-type": "set"}),
        json!({"type": "string", "nullable": true, "default": null}),
        json!({"enum": [null], "nullable": true}),
        json!({"type": "object", "additionalProperties": {}}),
        json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "messageExpression": "'a' + string(self)"}]}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 0", "fieldPath": ".a"}]}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 0", "fieldPath": ".b"}]}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 0", "fieldPath": "a"}]}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".a"}]}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
            "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".a[0]"}]}),
        json!({"type": "object", "patternProperties": {"a": {"type": "string"}}}),
        json!({"$ref": "#/x"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-int-or-string": true, "type": "string"}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true, "type": "string"}),
        json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
        json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
        json!({"type": "integer", "default": 1}),
        json!({"type": "integer", "default": "one"}),
        json!({"type": "string", "enum": ["a"], "default": "b"}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"properties": {"a": {"type": "string"}}}]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"properties": {"b": {"enum": ["x"]}}}]}),
        json!({"type": "object", "anyOf": [{"description": "x"}]}),
        json!({"type": "object", "not": {"nullable": true}}),
        json!({"oneOf": [{"type": "string", "enum": ["A"]}, {"type": "object", "properties": {"B": {"type": "string"}}}]}),
    ];
    shop!(v1, "schemas.klient.invalid", "v1", size);
    let mut wrong = Vec::new();
    for field in fields {
        let mut definition = v1::Shop::crd();
        let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        schema.properties.as_mut().unwrap().insert("field".to_owned(), serde_json::from_value(field.clone()).unwrap());
        let ours = check(&definition);
        let theirs = definitions.create(&definition).dry_run().await;
        if ours.is_ok() != theirs.is_ok() {
            wrong.push(format!("{field}: check {ours:?}, server {:?}", theirs.map(drop)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
