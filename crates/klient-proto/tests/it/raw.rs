//! Raw objects: metadata is equal in both encodings, managed fields are removed, contents are never printed.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::{
    Metadata as _,
    api::core::v1::{ConfigMap, Node, Pod, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient_core::PartialObjectMeta;
use klient_proto::{
    ManagedFields::{Drop, Keep},
    Problem, RawObject, encode, encode_body,
    meta::PartialObjectMetadata,
    raw::{Encoding, Identity},
};
use serde_json::{Value, json};

use crate::{
    corpus::corpus,
    support::{POD_JSON, POD_PB, field, int_field, object_kinds, path},
};

/// Compares every accessor with decoded metadata.
fn check(raw: &RawObject, expected: &ObjectMeta, what: &str) {
    let what = format!("{what} in {:?}", raw.encoding());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let identity = raw.identity();
    assert_eq!(raw.name(), text(&expected.name), "{what}");
    assert_eq!(raw.namespace().as_deref(), expected.namespace.as_deref(), "{what}");
    assert_eq!(raw.uid().as_deref(), expected.uid.as_deref(), "{what}");
    assert_eq!(raw.resource_version().as_deref(), expected.resource_version.as_deref(), "{what}");
    assert_eq!(identity.name, text(&expected.name), "{what}");
    assert_eq!(identity.namespace, text(&expected.namespace), "{what}");
    assert_eq!(identity.uid, text(&expected.uid), "{what}");
    assert_eq!(identity.resource_version, text(&expected.resource_version), "{what}");
    assert_eq!(raw.key().name(), text(&expected.name), "{what}");
    assert_eq!(raw.key().namespace().unwrap_or_default(), text(&expected.namespace), "{what}");
    assert_eq!(raw.generation(), expected.generation, "{what}");
    assert_eq!(raw.creation_timestamp(), expected.creation_timestamp.as_ref().map(|time| time.0), "{what}");
    assert_eq!(raw.deletion_timestamp(), expected.deletion_timestamp.as_ref().map(|time| time.0), "{what}");
    let owned = |entries: klient_proto::raw::MetadataEntries<'_>| -> BTreeMap<String, String> {
        entries.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
    };
    assert_eq!(owned(raw.labels()), expected.labels.clone().unwrap_or_default(), "{what}");
    assert_eq!(owned(raw.annotations()), expected.annotations.clone().unwrap_or_default(), "{what}");
    for (key, value) in expected.labels.iter().flatten() {
        assert_eq!(raw.label(key).as_deref(), Some(value.as_str()), "{what}");
    }
    for (key, value) in expected.annotations.iter().flatten() {
        assert_eq!(raw.annotation(key).as_deref(), Some(value.as_str()), "{what}");
    }
    assert_eq!(raw.label("nope"), None, "{what}");
    let owners: Vec<_> = raw.owner_references().collect();
    assert_eq!(owners, expected.owner_references.clone().unwrap_or_default(), "{what}");
    let finalizers: Vec<_> = raw.finalizers().map(Cow::into_owned).collect();
    assert_eq!(finalizers, expected.finalizers.clone().unwrap_or_default(), "{what}");
}

#[test]
fn accessors_of_a_pod_agree_in_both_encodings() {
    let typed: Pod = klient_proto::decode_body(POD_PB).unwrap();
    assert_eq!(typed, serde_json::from_slice::<Pod>(POD_JSON).unwrap());
    for managed_fields in [Keep, Drop] {
        check(&RawObject::from_protobuf_body(POD_PB, managed_fields).unwrap(), &typed.metadata, "pod");
        check(&RawObject::from_json(POD_JSON, managed_fields).unwrap(), &typed.metadata, "pod");
    }
    let raw = RawObject::from_json(POD_JSON, Drop).unwrap();
    assert_eq!(raw.key().to_string(), "shop-07/checkout-api-7d9c5b8f6d-00007");
    assert_eq!(raw.label("pod-template-hash").as_deref(), Some("7d9c5b8f6d"));
}

