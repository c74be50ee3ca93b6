//! Comparison of every codec with k8s-pb's types and prost's codec, which are generated independently from the same
//! definitions.
//!
//! k8s-pb is for Kubernetes 1.35. Fields that it does not know are lost on both sides of each comparison.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use klient_core::Resource;
use klient_proto::{Envelope, ManagedFields, RawObject, decode, encode};
use prost::Message;
use serde_json::{Value, json};

use crate::{
    corpus::{Entry, corpus},
    support::{path, without_nulls},
};

/// Decodes an object with prost, and decodes the object that prost encodes again.
fn through_prost<K: Resource, P: Message + Default>(message: &[u8]) -> (P, K) {
    let seen = P::decode(message).unwrap_or_else(|error| panic!("{}: {error}", K::KIND));
    let again = decode(&seen.encode_to_vec(), ManagedFields::Keep).unwrap();
    (seen, again)
}

/// Checks that prost decodes our bytes and Go's to the same, if the corpus has the kind.
fn check<K, P>(corpus: &BTreeMap<(String, String), Entry>) -> bool
where
    K: Resource + PartialEq,
    P: Message + Default + PartialEq + std::fmt::Debug,
{
    let Some(entry) = corpus.get(&(K::API_VERSION.to_owned(), K::KIND.to_owned())) else { return false };
    let go = Envelope::open(&entry.pb).unwrap().raw;
    let object: K = decode(go, ManagedFields::Keep).unwrap();
    let (_, from_go) = through_prost::<K, P>(go);
    let (ours, from_ours) = through_prost::<K, P>(&encode(&object).unwrap());
    assert_eq!(from_ours, from_go, "{}", K::KIND);
    // Again, with an object of only the fields that k8s-pb knows: nothing may be lost now.
    let (again, survived) = through_prost::<K, P>(&encode(&from_ours).unwrap());
    assert_eq!(survived, from_ours, "{}", K::KIND);
    assert_eq!(again, ours, "{}", K::KIND);
    true
}

/// Lists kinds by the path that they have in both crates.
macro_rules! check_kinds {
    ($corpus:ident, $checked:ident: $($api:ident :: $group:ident :: $version:ident :: { $($kind:ident),* $(,)? })*) => {
        $($(
            $checked += usize::from(check::<
                k8s_openapi::$api::$group::$version::$kind,
                k8s_pb::$api::$group::$version::$kind,
            >(&$corpus));
        )*)*
    };
}

#[test]
fn prost_and_this_crate_decode_each_others_bytes() {
    let corpus = corpus();
    let mut checked = 0;
    check_kinds! { corpus, checked:
        api::core::v1::{
            Pod, Service, Node, Secret, ConfigMap, Event, Endpoints, LimitRange, Namespace, PersistentVolume,
            PersistentVolumeClaim, PodTemplate, ReplicationController, ResourceQuota, ServiceAccount,
        }
        api::apps::v1::{Deployment, DaemonSet, StatefulSet, ReplicaSet, ControllerRevision}
        api::batch::v1::{Job, CronJob}
        api::coordination::v1::{Lease}
        api::networking::v1::{Ingress, IngressClass, NetworkPolicy}
        api::events::v1::{Event}
        api::discovery::v1::{EndpointSlice}
        api::policy::v1::{PodDisruptionBudget, Eviction}
        api::rbac::v1::{Role, RoleBinding, ClusterRole, ClusterRoleBinding}
        api::storage::v1::{StorageClass, CSINode, CSIDriver, VolumeAttachment, CSIStorageCapacity}
        api::autoscaling::v1::{HorizontalPodAutoscaler, Scale}
        api::autoscaling::v2::{HorizontalPodAutoscaler}
        api::certificates::v1::{CertificateSigningRequest}
        api::scheduling::v1::{PriorityClass}
        api::node::v1::{RuntimeClass}
        api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration}
        api::authentication::v1::{TokenReview, TokenRequest}
        api::authorization::v1::{SubjectAccessReview, SelfSubjectAccessReview}
        api::admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingWebhookConfiguration, ValidatingAdmissionPolicy,
        }
    }
    assert!(checked >= 45, "only {checked} kinds");
}

