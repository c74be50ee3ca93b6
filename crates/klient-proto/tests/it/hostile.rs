//! Hostile input: no bytes cause a panic, a stack overflow or disproportionate memory, and errors name the field.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use klient_core::WatchEvent;
use klient_proto::{
    DecodeError, Envelope, ListSplitter, ManagedFields, Problem, RawObject, SplitOptions, WatchSplitter, decode,
    decode_body, decode_list_body, encode, encode_body, encode_watch_frame,
};
use serde_json::json;

use crate::support::{POD_JSON, POD_PB, field, int_field, path, varint};

/// Uses every method of a raw object. Only panics matter.
fn use_raw(raw: Result<RawObject, DecodeError>) {
    let Ok(raw) = raw else { return };
    let _ = (raw.key(), raw.identity(), raw.generation(), raw.creation_timestamp(), raw.deletion_timestamp());
    let _ = (raw.labels().count(), raw.annotations().count(), raw.owner_references().count(), raw.finalizers().count());
    let _ = (raw.label("app"), raw.annotation("a"), format!("{raw:?}"));
    for at in
        ["metadata.name", "metadata.labels", "spec.containers[1].image", "spec.volumes[0].configMap.name", "status"]
    {
        let _ = (raw.value_at::<Pod>(&path(at)), raw.text_at::<Pod>(&path(at)));
    }
    let _ = (raw.to_value::<Pod>(), raw.decode::<Pod>());
}

/// Passes bytes to every public entry point.
pub(crate) fn use_everywhere(bytes: &[u8]) {
    for managed_fields in [ManagedFields::Keep, ManagedFields::Drop] {
        let _ = decode::<Pod>(bytes, managed_fields);
        use_raw(RawObject::from_protobuf(bytes, managed_fields));
        use_raw(RawObject::from_protobuf_body(bytes, managed_fields));
        use_raw(RawObject::from_json(bytes, managed_fields));
    }
    let _ = (decode_body::<Pod>(bytes), decode_list_body::<Pod>(bytes), Envelope::open(bytes).is_ok());
    let _ = klient_proto::meta::decode::<klient_proto::meta::ListOptions>(bytes);
    for mut list in [ListSplitter::json(SplitOptions::default()), ListSplitter::protobuf(SplitOptions::default())] {
        let _ = list.push(bytes, use_raw);
        let _ = list.finish();
    }
    for mut watch in [WatchSplitter::json(SplitOptions::default()), WatchSplitter::protobuf(SplitOptions::default())] {
        let _ = watch.push(bytes, |event| {
            if let Some(object) = event.as_ref().ok().and_then(WatchEvent::object) {
                use_raw(Ok(object.clone()));
            }
        });
        let _ = watch.finish();
    }
}

/// Returns a pod with every type of field in a few hundred bytes.
fn small_pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2025-01-01T00:00:00Z", "labels": {"app": "x"}, "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}],
            "managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}]},
        "spec": {"nodeName": "n", "priority": -1, "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"cpu": "1"}}, "livenessProbe": {"tcpSocket": {"port": "http"}}}],
            "volumes": [{"name": "v", "configMap": {"name": "m", "defaultMode": 420}}]},
        "status": {"phase": "Running", "startTime": "1969-12-31T23:59:59Z"},
    }))
    .unwrap()
}

#[test]
fn every_truncation_is_an_error_or_a_prefix() {
    let envelope = Envelope::open(POD_PB).unwrap();
    let mut ends = 0;
    for len in 0..envelope.raw.len() {
        // A message that ends between two of its outermost fields is valid; anywhere else it is not.
        let outcome = decode::<Pod>(&envelope.raw[..len], ManagedFields::Keep);
        ends += usize::from(outcome.is_ok());
        assert_eq!(
            RawObject::from_protobuf(&envelope.raw[..len], ManagedFields::Drop).is_ok(),
            outcome.is_ok(),
            "{len}"
        );
    }
    assert_eq!(ends, 3, "nothing, metadata, and metadata with spec");
    let enveloped: Vec<usize> = (0..POD_PB.len()).filter(|len| decode_body::<Pod>(&POD_PB[..*len]).is_ok()).collect();
    assert_eq!(enveloped, [POD_PB.len() - 4, POD_PB.len() - 2], "only the two empty fields at the end may be missing");
}

