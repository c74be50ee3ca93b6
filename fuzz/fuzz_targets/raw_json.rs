//! A raw JSON object: if serde_json can parse it, identity and splicing agree with serde_json.

#![no_main]

use klient_fuzz::use_raw;
use klient_proto::{ManagedFields, RawObject};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// An object without repeated members where they matter: of those, the first counts here and the last in serde_json.
#[derive(Deserialize)]
struct Strict {
    metadata: Option<StrictMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StrictMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(rename = "managedFields")]
    _managed_fields: Option<IgnoredAny>,
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let kept = RawObject::from_json(data, ManagedFields::Keep);
    let dropped = RawObject::from_json(data, ManagedFields::Drop);
    for raw in [&kept, &dropped].into_iter().flatten() {
        use_raw(raw);
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(data) else { return };
    if !value.is_object() || !matches!(value.get("metadata"), None | Some(Value::Null | Value::Object(_))) {
        return;
    }
    let Ok(strict) = serde_json::from_slice::<Strict>(data) else { return };
    let (kept, dropped) = (kept.expect("an object"), dropped.expect("an object"));
    assert_eq!(serde_json::from_slice::<Value>(kept.bytes()).expect("it parsed before"), value);
    if let Some(metadata) = &strict.metadata {
        for raw in [&kept, &dropped] {
            let identity = raw.identity();
            assert_eq!(identity.name, metadata.name.as_deref().unwrap_or_default());
            assert_eq!(identity.namespace, metadata.namespace.as_deref().unwrap_or_default());
            assert_eq!(identity.uid, metadata.uid.as_deref().unwrap_or_default());
            assert_eq!(identity.resource_version, metadata.resource_version.as_deref().unwrap_or_default());
        }
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    }
    assert_eq!(serde_json::from_slice::<Value>(dropped.bytes()).expect("splicing keeps it whole"), value);
});