/// Returns a CRD that uses every feature of schemas.
fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "generation": 3},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "preserveUnknownFields": true,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["w"], "categories": ["all"]},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "caBundle": "Y2E=", "service": {"name": "hook", "namespace": "ns", "path": "/convert", "port": 443}}}},
            "versions": [
                {"name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
                    "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
                        "priority": 1}],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                    "schema": {"openAPIV3Schema": schema()}},
                {"name": "v1beta1", "served": false, "storage": false, "deprecated": true, "deprecationWarning": "old"},
            ],
        },
        "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}, "storedVersions": ["v1"],
            "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z",
                "reason": "InitialNamesAccepted", "message": "m"}]},
    })
}

fn schema() -> Value {
    json!({
        "type": "object", "description": "a widget", "title": "Widget", "required": ["spec"],
        "$schema": "http://json-schema.org/draft-04/schema#", "$ref": "#/x", "id": "i",
        "additionalProperties": false,
        "definitions": {"d": {"type": "string"}},
        "dependencies": {"a": ["b", "c"], "d": {"required": ["e"]}},
        "externalDocs": {"url": "https://example.com", "description": "docs"},
        "x-kubernetes-validations": [{"rule": "self.a > 0", "message": "m", "messageExpression": "'x'",
            "reason": "FieldValueInvalid", "fieldPath": ".a", "optionalOldSelf": true}],
        "properties": {
            "number": {"type": "number", "minimum": 0.5, "maximum": 1e10, "exclusiveMinimum": true, "multipleOf": 0.25,
                "format": "double", "default": 0.75, "example": 1},
            "text": {"type": "string", "pattern": "^[a-z]+$", "minLength": 0, "maxLength": 63, "enum": ["a", "b", null, 1],
                "default": "a", "nullable": true},
            "list": {"type": "array", "items": {"type": "integer", "format": "int64"}, "minItems": 0, "maxItems": 10,
                "uniqueItems": true, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "tuple": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": true},
            "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object",
                "properties": {"deep": {"type": "string", "default": {"a": [1, "x", {"b": false}]}}}}},
                "x-kubernetes-map-type": "atomic", "minProperties": 1, "maxProperties": 9},
            "open": {"type": "object", "additionalProperties": true, "x-kubernetes-preserve-unknown-fields": true},
            "quantity": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
            "logic": {"allOf": [{"not": {"type": "null"}}], "oneOf": [{"required": ["a"]}],
                "patternProperties": {"^x": {"type": "boolean"}}},
            "embedded": {"x-kubernetes-embedded-resource": true, "type": "object"},
        },
    })
}