#[test]
fn truncated_json_is_an_error_when_decoded() {
    for len in (0..POD_JSON.len()).step_by(37).chain(POD_JSON.len() - 50..POD_JSON.len()) {
        use_raw(RawObject::from_json(&POD_JSON[..len], ManagedFields::Drop));
        if let Ok(raw) = RawObject::from_json(&POD_JSON[..len], ManagedFields::Keep) {
            assert!(raw.decode::<Pod>().is_err() && raw.to_value::<Pod>().is_err(), "{len}");
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    let pod = small_pod();
    let body = encode_body(&pod).unwrap();
    let message = encode(&pod).unwrap();
    let frame = encode_watch_frame("ADDED", &body);
    let text = serde_json::to_vec(&pod).unwrap();
    let list =
        klient_proto::encode_list_body("v1", "PodList", &Default::default(), std::iter::once(message.as_slice()));
    assert!(message.len() < 400 && decode::<Pod>(&message, ManagedFields::Keep).is_ok());
    let interesting = [0x00, 0x01, 0x7f, 0x80, 0xff, 0x0b, 0x0c, b'"', b'\\', b'{', b']'];
    for bytes in [message, body, frame, text, list] {
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            for value in interesting.into_iter().chain((0..8).map(|bit| bytes[at] ^ 1 << bit)) {
                // A quarter of the combinations, another quarter at every byte.
                if (at + usize::from(value)) % 4 == 0 {
                    changed[at] = value;
                    use_everywhere(&changed);
                }
            }
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    // `not` is field 28 of a schema: messages nested ten thousand deep.
    let mut schema = field(5, b"string");
    for _ in 0..10_000 {
        schema = field(28, &schema);
    }
    let version = field(4, &field(1, &schema));
    let crd = field(2, &field(7, &version));
    let error = decode::<CustomResourceDefinition>(&crd, ManagedFields::Keep).unwrap_err();
    assert_eq!(*error.problem(), Problem::TooDeep);
    let raw = RawObject::from_protobuf(&crd, ManagedFields::Drop).unwrap();
    assert_eq!(*raw.to_value::<CustomResourceDefinition>().unwrap_err().problem(), Problem::TooDeep);
    let at = path("spec.versions[0].schema");
    assert_eq!(*raw.value_at::<CustomResourceDefinition>(&at).unwrap_err().problem(), Problem::TooDeep);
    let at = path(&format!("spec.versions[0].schema.openAPIV3Schema{}.type", ".not".repeat(10_000)));
    assert_eq!(raw.text_at::<CustomResourceDefinition>(&at).unwrap().as_deref(), Some("string"));

    // A schema of ordinary depth is valid, also through map entries and either-or messages.
    let mut schema = json!({"type": "string"});
    for _ in 0..15 {
        schema = json!({"properties": {"a": schema}, "items": {"type": "object"}});
    }
    let crd = crd_with_schema(&schema);
    assert_eq!(decode::<CustomResourceDefinition>(&encode(&crd).unwrap(), ManagedFields::Keep).unwrap(), crd);
}

fn crd_with_schema(schema: &serde_json::Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}))
    .unwrap()
}

