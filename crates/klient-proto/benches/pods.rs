//! Realistic pods for the benchmarks: 6.4 KB of protobuf or 9.9 KB of JSON each, managed fields included.

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ListMeta};

/// A pod as written by a Go server.
pub(crate) const POD_PROTOBUF: &[u8] = include_bytes!("../tests/data/pod.pb");

/// Returns the bodies of a list with so many pods, as protobuf and JSON.
pub(crate) fn list_bodies(count: usize) -> (Vec<u8>, Vec<u8>) {
    let mut pod: Pod = klient_proto::decode_body(POD_PROTOBUF).unwrap();
    let mut messages = Vec::new();
    let mut json =
        br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"48200000"},"items":["#.to_vec();
    for index in 0..count {
        pod.metadata.name = Some(format!("checkout-api-7d9c5b8f6d-{index:05}"));
        pod.metadata.resource_version = Some((48_100_000 + index).to_string());
        messages.push(klient_proto::encode(&pod).unwrap());
        if index > 0 {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, &pod).unwrap();
    }
    json.extend_from_slice(b"]}");
    let metadata = ListMeta { resource_version: Some("48200000".into()), ..Default::default() };
    (klient_proto::encode_list_body("v1", "PodList", &metadata, messages.iter().map(Vec::as_slice)), json)
}