#[test]
fn accessors_of_every_kind_agree_in_both_encodings() {
    let corpus = corpus();
    let mut checked = 0;
    for kind in object_kinds() {
        let Some(entry) = corpus.get(&kind.key()) else { continue };
        for managed_fields in [Keep, Drop] {
            let from_pb = RawObject::from_protobuf_body(&entry.pb, managed_fields).unwrap();
            let from_json = RawObject::from_json(entry.json.to_string().as_bytes(), managed_fields).unwrap();
            let mut expected: ObjectMeta = serde_json::from_value(entry.json["metadata"].clone()).unwrap();
            check(&from_pb, &expected, kind.kind);
            check(&from_json, &expected, kind.kind);
            if managed_fields == Drop {
                expected.managed_fields = None;
            }
            assert_eq!((kind.metadata)(&from_pb).unwrap(), expected, "{}", kind.kind);
            assert_eq!((kind.metadata)(&from_json).unwrap(), expected, "{}", kind.kind);
        }
        checked += 1;
    }
    assert!(checked > 80, "only {checked} kinds");
}

#[test]
fn dropping_managed_fields_changes_nothing_else() {
    let corpus = corpus();
    for kind in object_kinds() {
        let Some(entry) = corpus.get(&kind.key()) else { continue };
        let text = entry.json.to_string();
        let mut expected = (kind.through_type)(&RawObject::from_json(text.as_bytes(), Keep).unwrap()).unwrap();
        let removed = expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert!(removed.is_some(), "{} has managed fields in the corpus", kind.kind);
        for raw in [RawObject::from_json(text.as_bytes(), Drop), RawObject::from_protobuf_body(&entry.pb, Drop)] {
            assert_eq!((kind.through_type)(&raw.unwrap()).unwrap(), expected, "{}", kind.kind);
        }
    }
}