#[test]
fn deeply_nested_json_is_an_error_when_decoded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let text = format!(r#"{{"metadata":{{"name":"a","x":{nested},"managedFields":[]}},"spec":{nested}}}"#);
        let raw = RawObject::from_json(text.as_bytes(), ManagedFields::Drop).unwrap();
        assert_eq!(raw.name(), "a");
        // A list in place of the spec is an error; an unknown member of it is skipped without recursion.
        assert_eq!(raw.decode::<Pod>().is_err(), open == "[");
        assert!(raw.to_value::<Pod>().is_err());
        assert!(raw.value_at::<Pod>(&path("spec")).is_err());
        assert_eq!(raw.text_at::<Pod>(&path("spec.a.a.a")).unwrap(), None);
        let list = format!(r#"{{"kind":"PodList","items":[{text}]}}"#);
        let mut splitter = ListSplitter::json(SplitOptions::default());
        splitter.push(list.as_bytes(), |item| assert_eq!(item.unwrap().name(), "a")).unwrap();
        assert_eq!(splitter.finish().unwrap().items, 1);
        // JSON inside protobuf.
        let managed = field(17, &field(7, &field(1, nested.as_bytes())));
        let message = field(1, &managed);
        assert!(matches!(decode::<Pod>(&message, ManagedFields::Keep).unwrap_err().problem(), Problem::Json(_)));
        assert!(decode::<Pod>(&message, ManagedFields::Drop).is_ok());
    }
}

#[test]
fn huge_length_is_an_error_and_reserves_nothing() {
    for len in [u64::MAX, u64::MAX - 1, 1 << 63, u64::from(u32::MAX), 1 << 40] {
        let announced = |key: u8| [vec![key], varint(len), vec![1, 2, 3]].concat();
        for message in [announced(0x0a), field(1, &announced(0x0a)), field(2, &announced(0x12)), announced(0x7a)] {
            let error = decode::<Pod>(&message, ManagedFields::Keep).unwrap_err();
            assert_eq!(*error.problem(), Problem::Truncated);
            let body = Envelope::wrap("v1", "Pod", &message);
            assert!(decode_body::<Pod>(&body).is_err());
            assert!(RawObject::from_protobuf(&announced(0x0a), ManagedFields::Drop).is_err());
        }
        for start in [b"k8s\0".to_vec(), [b"k8s\0".as_slice(), &[0x12, 0x7f]].concat()] {
            let mut splitter = ListSplitter::protobuf(SplitOptions::default());
            let pushed = splitter.push(&[start, announced(0x12)].concat(), |_| panic!("no item"));
            assert!(pushed.is_err() || splitter.finish().is_err());
        }
    }
    let mut splitter = WatchSplitter::protobuf(SplitOptions::default());
    assert_eq!(*splitter.push(&[0xff; 4], |_| panic!("no event")).unwrap_err().problem(), Problem::TooLarge);
}

#[test]
fn tiny_items_do_not_become_huge_structs() {
    // Two bytes each on the wire, a kilobyte or more in memory: half a million of them.
    let wide = field(2, &[0x12, 0x00].repeat(500_000));
    let error = decode::<Pod>(&wide, ManagedFields::Keep).unwrap_err();
    assert_eq!(*error.problem(), Problem::TooLarge);
    assert!(error.field().is_some_and(|field| field.starts_with("spec.containers")), "{error}");
    assert_eq!(*decode_body::<Pod>(&Envelope::wrap("v1", "Pod", &wide)).unwrap_err().problem(), Problem::TooLarge);
    // The raw object accepts it, and the same as a JSON value is small enough.
    let raw = RawObject::from_protobuf(&wide, ManagedFields::Drop).unwrap();
    assert_eq!(raw.bytes().len(), wide.len());
    assert!(raw.to_value::<Pod>().is_ok());
    // A realistic number is accepted.
    let honest = field(2, &[0x12, 0x00].repeat(500));
    assert_eq!(decode::<Pod>(&honest, ManagedFields::Keep).unwrap().spec.unwrap().containers.len(), 500);
}

