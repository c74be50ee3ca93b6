//! Values at field paths, read from the bytes of either encoding, equal those in the parsed JSON.

use std::borrow::Cow;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret},
};
use klient_core::{FieldPath, PathSegment};
use klient_proto::{ManagedFields, RawObject, encode_body};
use serde_json::{Value, json};

use crate::{
    corpus::corpus,
    support::{Kind, POD_JSON, POD_PB, field, int_field, object_kinds, path, without_nulls},
};

/// Returns the value at a path of a parsed object.
fn lookup<'a>(mut value: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    for segment in path.segments() {
        value = match segment {
            PathSegment::Field(name) => value.as_object()?.get(name)?,
            PathSegment::Index(index) => value.as_array()?.get(*index)?,
        };
    }
    (!value.is_null()).then_some(value)
}

/// Returns the text of a scalar, as field selectors compare it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Compares one path of a raw object with the parsed JSON.
fn check(kind: &Kind, raw: &RawObject, json: &Value, at: &FieldPath) {
    let expected = lookup(json, at);
    let what = format!("{} {at} in {:?}", kind.kind, raw.encoding());
    assert_eq!((kind.value_at)(raw, at).unwrap().as_ref(), expected, "{what}");
    let found = (kind.text_at)(raw, at).unwrap().map(Cow::into_owned);
    assert_eq!(found, expected.and_then(text), "{what} as text");
}

/// Returns the path of every value inside another: scalars, lists, maps and messages.
fn all_paths(value: &Value, prefix: &str, into: &mut Vec<FieldPath>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (format!("{prefix}['{key}']"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (format!("{prefix}[{at}]"), item)).collect(),
        _ => return,
    };
    for (at, member) in members {
        into.push(path(&at));
        all_paths(member, &at, into);
    }
}

fn pod_in_both_forms() -> (Value, [RawObject; 2]) {
    let mut json: Value = serde_json::from_slice(POD_JSON).unwrap();
    without_nulls(&mut json);
    let raws = [
        RawObject::from_json(json.to_string().as_bytes(), ManagedFields::Keep).unwrap(),
        RawObject::from_protobuf_body(POD_PB, ManagedFields::Keep).unwrap(),
    ];
    (json, raws)
}

#[test]
fn paths_have_the_expected_text_in_both_encodings() {
    let (json, raws) = pod_in_both_forms();
    let cases = [
        ("spec.nodeName", Some("ip-10-0-7-7.eu-central-1.compute.internal")),
        (".status.phase", Some("Running")),
        ("metadata.name", Some("checkout-api-7d9c5b8f6d-00007")),
        ("metadata.labels['app.kubernetes.io/name']", Some("checkout-api")),
        ("spec.containers[1].name", Some("envoy-sidecar")),
        ("spec.containers[1].args[2]", Some("--zone=eu-central-1a")),
        // A volume source is a separate message in protobuf and part of the volume in JSON.
        ("spec.volumes[0].configMap.name", Some("checkout-api")),
        ("spec.volumes[1].projected.sources[1].configMap.items[0].path", Some("ca.crt")),
        ("spec.containers[0].livenessProbe.httpGet.path", Some("/healthz")),
        ("spec.containers[0].env[2].valueFrom.secretKeyRef.name", Some("checkout-api-db")),
        // Quantities, numbers or strings, times, booleans.
        ("spec.containers[0].resources.requests.cpu", Some("250m")),
        ("spec.containers[0].resources.limits['memory']", Some("512Mi")),
        ("spec.containers[0].livenessProbe.httpGet.port", Some("8080")),
        ("spec.containers[0].readinessProbe.httpGet.port", Some("http")),
        ("metadata.creationTimestamp", Some("2025-10-09T08:53:27Z")),
        ("status.startTime", Some("2025-10-09T08:53:27Z")),
        ("metadata.ownerReferences[0].controller", Some("true")),
        ("spec.containers[0].securityContext.allowPrivilegeEscalation", Some("false")),
        ("spec.terminationGracePeriodSeconds", Some("30")),
        ("metadata.managedFields[0].manager", Some("kube-controller-manager")),
        // A pointer to zero is set; a plain zero, which only protobuf contains, is not.
        ("spec.priority", Some("0")),
        ("spec.hostNetwork", None),
        ("spec.hostPID", None),
        ("metadata.generation", None),
        ("status.containerStatuses[0].restartCount", Some("0")),
        ("status.message", None),
        // Lists, maps and messages have no text.
        ("spec.containers", None),
        ("metadata.labels", None),
        ("spec.containers[0].resources.requests", None),
        ("spec.volumes[0].configMap", None),
        ("spec.securityContext", None),
        // Values that are absent.
        ("spec.containers[2].image", None),
        ("spec.containers[18446744073709551615]", None),
        ("metadata.labels.nope", None),
        ("spec.nodeName.deeper", None),
        ("spec.nodeName[0]", None),
        ("spec.containers.name", None),
        ("spec[0]", None),
        ("[0]", None),
        ("nope", None),
        ("spec.volumes[0].volumeSource.configMap.name", None),
        ("spec.initContainers", None),
    ];
    let kind = Kind::of::<Pod>();
    for (at, expected) in cases {
        for raw in &raws {
            let found = raw.text_at::<Pod>(&path(at)).unwrap();
            assert_eq!(found.as_deref(), expected, "{at} in {:?}", raw.encoding());
            check(&kind, raw, &json, &path(at));
        }
    }
}

