//! Repeats one operation, so that its instructions can be counted: `instructions <operation> <times>`.
//!
//! The number of instructions is independent of other load. `cargo xtask bench-wire` counts them with callgrind.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use k8s_openapi::api::core::v1::Pod;
use klient_proto::{ManagedFields, RawObject, raw::Identity};
use prost::Message as _;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Cargo runs every benchmark; without arguments, this one does nothing.
    let [_, operation, times] = arguments.as_slice() else { return };
    let message = klient_proto::Envelope::open(POD_PROTOBUF).unwrap().raw;
    let trimmed = RawObject::from_protobuf(message, ManagedFields::Drop).unwrap();
    let trimmed_json = RawObject::from_json(POD_JSON, ManagedFields::Drop).unwrap();
    let pod: Pod = trimmed.decode().unwrap();
    let prost_pod = k8s_pb::api::core::v1::Pod::decode(trimmed.bytes()).unwrap();
    let run: &dyn Fn() = match operation.as_str() {
        "decode-serde_json" => &|| drop(serde_json::from_slice::<Pod>(black_box(POD_JSON)).unwrap()),
        "decode-prost" => &|| drop(k8s_pb::api::core::v1::Pod::decode(black_box(message)).unwrap()),
        "decode-klient" => &|| drop(klient_proto::decode::<Pod>(black_box(message), ManagedFields::Drop).unwrap()),
        "decode-klient-keep" => &|| drop(klient_proto::decode::<Pod>(black_box(message), ManagedFields::Keep).unwrap()),
        "decode-serde_json-trimmed" => {
            &|| drop(serde_json::from_slice::<Pod>(black_box(trimmed_json.bytes())).unwrap())
        }
        "decode-prost-trimmed" => &|| drop(k8s_pb::api::core::v1::Pod::decode(black_box(trimmed.bytes())).unwrap()),
        "decode-klient-trimmed" => &|| drop(black_box(&trimmed).decode::<Pod>().unwrap()),
        "encode-serde_json" => &|| drop(serde_json::to_vec(black_box(&pod)).unwrap()),
        "encode-prost" => &|| drop(black_box(&prost_pod).encode_to_vec()),
        "encode-klient" => &|| drop(klient_proto::encode(black_box(&pod)).unwrap()),
        "scan-protobuf" => &|| drop(black_box(Identity::of_protobuf(black_box(message)))),
        "scan-json" => &|| drop(black_box(Identity::of_json(black_box(POD_JSON)))),
        other => panic!("unknown operation {other}"),
    };
    for _ in 0..times.parse::<usize>().unwrap() {
        run();
    }
}

const POD_PROTOBUF: &[u8] = include_bytes!("../tests/data/pod.pb");
const POD_JSON: &[u8] = include_bytes!("../tests/data/pod.json");
