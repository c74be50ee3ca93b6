//! Properties of typed round trips, and of arbitrary bytes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{ConfigMap, Pod, Service},
    },
    apimachinery::pkg::{
        apis::meta::v1::{FieldsV1, ManagedFieldsEntry, MicroTime, ObjectMeta, OwnerReference, Time},
        util::intstr::IntOrString,
    },
};
use klient_proto::{ManagedFields, RawObject, decode, encode};
use proptest::{collection, option, prelude::*};
use serde_json::json;

use crate::{
    hostile::use_everywhere,
    support::{field, int_field, path},
};

/// Text that is not empty, because empty text in metadata means absent, as in Go.
fn text() -> impl Strategy<Value = String> {
    "[a-z0-9./\u{e9}\u{4e16}\\\\\"-]{1,20}"
}

fn map() -> impl Strategy<Value = Option<BTreeMap<String, String>>> {
    option::of(collection::btree_map(text(), "[ -~]{0,20}", 1..4))
}

fn time() -> impl Strategy<Value = Time> {
    (-62_135_596_800i64..=253_402_207_200).prop_map(|seconds| Time(Timestamp::from_second(seconds).unwrap()))
}

fn owner() -> impl Strategy<Value = OwnerReference> {
    (text(), text(), text(), option::of(any::<bool>())).prop_map(|(name, kind, uid, controller)| OwnerReference {
        api_version: "v1".into(),
        name,
        kind,
        uid,
        controller,
        block_owner_deletion: controller.map(|value| !value),
    })
}

fn managed() -> impl Strategy<Value = ManagedFieldsEntry> {
    (option::of(text()), option::of(time()), text()).prop_map(|(manager, time, key)| ManagedFieldsEntry {
        manager,
        time,
        fields_v1: Some(FieldsV1(json!({"f:metadata": {key: {}}}))),
        ..Default::default()
    })
}