#[test]
fn whole_lists_maps_and_messages_are_read_as_values() {
    let (json, raws) = pod_in_both_forms();
    for raw in &raws {
        let value_at = |at: &str| raw.value_at::<Pod>(&path(at)).unwrap();
        assert_eq!(value_at("status.podIPs"), Some(json!([{"ip": "10.42.7.19"}])));
        assert_eq!(value_at("spec.containers[0].resources.requests"), Some(json!({"cpu": "250m", "memory": "256Mi"})));
        assert_eq!(value_at("spec.volumes[0].configMap"), Some(json!({"name": "checkout-api", "defaultMode": 420})));
        assert_eq!(value_at("spec.securityContext"), Some(json!({})));
        assert_eq!(value_at("metadata.labels").as_ref(), json.pointer("/metadata/labels"));
        assert_eq!(value_at("spec.priority"), Some(json!(0)));
        assert_eq!(value_at("spec.containers[0].readinessProbe.httpGet.port"), Some(json!("http")));
        assert_eq!(value_at("spec.containers[0].livenessProbe.httpGet.port"), Some(json!(8080)));
        assert_eq!(value_at("spec.hostNetwork"), None);
    }
}

#[test]
fn paths_of_a_pod_have_equal_values_in_both_encodings() {
    let (json, raws) = pod_in_both_forms();
    let mut paths = Vec::new();
    all_paths(&json, "", &mut paths);
    let kind = Kind::of::<Pod>();
    // Type fields are not in the bytes.
    for at in paths.iter().filter(|at| !is_type(at)) {
        raws.iter().for_each(|raw| check(&kind, raw, &json, at));
    }
    assert!(paths.len() > 400, "only {} paths", paths.len());
}

fn is_type(at: &FieldPath) -> bool {
    at == &path("apiVersion") || at == &path("kind")
}

#[test]
fn paths_of_every_kind_have_the_values_of_its_json() {
    let corpus = corpus();
    let mut checked = 0;
    for kind in object_kinds() {
        let Some(entry) = corpus.get(&kind.key()) else { continue };
        let mut json = entry.json.clone();
        // Go's zero time is `null` in its JSON and absent in its protobuf; the corpus has the epoch for the typed test.
        if kind.kind == "PodDisruptionBudget" {
            json["status"]["disruptedPods"] = Value::Null;
        }
        without_nulls(&mut json);
        let from_pb = RawObject::from_protobuf_body(&entry.pb, ManagedFields::Keep).unwrap();
        let mut paths = Vec::new();
        all_paths(&json, "", &mut paths);
        for at in paths.iter().filter(|at| !is_type(at) && !passes_zero_time(&kind, at)) {
            check(&kind, &from_pb, &json, at);
            checked += 1;
        }
    }
    assert!(checked > 10_000, "only {checked} paths");
}

