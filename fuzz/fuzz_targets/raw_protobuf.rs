//! A raw protobuf object: every accessor agrees with the typed object.

#![no_main]

use k8s_openapi::api::core::v1::Pod;
use klient_fuzz::use_raw;
use klient_proto::{ManagedFields, RawObject, decode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(raw) = RawObject::from_protobuf_body(data, ManagedFields::Drop) {
        use_raw(&raw);
    }
    for managed_fields in [ManagedFields::Keep, ManagedFields::Drop] {
        let raw = RawObject::from_protobuf(data, managed_fields);
        if let Ok(raw) = &raw {
            use_raw(raw);
        }
        let Ok(pod) = decode::<Pod>(data, managed_fields) else { continue };
        let raw = raw.expect("what decodes can be kept raw");
        assert_eq!(raw.decode::<Pod>().expect("it decoded before"), pod);
        let metadata = &pod.metadata;
        assert_eq!(raw.name(), metadata.name.as_deref().unwrap_or_default());
        assert_eq!(raw.namespace().as_deref(), metadata.namespace.as_deref());
        assert_eq!(raw.uid().as_deref(), metadata.uid.as_deref());
        assert_eq!(raw.resource_version().as_deref(), metadata.resource_version.as_deref());
        assert_eq!(raw.generation(), metadata.generation);
        assert_eq!(raw.creation_timestamp(), metadata.creation_timestamp.as_ref().map(|time| time.0));
        assert_eq!(raw.deletion_timestamp(), metadata.deletion_timestamp.as_ref().map(|time| time.0));
        assert!(raw.owner_references().eq(metadata.owner_references.iter().flatten().cloned()));
        assert!(raw.finalizers().eq(metadata.finalizers.iter().flatten().map(String::as_str)));
        for (key, value) in metadata.labels.iter().flatten() {
            assert_eq!(raw.label(key).as_deref(), Some(value.as_str()));
        }
    }
});