prop_compose! {
    fn metadata()(
        (name, namespace, uid, resource_version) in
            (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
        generation in option::of(any::<i64>().prop_filter("zero is absent", |value| *value != 0)),
        (creation_timestamp, deletion_timestamp) in (option::of(time()), option::of(time())),
        deletion_grace_period_seconds in option::of(any::<i64>()),
        (labels, annotations) in (map(), map()),
        owner_references in option::of(collection::vec(owner(), 1..3)),
        finalizers in option::of(collection::vec(text(), 1..3)),
        managed_fields in option::of(collection::vec(managed(), 1..3)),
    ) -> ObjectMeta {
        ObjectMeta {
            name, namespace, uid, resource_version, generation, creation_timestamp, deletion_timestamp,
            deletion_grace_period_seconds, labels, annotations, owner_references, finalizers, managed_fields,
            ..Default::default()
        }
    }
}

/// Encodes and decodes an object, and compares all ways to read it.
fn check(metadata: &ObjectMeta) {
    let object = ConfigMap { metadata: metadata.clone(), ..Default::default() };
    let message = encode(&object).unwrap();
    assert_eq!(decode::<ConfigMap>(&message, ManagedFields::Keep).unwrap(), object);
    let text = serde_json::to_vec(&object).unwrap();
    let raws = [
        RawObject::from_protobuf(&message, ManagedFields::Drop).unwrap(),
        RawObject::from_json(&text, ManagedFields::Drop).unwrap(),
    ];
    let mut trimmed = object;
    trimmed.metadata.managed_fields = None;
    for raw in raws {
        assert_eq!(raw.decode::<ConfigMap>().unwrap(), trimmed);
        assert_eq!(raw.to_value::<ConfigMap>().unwrap(), serde_json::to_value(&trimmed).unwrap());
        assert_eq!(raw.name(), metadata.name.as_deref().unwrap_or_default());
        assert_eq!(raw.generation(), metadata.generation);
        assert_eq!(raw.deletion_timestamp(), metadata.deletion_timestamp.as_ref().map(|time| time.0));
        assert_eq!(raw.labels().count(), metadata.labels.iter().flatten().count());
        assert!(raw.owner_references().eq(metadata.owner_references.iter().flatten().cloned()));
    }
}

/// Bytes that resemble protobuf or JSON in parts.
fn shaped_bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        collection::vec(any::<u8>(), 0..20),
        (1u64..40, collection::vec(any::<u8>(), 0..20)).prop_map(|(number, value)| field(number, &value)),
        (1u64..40, any::<u64>()).prop_map(|(number, value)| int_field(number, value)),
        (1u64..20, 1u64..20, "[a-z]{0,5}").prop_map(|(a, b, text)| field(a, &field(b, text.as_bytes()))),
        proptest::sample::select(vec![
            "k8s\0",
            "{",
            "}",
            "[",
            "]",
            "\"metadata\":",
            "\"items\":[",
            "\"name\":\"a\"",
            ",",
            ":",
            "\\",
            "\"",
            "null",
            "{\"type\":\"ADDED\",\"object\":",
            "\0\0\0\x05",
            "1",
            " ",
            "\"managedFields\":[],",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_metadata_round_trips(metadata in metadata()) {
        check(&metadata);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in collection::vec(any::<u8>(), 0..200)) {
        use_everywhere(&bytes);
    }

    #[test]
    fn bytes_that_resemble_an_object_never_panic(bytes in shaped_bytes()) {
        use_everywhere(&bytes);
        use_everywhere(&[b"k8s\0".to_vec(), field(1, b"\x0a\x02v1\x12\x07PodList"), field(2, &bytes)].concat());
    }

    #[test]
    fn decoded_bytes_round_trip(bytes in shaped_bytes()) {
        if let Ok(pod) = decode::<Pod>(&bytes, ManagedFields::Keep) {
            prop_assert_eq!(decode::<Pod>(&encode(&pod).unwrap(), ManagedFields::Keep).unwrap(), pod);
        }
    }

    #[test]
    fn times_round_trip_to_their_precision(
        seconds in -62_135_596_800i64..=253_402_207_200,
        nanos in 0i32..1_000_000_000,
    ) {
        let exact = Timestamp::new(seconds, 0).unwrap();
        // Counted upwards from the second, also before 1970.
        let fine = exact + jiff::SignedDuration::from_nanos(nanos.into());
        let micro = exact + jiff::SignedDuration::from_micros((nanos / 1000).into());
        let lease = Lease {
            metadata: ObjectMeta { creation_timestamp: Some(Time(fine)), ..Default::default() },
            spec: Some(LeaseSpec { acquire_time: Some(MicroTime(fine)), ..Default::default() }),
        };
        let again: Lease = decode(&encode(&lease).unwrap(), ManagedFields::Keep).unwrap();
        prop_assert_eq!(again.metadata.creation_timestamp.unwrap().0, exact);
        prop_assert_eq!(again.spec.unwrap().acquire_time.unwrap().0, micro);
        // Go drops finer units when it reads, too.
        let on_the_wire = [int_field(1, seconds.cast_unsigned()), int_field(2, nanos.cast_unsigned().into())].concat();
        let lease: Lease = decode(&field(2, &field(3, &on_the_wire)), ManagedFields::Keep).unwrap();
        prop_assert_eq!(lease.spec.unwrap().acquire_time.unwrap().0, micro);
    }

    #[test]
    fn numbers_or_strings_round_trip(value in prop_oneof![
        any::<i32>().prop_map(IntOrString::Int), ".{0,20}".prop_map(IntOrString::String)
    ]) {
        let json = json!({"spec": {"ports": [{"port": 80, "targetPort": value}]}});
        let service: Service = serde_json::from_value(json).unwrap();
        let message = encode(&service).unwrap();
        prop_assert_eq!(&decode::<Service>(&message, ManagedFields::Keep).unwrap(), &service);
        let raw = RawObject::from_protobuf(&message, ManagedFields::Drop).unwrap();
        let found = raw.value_at::<Service>(&path("spec.ports[0].targetPort")).unwrap();
        prop_assert_eq!(found, Some(serde_json::to_value(&value).unwrap()));
    }
}

#[test]
fn zero_time_of_go_is_absent() {
    // Go writes its zero time as an empty message, or omits it; the epoch is an ordinary time.
    let created = |bytes: &[u8]| {
        let message = field(1, &field(8, bytes));
        let raw = RawObject::from_protobuf(&message, ManagedFields::Drop).unwrap();
        let typed = decode::<Pod>(&message, ManagedFields::Keep).unwrap().metadata.creation_timestamp;
        assert_eq!(raw.creation_timestamp(), typed.as_ref().map(|time| time.0));
        let value = raw.to_value::<Pod>().unwrap();
        assert_eq!(value["metadata"].get("creationTimestamp").is_some(), typed.is_some());
        typed.map(|time| time.0.as_second())
    };
    assert_eq!(created(b""), None);
    assert_eq!(created(&int_field(1, 0)), Some(0));
    assert_eq!(created(&[int_field(1, u64::MAX), int_field(2, 999_999_999)].concat()), Some(-1));
    assert!(decode::<Pod>(&field(1, &field(8, &int_field(1, i64::MAX as u64))), ManagedFields::Keep).is_err());
}

#[test]
fn zero_is_absent_for_plain_fields_and_a_value_for_pointers() {
    // `hostNetwork` (11) and `nodeName` (10) are plain in Go and written even when zero; `priority` (25) and
    // `automountServiceAccountToken` (21) are pointers.
    let zeros = [int_field(11, 0), field(10, b""), int_field(25, 0), int_field(21, 0)].concat();
    let spec = decode::<Pod>(&field(2, &zeros), ManagedFields::Keep).unwrap().spec.unwrap();
    assert_eq!((spec.host_network, spec.node_name), (None, None));
    assert_eq!((spec.priority, spec.automount_service_account_token), (Some(0), Some(false)));

    let ones = [int_field(11, 1), field(10, b"n"), int_field(25, 1), int_field(21, 1)].concat();
    let spec = decode::<Pod>(&field(2, &ones), ManagedFields::Keep).unwrap().spec.unwrap();
    assert_eq!((spec.host_network, spec.node_name.as_deref()), (Some(true), Some("n")));
    assert_eq!((spec.priority, spec.automount_service_account_token), (Some(1), Some(true)));

    // A zero after a value resets it.
    let back = [int_field(11, 1), int_field(11, 0), field(10, b"n"), field(10, b"")].concat();
    let spec = decode::<Pod>(&field(2, &back), ManagedFields::Keep).unwrap().spec.unwrap();
    assert_eq!((spec.host_network, spec.node_name), (None, None));

    // A typed zero that Go cannot distinguish from absent becomes absent, as through Go's JSON.
    let typed: Pod =
        serde_json::from_value(json!({"spec": {"containers": [], "hostNetwork": false, "priority": 0}})).unwrap();
    let spec = decode::<Pod>(&encode(&typed).unwrap(), ManagedFields::Keep).unwrap().spec.unwrap();
    assert_eq!((spec.host_network, spec.priority), (None, Some(0)));

    let scaled: Deployment =
        serde_json::from_value(json!({"spec": {"replicas": 0, "selector": {}, "template": {}}})).unwrap();
    let again: Deployment = decode(&encode(&scaled).unwrap(), ManagedFields::Keep).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap()["spec"]["replicas"], json!(0));
}