#[test]
fn rich_crd_is_equal_in_prost_and_this_crate() {
    use k8s_pb::apiextensions_apiserver::pkg::apis::apiextensions::v1 as pb;

    let object: CustomResourceDefinition = serde_json::from_value(crd()).unwrap();
    let message = encode(&object).unwrap();
    assert_eq!(decode::<CustomResourceDefinition>(&message, ManagedFields::Keep).unwrap(), object);
    let (seen, again) = through_prost::<CustomResourceDefinition, pb::CustomResourceDefinition>(&message);
    assert_eq!(again, object);

    // Checks prost's view, so that an error in both directions does not cancel out.
    let spec = seen.spec.unwrap();
    let schema = spec.versions[0].schema.as_ref().unwrap().open_apiv3_schema.as_ref().unwrap();
    assert_eq!(schema.additional_properties.as_ref().unwrap().allows, Some(false));
    assert_eq!(schema.dependencies["a"].property, ["b", "c"]);
    assert_eq!(schema.dependencies["d"].schema.as_ref().unwrap().required, ["e"]);
    let map = schema.properties["map"].additional_properties.as_ref().unwrap();
    assert_eq!((map.allows, map.schema.as_ref().unwrap().r#type.as_deref()), (Some(true), Some("array")));
    let tuple = schema.properties["tuple"].items.as_ref().unwrap();
    assert_eq!((tuple.schema.is_none(), tuple.j_son_schemas.len()), (true, 2));
    assert!(schema.properties["list"].items.as_ref().unwrap().schema.is_some());
    // Go's `null` is JSON without bytes.
    assert_eq!(schema.properties["text"].r#enum[2].raw, None);
    assert_eq!(schema.properties["text"].default.as_ref().unwrap().raw.as_deref(), Some(b"\"a\"".as_slice()));
    assert_eq!(schema.properties["number"].minimum, Some(0.5));
    assert_eq!(schema.properties["text"].min_length, Some(0));
}

#[test]
fn paths_of_a_rich_crd_have_the_values_of_its_json() {
    let object: CustomResourceDefinition = serde_json::from_value(crd()).unwrap();
    let raw = RawObject::from_protobuf(&encode(&object).unwrap(), ManagedFields::Keep).unwrap();
    let mut expected = serde_json::to_value(&object).unwrap();
    assert_eq!(raw.to_value::<CustomResourceDefinition>().unwrap(), expected);
    let schema = "spec.versions[0].schema.openAPIV3Schema";
    let cases = [
        ("", "additionalProperties", Some(json!(false))),
        ("properties.number.", "minimum", Some(json!(0.5))),
        ("properties.map.", "additionalProperties.items.properties.deep.default.a[2].b", Some(json!(false))),
        ("properties.map.", "additionalProperties.type", Some(json!("array"))),
        ("properties.list.", "items.format", Some(json!("int64"))),
        ("properties.list.", "items[0].format", None),
        ("properties.tuple.", "items[1].type", Some(json!("integer"))),
        ("properties.tuple.", "items[1]", Some(json!({"type": "integer"}))),
        ("properties.tuple.", "items[2].type", None),
        ("properties.tuple.", "items.type", None),
        ("properties.tuple.", "items", Some(json!([{"type": "string"}, {"type": "integer"}]))),
        ("", "dependencies.a[1]", Some(json!("c"))),
        ("", "dependencies.a", Some(json!(["b", "c"]))),
        ("", "dependencies.d.required[0]", Some(json!("e"))),
        ("properties.text.", "enum[1]", Some(json!("b"))),
        ("properties.text.", "default", Some(json!("a"))),
        ("properties.open.", "additionalProperties.type", None),
        ("", "['$schema']", Some(json!("http://json-schema.org/draft-04/schema#"))),
    ];
    for (prefix, at, value) in cases {
        let at = path(&format!("{schema}.{prefix}{at}").replace(".[", "["));
        assert_eq!(raw.value_at::<CustomResourceDefinition>(&at).unwrap(), value, "{at}");
        without_nulls(&mut expected);
        let from_json = RawObject::from_json(expected.to_string().as_bytes(), ManagedFields::Keep).unwrap();
        assert_eq!(from_json.value_at::<CustomResourceDefinition>(&at).unwrap(), value, "{at} in JSON");
    }
}

#[test]
fn api_service_is_equal_in_prost_and_this_crate() {
    use k8s_pb::kube_aggregator::pkg::apis::apiregistration::v1 as pb;

    let object: APIService = serde_json::from_value(json!({
        "metadata": {"name": "v1.metrics.example.com", "labels": {"a": "b"}},
        "spec": {"group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 15,
            "caBundle": "Y2E=", "service": {"name": "metrics", "namespace": "kube-system", "port": 443}},
        "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Passed",
            "lastTransitionTime": "2025-01-01T00:00:00Z"}]},
    }))
    .unwrap();
    let message = encode(&object).unwrap();
    assert_eq!(decode::<APIService>(&message, ManagedFields::Keep).unwrap(), object);
    let (seen, again) = through_prost::<APIService, pb::APIService>(&message);
    assert_eq!(again, object);
    let spec = seen.spec.unwrap();
    assert_eq!((spec.group_priority_minimum, spec.version_priority), (Some(100), Some(15)));
    assert_eq!(spec.ca_bundle.as_deref(), Some(b"ca".as_slice()));
    let raw = RawObject::from_protobuf(&message, ManagedFields::Drop).unwrap();
    assert_eq!(raw.to_value::<APIService>().unwrap(), serde_json::to_value(&object).unwrap());
}
