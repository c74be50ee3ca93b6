//! Kubernetes' own corpus: for every kind, the same object as JSON and as protobuf.

use std::{collections::BTreeMap, fmt::Debug, io::Read as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::kinds::for_each_kind;

/// One object of the corpus in both encodings.
pub(crate) struct Entry {
    pub(crate) json: Value,
    pub(crate) pb: Vec<u8>,
}

/// Returns the corpus of the enabled Kubernetes version, by `apiVersion` and `kind`.
pub(crate) fn corpus() -> BTreeMap<(String, String), Entry> {
    let packed: &[u8] = {
        #[cfg(k8s_until = "33")]
        let bytes = include_bytes!("../corpus/v1.33.jsonl.gz");
        #[cfg(all(k8s_from = "34", k8s_until = "34"))]
        let bytes = include_bytes!("../corpus/v1.34.jsonl.gz");
        #[cfg(all(k8s_from = "35", k8s_until = "35"))]
        let bytes = include_bytes!("../corpus/v1.35.jsonl.gz");
        #[cfg(all(k8s_from = "36", k8s_until = "36"))]
        let bytes = include_bytes!("../corpus/v1.36.jsonl.gz");
        #[cfg(k8s_from = "37")]
        let bytes = include_bytes!("../corpus/v1.37.jsonl.gz");
        bytes
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let entries = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let key = (line["apiVersion"].as_str().unwrap().to_owned(), line["kind"].as_str().unwrap().to_owned());
        let pb = STANDARD.decode(line["pb"].as_str().unwrap()).unwrap();
        let mut json = line["json"].take();
        zero_times_to_epoch(&mut json);
        (key, Entry { json, pb })
    });
    entries.collect()
}

/// Replaces Go's zero time, which it prints as `null` in `disruptedPods`. k8s-openapi cannot represent a missing time
/// there: its JSON decoder fails, and this crate's returns the epoch.
fn zero_times_to_epoch(json: &mut Value) {
    for time in json
        .pointer_mut("/status/disruptedPods")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|map| map.values_mut())
    {
        *time = Value::from("1970-01-01T00:00:00Z");
    }
}

#[test]
fn protobuf_decodes_like_json_and_round_trips() {
    let corpus = corpus();
    let mut checked = 0;
    macro_rules! check_kind {
        ($kind:ty) => {
            checked += usize::from(check::<$kind>(&corpus));
        };
    }
    for_each_kind!(check_kind);
    assert_eq!(checked, corpus.len(), "every entry of the corpus belongs to a kind");
    assert!(checked > 90, "only {checked} kinds");
}

/// Returns whether the corpus has the kind.
fn check<K>(corpus: &BTreeMap<(String, String), Entry>) -> bool
where
    K: Resource + Serialize + DeserializeOwned + PartialEq + Debug + 'static,
{
    let Some(entry) = corpus.get(&(K::API_VERSION.to_owned(), K::KIND.to_owned())) else { return false };
    let from_json: K = serde_json::from_value(entry.json.clone())
        .unwrap_or_else(|error| panic!("{} {}: {error}", K::API_VERSION, K::KIND));
    let by_descriptor = klient_proto::from_value(&entry.json, klient_proto::Codec::of::<K>().unwrap())
        .unwrap_or_else(|error| panic!("{} {}: {error}", K::API_VERSION, K::KIND));
    let from_value: K = klient_proto::decode(&by_descriptor, klient_proto::ManagedFields::Keep).unwrap();
    assert_eq!(from_value, from_json, "{} {} by its descriptor", K::API_VERSION, K::KIND);
    let from_pb: K = klient_proto::decode_body(&entry.pb).unwrap();
    assert_eq!(from_pb, from_json, "{} {}", K::API_VERSION, K::KIND);

    let encoded = klient_proto::encode_body(&from_json).unwrap();
    let again: K = klient_proto::decode_body(&encoded).unwrap();
    assert_eq!(again, from_json, "{} {}", K::API_VERSION, K::KIND);
    true
}