#[test]
fn tiny_items_do_not_become_huge_structs_in_a_list() {
    // Each object is below the limit of one object, forty of them are gigabytes.
    let pod = field(2, &[0x12, 0x00].repeat(30_000));
    assert!(decode::<Pod>(&pod, ManagedFields::Keep).is_ok());
    let pods = std::iter::repeat_n(pod.as_slice(), 40);
    let body = klient_proto::encode_list_body("v1", "PodList", &Default::default(), pods);
    assert_eq!(*decode_list_body::<Pod>(&body).unwrap_err().problem(), Problem::TooLarge);
}

/// Checks the field and the message of an error.
fn check<K: klient_core::Resource>(message: &[u8], at: &str, sentence: &str) {
    let error = decode::<K>(message, ManagedFields::Keep).unwrap_err();
    assert_eq!(error.field(), Some(at), "{error}");
    assert_eq!(error.to_string(), sentence);
    assert_eq!(format!("{error:?}"), format!("DecodeError({sentence})"));
}

#[test]
fn errors_name_the_field() {
    let container = |bad: Vec<u8>| {
        field(2, &[field(2, &field(1, b"first")), field(2, &[field(1, b"second"), bad].concat())].concat())
    };
    check::<Pod>(
        &container(int_field(2, 7)),
        "spec.containers[1].image",
        "Pod field spec.containers[1].image: wrong protobuf wire type for this field at byte 22",
    );
    check::<Pod>(
        &container(field(2, b"\xff")),
        "spec.containers[1].image",
        "Pod field spec.containers[1].image: text is not UTF-8 at byte 23",
    );
    check::<Pod>(
        &container(field(6, &field(2, b"x"))),
        "spec.containers[1].ports[0].hostPort",
        "Pod field spec.containers[1].ports[0].hostPort: wrong protobuf wire type for this field at byte 24",
    );
    // Fields of embedded messages have their JSON names.
    check::<Pod>(
        &field(2, &field(1, &field(2, &field(19, &field(1, &int_field(1, 1)))))),
        "spec.volumes[0].configMap.name",
        "Pod field spec.volumes[0].configMap.name: wrong protobuf wire type for this field at byte 12",
    );
    // Map entries are not segments.
    check::<Pod>(
        &field(1, &field(11, &[field(1, b"app"), int_field(2, 1)].concat())),
        "metadata.labels",
        "Pod field metadata.labels: wrong protobuf wire type for this field at byte 10",
    );
    let property = field(29, &[field(1, b"key"), field(2, &int_field(5, 1))].concat());
    check::<CustomResourceDefinition>(
        &field(2, &field(7, &field(4, &field(1, &property)))),
        "spec.versions[0].schema.openAPIV3Schema.properties.type",
        "CustomResourceDefinition field spec.versions[0].schema.openAPIV3Schema.properties.type: \
         wrong protobuf wire type for this field at byte 19",
    );
    check::<Pod>(&int_field(1, 1), "metadata", "Pod field metadata: wrong protobuf wire type for this field at byte 1");
    check::<Pod>(&[0x00], "", "Pod: malformed number or field key at byte 1");
}

#[test]
fn errors_in_bodies_count_from_the_start_of_the_body() {
    let message = field(1, &field(1, b"\xff"));
    let body = Envelope::wrap("v1", "Pod", &message);
    let error = decode_body::<Pod>(&body).unwrap_err();
    assert_eq!(body[error.offset()], 0xff);
    let list =
        klient_proto::encode_list_body("v1", "PodList", &Default::default(), std::iter::once(message.as_slice()));
    let error = decode_list_body::<Pod>(&list).unwrap_err();
    assert_eq!(list[error.offset()], 0xff);
}