/// Returns whether a path is in the one map whose zero times are absent in JSON.
fn passes_zero_time(kind: &Kind, at: &FieldPath) -> bool {
    kind.kind == "PodDisruptionBudget" && at == &path("status")
}

#[test]
fn absent_fields_of_every_kind_have_no_value() {
    let corpus = corpus();
    for kind in object_kinds() {
        let Some(entry) = corpus.get(&kind.key()) else { continue };
        let raw = RawObject::from_protobuf_body(&entry.pb, ManagedFields::Drop).unwrap();
        for at in ["nope", "spec.nope", "status.nope.deeper", "metadata.managedFields", "metadata.labels.nope"] {
            assert_eq!((kind.value_at)(&raw, &path(at)).unwrap(), None, "{} {at}", kind.kind);
        }
    }
}

#[test]
fn bytes_are_base64_and_strings_are_unescaped() {
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "data": {"a.b": "aHVudGVyMg=="}})).unwrap();
    let config: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "c"}, "data": {"k": "line\n\"quoted\" ü"}, "immutable": false}),
    )
    .unwrap();
    let both = |body: Vec<u8>, json: Value| {
        [
            RawObject::from_protobuf_body(&body, ManagedFields::Drop).unwrap(),
            RawObject::from_json(json.to_string().as_bytes(), ManagedFields::Drop).unwrap(),
        ]
    };
    for raw in both(encode_body(&secret).unwrap(), serde_json::to_value(&secret).unwrap()) {
        assert_eq!(raw.text_at::<Secret>(&path("data['a.b']")).unwrap().as_deref(), Some("aHVudGVyMg=="));
    }
    for raw in both(encode_body(&config).unwrap(), serde_json::to_value(&config).unwrap()) {
        assert_eq!(raw.text_at::<ConfigMap>(&path("data.k")).unwrap().as_deref(), Some("line\n\"quoted\" ü"));
        // `immutable` is a pointer in Go, so false is a value.
        assert_eq!(raw.text_at::<ConfigMap>(&path("immutable")).unwrap().as_deref(), Some("false"));
    }
}

#[test]
fn value_of_another_type_than_the_field_is_an_error() {
    // `nodeName` (10) is a string, `priority` (25) a number, `labels` (11) are strings.
    let spec = |bytes: Vec<u8>| field(2, &bytes);
    let double = [vec![10 << 3 | 1], vec![1; 8]].concat();
    let label = field(1, &field(11, &[field(1, b"app"), int_field(2, 1)].concat()));
    let cases = [
        (spec(int_field(10, 7)), "spec.nodeName"),
        (spec(double), "spec.nodeName"),
        (spec(field(10, b"\xff")), "spec.nodeName"),
        (spec(field(25, b"7")), "spec.priority"),
        (label, "metadata.labels.app"),
    ];
    for (message, at) in cases {
        assert!(klient_proto::decode::<Pod>(&message, ManagedFields::Keep).is_err(), "{at}");
        let raw = RawObject::from_protobuf(&message, ManagedFields::Keep).unwrap();
        assert!(raw.value_at::<Pod>(&path(at)).is_err(), "{at}");
        assert!(raw.text_at::<Pod>(&path(at)).is_err(), "{at} as text");
    }
}

#[test]
fn null_is_nothing() {
    let raw =
        RawObject::from_json(br#"{"metadata":{"name":"a"},"spec":{"replicas":null}}"#, ManagedFields::Drop).unwrap();
    assert_eq!(raw.value_at::<Deployment>(&path("spec.replicas")).unwrap(), None);
    assert_eq!(raw.value_at::<Deployment>(&path("spec.replicas.x")).unwrap(), None);
}