#[test]
fn managed_fields_are_dropped_at_any_position_of_json() {
    let managed = r#"[{"manager":"a \"}]{[\\","fieldsV1":{"f:x":{"k:{\"n\":1}":{}}}},{}]"#;
    let cases = [
        format!(r#"{{"metadata":{{"managedFields":{managed},"name":"a","uid":"u"}},"spec":{{}}}}"#),
        format!(r#"{{"metadata":{{"name":"a","managedFields":{managed},"uid":"u"}},"spec":{{}}}}"#),
        format!(r#"{{"metadata":{{"name":"a","uid":"u","managedFields":{managed}}},"spec":{{}}}}"#),
        format!(r#"{{"metadata":{{"managedFields":{managed}}},"spec":{{}}}}"#),
        format!("{{\n \"metadata\" : {{ \"managedFields\"\t:\r\n {managed} ,\n \"name\" : \"a\" }} , \"x\":1}}\n"),
        format!(" {{ \"metadata\" : {{ \"name\" : \"a\" \n,\t\"managedFields\" : {managed} \n}} }} "),
        format!("{{\"metadata\": {{ \"managedFields\" : {managed} }} }}"),
        format!(r#"{{"metadata":{{"name":"a","m\u0061naged\u0046ields":{managed},"uid":"u"}}}}"#),
        format!(r#"{{"m\u0065tadata":{{"n\u0061me":"\u0061","managedFields":{managed}}}}}"#),
        r#"{"metadata":{"name":"a","managedFields":null}}"#.to_owned(),
        r#"{"metadata":{"name":"a","managedFields":[]},"kind":"X"}"#.to_owned(),
        r#"{"spec":{"metadata":{"managedFields":[1]}},"metadata":{"managedFields":[],"name":"a"}}"#.to_owned(),
    ];
    for text in cases {
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(RawObject::from_json(text.as_bytes(), Keep).unwrap().bytes(), text.trim().as_bytes());
        expected["metadata"].as_object_mut().unwrap().remove("managedFields").unwrap();
        let raw = RawObject::from_json(text.as_bytes(), Drop).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(raw.bytes()).unwrap(), expected, "{text}");
        assert_eq!(raw.name(), expected["metadata"]["name"].as_str().unwrap_or_default(), "{text}");
        assert_eq!(raw.uid().as_deref(), expected["metadata"]["uid"].as_str(), "{text}");
    }
}

#[test]
fn only_the_managed_fields_of_the_metadata_are_dropped() {
    let text = r#"{"metadata":{"annotations":{"managedFields":"mine"},"name":"a"},"spec":{"managedFields":[1]}}"#;
    assert_eq!(RawObject::from_json(text.as_bytes(), Drop).unwrap().bytes(), text.as_bytes());
    // Field 17 of another message than the metadata.
    let message = [field(1, &field(1, b"a")), field(17, b"kept"), field(2, &field(17, b"kept"))].concat();
    assert_eq!(RawObject::from_protobuf(&message, Drop).unwrap().bytes(), message);
}

#[test]
fn protobuf_without_managed_fields_is_exact() {
    let name = field(1, b"web-0");
    let labels = field(11, &[field(1, b"app"), field(2, b"web")].concat());
    let managed = field(17, &field(1, &[b'x'; 300]));
    let spec = field(2, &field(10, b"node-7"));
    // One, two around others, and none; before and after the rest of the message.
    let cases = [
        (vec![&name, &managed, &labels], vec![&name, &labels]),
        (vec![&managed, &name, &managed, &labels, &managed], vec![&name, &labels]),
        (vec![&managed], vec![]),
        (vec![&name], vec![&name]),
        (vec![], vec![]),
    ];
    for (fields, kept) in cases {
        let join = |fields: Vec<&Vec<u8>>| field(1, &fields.into_iter().flatten().copied().collect::<Vec<u8>>());
        let (before, after) = (join(fields), join(kept));
        let raw = RawObject::from_protobuf(&[before.clone(), spec.clone()].concat(), Drop).unwrap();
        assert_eq!(raw.bytes(), [after.clone(), spec.clone()].concat(), "exactly what is left");
        let raw = RawObject::from_protobuf(&[spec.clone(), before.clone()].concat(), Drop).unwrap();
        assert_eq!(raw.bytes().len(), after.len() + spec.len(), "exactly as large as what is left");
        assert_eq!(raw.decode::<Pod>().unwrap().spec.unwrap().node_name.as_deref(), Some("node-7"));
        let raw = RawObject::from_protobuf(&[before.clone(), spec.clone()].concat(), Keep).unwrap();
        assert_eq!(raw.bytes(), [before, spec.clone()].concat());
    }
}

#[test]
fn json_without_managed_fields_is_exact() {
    let cases = [
        (r#"{"metadata":{"managedFields":[1],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"uid":"u","managedFields":[1],"name":"a"}}"#, r#"{"metadata":{"uid":"u","name":"a"}}"#),
        (r#"{"metadata":{"name":"a","managedFields":[1]}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"managedFields":[1]}}"#, r#"{"metadata":{}}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(RawObject::from_json(text.as_bytes(), Drop).unwrap().bytes(), expected.as_bytes());
    }
}

#[test]
fn several_metadata_fields_are_merged() {
    let label = |value: &[u8]| field(11, &[field(1, b"app"), field(2, value)].concat());
    let managed = field(17, &field(1, b"kubelet"));
    let cases = [
        // Each part has its own fields.
        vec![[field(1, b"a"), managed.clone()].concat(), [field(3, b"ns"), label(b"x"), field(14, b"f1")].concat()],
        vec![vec![], [field(1, b"a"), managed.clone(), int_field(7, 4)].concat(), field(6, b"12")],
        // The last duplicate wins, and lists grow.
        vec![[field(1, b"a"), field(3, b"x"), field(5, b"u"), field(6, b"1")].concat(), field(1, b"b"), field(6, b"2")],
        vec![[field(1, b"a"), field(1, b"b"), field(1, b"c"), field(1, b"d"), field(3, b"ns")].concat()],
        vec![[label(b"old"), int_field(7, 1)].concat(), [label(b"new"), int_field(7, 2)].concat()],
        vec![[field(14, b"f1"), int_field(7, 1)].concat(), [field(14, b"f2"), int_field(7, 0)].concat()],
    ];
    for parts in cases {
        // The rest of the message is in between.
        let spec = field(2, &field(10, b"node-7"));
        let message: Vec<u8> = parts.iter().flat_map(|part| [field(1, part), spec.clone()].concat()).collect();
        let mut typed: Pod = klient_proto::decode(&message, Keep).unwrap();
        let raw = RawObject::from_protobuf(&message, Keep).unwrap();
        check(&raw, &typed.metadata, "merged");
        assert_eq!(raw.decode::<Pod>().unwrap(), typed);

        typed.metadata.managed_fields = None;
        let raw = RawObject::from_protobuf(&message, Drop).unwrap();
        check(&raw, &typed.metadata, "merged");
        assert_eq!(raw.decode::<Pod>().unwrap(), typed);
        assert_eq!(klient_proto::decode::<Pod>(&message, Drop).unwrap(), typed);
    }
}

#[test]
fn unknown_fields_are_kept_raw_and_skipped_when_decoding() {
    // Numbers that a pod does not have, of every wire type; the last is a group.
    let unknown = [
        field(900, b"from the future"),
        int_field(901, u64::MAX),
        [vec![0xb1, 0x38], vec![1; 8]].concat(),
        [vec![0xb5, 0x38], vec![1; 4]].concat(),
        [vec![0xbb, 0x38], int_field(1, 5), vec![0xbb, 0x38], vec![0xbc, 0x38], vec![0xbc, 0x38]].concat(),
    ];
    let known = field(1, &field(1, b"web-0"));
    for unknown in unknown {
        let metadata = field(1, &[field(1, b"web-0"), unknown.clone(), field(17, b"")].concat());
        let message = [metadata, unknown.clone()].concat();
        let raw = RawObject::from_protobuf(&message, Drop).unwrap();
        assert_eq!(raw.bytes(), [field(1, &[field(1, b"web-0"), unknown.clone()].concat()), unknown].concat());
        assert_eq!(raw.decode::<Pod>().unwrap(), klient_proto::decode::<Pod>(&known, Keep).unwrap());
    }
    let raw = RawObject::from_json(br#"{"metadata":{"name":"web-0","future":{"a":1}},"future":[2]}"#, Drop).unwrap();
    assert_eq!(raw.bytes(), br#"{"metadata":{"name":"web-0","future":{"a":1}},"future":[2]}"#);
    assert_eq!(raw.decode::<ConfigMap>().unwrap().metadata.name.as_deref(), Some("web-0"));
}

#[test]
fn debug_never_prints_contents() {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "db", "namespace": "shop", "resourceVersion": "7", "annotations": {"note": "hunter2"}},
        "data": {"password": "aHVudGVyMg=="}, "stringData": {"plain": "hunter2"},
    }))
    .unwrap();
    let text = serde_json::to_vec(&secret).unwrap();
    for raw in [
        RawObject::from_protobuf_body(&encode_body(&secret).unwrap(), Keep).unwrap(),
        RawObject::from_json(&text, Keep).unwrap(),
    ] {
        let printed = format!("{raw:?} {raw:#?}");
        assert!(printed.contains("shop") && printed.contains("db") && printed.contains('7'), "{printed}");
        for hidden in ["hunter2", "aHVudGVyMg", "password", "104, 117"] {
            assert!(!printed.contains(hidden), "{printed}");
        }
    }
}

#[test]
fn errors_never_contain_contents() {
    let texts = [
        r#"{"metadata":{"name":"db"},"data":"hunter2"}"#,
        r#"{"metadata":{"name":"db"},"data":{"password":"hunter2!"}}"#,
        r#"{"metadata":{"name":"db"},"data":{"password":"hunter2, expected hunter2"}}"#,
        r#"{"metadata":{"name":"db"},"data":["hunter2, expected hunter2"]}"#,
        r#"{"metadata":{"name":"db"},"immutable":"hunter2"}"#,
        r#"{"metadata":{"name":"db","creationTimestamp":"hunter2"}}"#,
        r#"{"metadata":{"name":"db"},"data":{"password":hunter2}}"#,
        r#"{"metadata":{"name":"db"},"data":{"password":"hunter2"#,
        r#"{"metadata":{"name":"db"},"kind":"hunter2"}"#,
    ];
    for text in texts {
        let raw = RawObject::from_json(text.as_bytes(), Keep).unwrap();
        let error = raw.decode::<Secret>().unwrap_err();
        let printed = format!("{error} {error:?} {:?}", error.problem());
        assert!(matches!(error.problem(), Problem::Json(_)), "{printed}");
        assert!(!printed.contains("hunter2"), "{printed}");
    }
    // The problem and the position are still reported.
    let raw = RawObject::from_json(br#"{"metadata":{"name":"db"},"immutable":"hunter2"}"#, Keep).unwrap();
    let error = raw.decode::<Secret>().unwrap_err().to_string();
    assert!(error.contains("expected a boolean") && error.contains("column"), "{error}");
}

#[test]
fn cluster_scoped_objects_have_keys_without_namespace() {
    let node =
        Node { metadata: ObjectMeta { name: Some("node-1".into()), ..Default::default() }, ..Default::default() };
    let go_form = [field(1, &[field(1, b"node-1"), field(2, b""), field(3, b"")].concat()), field(2, b"")].concat();
    for raw in [
        RawObject::from_protobuf(&encode(&node).unwrap(), Drop).unwrap(),
        RawObject::from_protobuf(&go_form, Drop).unwrap(),
        RawObject::from_json(&serde_json::to_vec(&node).unwrap(), Drop).unwrap(),
        RawObject::from_json(br#"{"metadata":{"name":"node-1","namespace":""}}"#, Drop).unwrap(),
        RawObject::from_json(br#"{"metadata":{"name":"node-1","namespace":null}}"#, Drop).unwrap(),
    ] {
        assert_eq!(raw.key().to_string(), "node-1");
        assert_eq!((raw.namespace(), raw.key().namespace()), (None, None));
    }
}

#[test]
fn metadata_only_object_decodes_into_a_partial_object() {
    let pod: Pod = klient_proto::decode_body(POD_PB).unwrap();
    let body = klient_proto::meta::encode("meta.k8s.io/v1", &PartialObjectMetadata { metadata: pod.metadata.clone() });
    let raw = RawObject::from_protobuf_body(&body, Keep).unwrap();
    assert_eq!(raw.encoding(), Encoding::ProtobufMetadata);
    check(&raw, &pod.metadata, "partial");
    assert_eq!(raw.decode::<PartialObjectMeta<Pod>>().unwrap().metadata(), &pod.metadata);
    assert_eq!(raw.decode::<PartialObjectMeta<klient_core::DynamicObject>>().unwrap().metadata(), &pod.metadata);
    let at = path("metadata.labels['app.kubernetes.io/name']");
    assert_eq!(raw.text_at::<PartialObjectMeta<Pod>>(&at).unwrap().as_deref(), Some("checkout-api"));
    assert_eq!(raw.value_at::<PartialObjectMeta<Pod>>(&path("spec.nodeName")).unwrap(), None);
    assert_eq!(
        raw.to_value::<PartialObjectMeta<Pod>>().unwrap()["metadata"],
        serde_json::to_value(&pod.metadata).unwrap()
    );
    let dropped = RawObject::from_protobuf_body(&body, Drop).unwrap();
    assert_eq!(dropped.decode::<PartialObjectMeta<Pod>>().unwrap().metadata.managed_fields, None);

    let text = serde_json::to_vec(&PartialObjectMeta::<Pod>::new(pod.metadata.clone())).unwrap();
    let raw = RawObject::from_json(&text, Keep).unwrap();
    assert_eq!(raw.decode::<PartialObjectMeta<Pod>>().unwrap().metadata, pod.metadata);
}

#[test]
fn object_without_metadata_has_no_name_and_decodes() {
    let raws = [
        RawObject::from_json(b"{}", Drop),
        RawObject::from_json(b"  { }\n", Drop),
        RawObject::from_json(br#"{"metadata":null,"data":{}}"#, Drop),
        RawObject::from_json(br#"{"data":{"metadata":"no"}}"#, Drop),
        RawObject::from_protobuf(b"", Drop),
        RawObject::from_protobuf(&field(1, b""), Drop),
        RawObject::from_protobuf(&field(2, &[field(1, b"k"), field(2, b"v")].concat()), Drop),
    ];
    for raw in raws {
        let raw = raw.unwrap();
        check(&raw, &ObjectMeta::default(), "nothing");
        assert_eq!(raw.decode::<ConfigMap>().unwrap().metadata, ObjectMeta::default());
    }
}

#[test]
fn malformed_identity_is_an_error_and_not_an_empty_name() {
    let texts = [
        r#"{"metadata":{"name":7}}"#,
        r#"{"metadata":{"name":"a","uid":{}}}"#,
        r#"{"metadata":{"name":"\q"}}"#,
        r#"{"metadata":{"name":"a" "uid":"b"}}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":"name"}"#,
        r#"["metadata"]"#,
        "null",
        "",
        r#"{"metadata":{"name":"a""#,
    ];
    for text in texts {
        assert!(RawObject::from_json(text.as_bytes(), Drop).is_err(), "{text}");
        assert!(RawObject::from_json(text.as_bytes(), Keep).is_err(), "{text}");
    }
    let messages = [
        field(1, &field(1, b"\xff")),
        field(1, &field(6, b"\xc3\x28")),
        field(1, &int_field(1, 5)),
        int_field(1, 5),
        field(1, &[0x0a, 0x05, b'a']),
        [field(1, &field(1, b"a")), vec![0x12, 0x05]].concat(),
        [field(1, &field(1, b"a")), field(1, &field(3, b"\xff"))].concat(),
    ];
    for message in messages {
        for managed_fields in [Keep, Drop] {
            assert!(RawObject::from_protobuf(&message, managed_fields).is_err(), "{message:?}");
        }
    }
}

#[test]
fn identity_is_read_from_plain_bytes() {
    let pod: Pod = klient_proto::decode_body(POD_PB).unwrap();
    let message = encode(&pod).unwrap();
    let name = pod.metadata.name.as_deref().unwrap();
    assert_eq!(Identity::of_protobuf(&message).name, name);
    assert_eq!(Identity::of_json(POD_JSON).name, name);
    assert_eq!(Identity::of_json(POD_JSON), Identity::of_protobuf(&message));
    assert_eq!(Identity::of_json(b"nonsense"), Identity::default());
    assert_eq!(Identity::of_protobuf(b"\xff\xff"), Identity::default());
}

#[test]
fn clones_share_their_bytes() {
    let raw = RawObject::from_json(POD_JSON, Drop).unwrap();
    assert!(std::ptr::eq(raw.bytes(), raw.clone().bytes()));
    // A cache contains many raw objects, so their size matters: two words for the bytes, and little for the rest.
    assert!(size_of::<RawObject>() <= 32);
}