#[test]
fn unexpected_kind_or_content_is_an_error() {
    let cases: [(Vec<u8>, &str); 5] = [
        (encode_body(&Node::default()).unwrap(), "unexpected content v1 Node, expected v1 Pod at byte 0"),
        (b"{}".to_vec(), "no `k8s` protobuf envelope at byte 0"),
        (Vec::new(), "no `k8s` protobuf envelope at byte 0"),
        ([encode_body(&Pod::default()).unwrap(), field(3, b"gzip")].concat(), "unexpected content  gzip at byte 0"),
        (
            [encode_body(&Pod::default()).unwrap(), field(4, b"application/json")].concat(),
            "unexpected content application/json  at byte 0",
        ),
    ];
    for (body, sentence) in cases {
        assert_eq!(decode_body::<Pod>(&body).unwrap_err().to_string(), sentence);
    }
    let long = Envelope::wrap("v1", &"x".repeat(10_000), b"");
    assert!(decode_body::<Pod>(&long).unwrap_err().to_string().len() < 200);
}

#[test]
fn last_duplicate_field_wins_and_messages_merge() {
    let message = [
        field(2, &[field(10, b"first"), field(10, b"last"), int_field(25, 1), int_field(25, 2)].concat()),
        field(2, &[field(3, b"Never"), field(2, &field(1, b"c"))].concat()),
    ]
    .concat();
    let pod: Pod = decode(&message, ManagedFields::Keep).unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!((spec.node_name.as_deref(), spec.priority), (Some("last"), Some(2)));
    assert_eq!((spec.restart_policy.as_deref(), spec.containers.len()), (Some("Never"), 1));
    let data = |value: &[u8]| field(2, &[field(1, b"k"), field(2, value)].concat());
    let secret: Secret = decode(&[data(b"old"), data(b"new")].concat(), ManagedFields::Keep).unwrap();
    assert_eq!(secret.data.unwrap()["k"].0, b"new");
}

#[test]
fn packed_and_unpacked_numbers_are_equal() {
    // `supplementalGroups` of the pod's security context.
    let unpacked = field(2, &field(14, &[int_field(4, 1), int_field(4, 300)].concat()));
    let packed = field(2, &field(14, &field(4, &[varint(1), varint(300)].concat())));
    let groups = |message: &[u8]| {
        let pod: Pod = decode(message, ManagedFields::Keep).unwrap();
        let value = RawObject::from_protobuf(message, ManagedFields::Drop).unwrap().to_value::<Pod>().unwrap();
        assert_eq!(value["spec"]["securityContext"]["supplementalGroups"], json!([1, 300]));
        pod.spec.unwrap().security_context.unwrap().supplemental_groups.unwrap()
    };
    assert_eq!(groups(&packed), [1, 300]);
    assert_eq!(groups(&unpacked), [1, 300]);
    assert!(decode::<Pod>(&field(2, &field(14, &field(4, &[0x80]))), ManagedFields::Keep).is_err());
}

#[test]
fn complete_groups_are_skipped() {
    let name = field(1, &field(1, b"a"));
    let cases: [(Vec<u8>, bool); 6] = [
        (vec![0xa3, 0x06, 0xa4, 0x06], true),
        ([vec![0xa3, 0x06], field(1, b"inside"), vec![0xa3, 0x06, 0xa4, 0x06, 0xa4, 0x06]].concat(), true),
        (vec![0xa3, 0x06], false),
        (vec![0xa4, 0x06], false),
        (vec![0xa3, 0x06, 0x0a, 0x7f], false),
        ([[0xa3, 0x06].repeat(100_000), [0xa4, 0x06].repeat(100_000)].concat(), true),
    ];
    for (group, whole) in cases {
        let message = [name.clone(), group].concat();
        assert_eq!(decode::<Pod>(&message, ManagedFields::Keep).is_ok(), whole);
        let raw = RawObject::from_protobuf(&message, ManagedFields::Drop);
        assert_eq!(raw.is_ok(), whole);
        assert_eq!(raw.map(|raw| raw.to_value::<Pod>().is_ok()).unwrap_or(false), whole);
    }
    let in_a_known_field = field(2, &[0x13, 0x14]);
    assert!(decode::<Deployment>(&in_a_known_field, ManagedFields::Keep).is_err());
}
