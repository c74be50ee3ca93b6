//! Conversion of protobuf to JSON without the Rust type gives the JSON of Go's encoder for the same object.

use k8s_openapi::api::core::v1::Pod;
use klient_proto::{Codec, ManagedFields, RawObject};
use serde_json::Value;

use crate::{
    corpus::corpus,
    support::{POD_JSON, POD_PB, object_kinds, without_nulls},
};

/// Compares without `null` members: Go writes them for some empty lists and times, but protobuf has none.
fn check(found: &Value, json: &Value, what: &str) {
    let mut expected = json.clone();
    without_nulls(&mut expected);
    assert_eq!(found, &expected, "{what}");
}

#[test]
fn pod_converts_to_the_json_of_go() {
    let json: Value = serde_json::from_slice(POD_JSON).unwrap();
    let raw = RawObject::from_protobuf_body(POD_PB, ManagedFields::Keep).unwrap();
    check(&raw.to_value::<Pod>().unwrap(), &json, "protobuf");
    // A raw object in JSON is parsed unchanged, nulls included.
    let raw = RawObject::from_json(POD_JSON, ManagedFields::Keep).unwrap();
    assert_eq!(raw.to_value::<Pod>().unwrap(), json);
}

#[test]
fn every_kind_converts_to_the_json_of_go() {
    let corpus = corpus();
    let mut checked = 0;
    for kind in object_kinds() {
        let Some(entry) = corpus.get(&kind.key()) else { continue };
        let raw = RawObject::from_protobuf_body(&entry.pb, ManagedFields::Keep).unwrap();
        let mut found = (kind.to_value)(&raw).unwrap();
        // The corpus has the epoch for Go's zero time, which is absent in protobuf.
        if kind.kind == "PodDisruptionBudget" {
            found["status"]["disruptedPods"] = entry.json["status"]["disruptedPods"].clone();
        }
        check(&found, &entry.json, kind.kind);
        let dynamic = raw.to_value_of(Codec::find(kind.api_version, kind.kind), kind.api_version, kind.kind).unwrap();
        assert_eq!(dynamic["metadata"], found["metadata"], "{}", kind.kind);
        checked += 1;
    }
    assert!(checked > 80, "only {checked} kinds");
}

#[test]
fn kind_and_version_are_added_but_never_replaced() {
    let cases = [
        (r#"{"metadata":{}}"#, "v1", "Pod"),
        (r#"{"apiVersion":"x/v1","kind":"Other","metadata":{}}"#, "x/v1", "Other"),
        (r#"{"kind":"Other","metadata":{}}"#, "v1", "Other"),
    ];
    for (text, api_version, kind) in cases {
        let raw = RawObject::from_json(text.as_bytes(), ManagedFields::Drop).unwrap();
        let value = raw.to_value::<Pod>().unwrap();
        assert_eq!((value["apiVersion"].as_str(), value["kind"].as_str()), (Some(api_version), Some(kind)), "{text}");
    }
}

#[test]
fn kind_without_codec_is_an_error_with_its_name() {
    let raw = RawObject::from_protobuf_body(POD_PB, ManagedFields::Drop).unwrap();
    let error = raw.to_value_of(None, "example.com/v1", "Widget").unwrap_err();
    assert_eq!(error.to_string(), "example.com/v1 Widget has no protobuf codec: use JSON at byte 0");
}
