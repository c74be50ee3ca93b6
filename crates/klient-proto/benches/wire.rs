//! Typed decoding, metadata scans and list splitting, compared with serde_json and prost in the same run.
//!
//! `cargo xtask bench-wire` runs this and prints the ratios.

#![allow(missing_docs, clippy::unwrap_used)]

mod pods;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use k8s_openapi::api::core::v1::Pod;
use klient_proto::{ListSplitter, ManagedFields, RawObject, SplitOptions, raw::Identity};
use prost::Message as _;

fn typed_decode(c: &mut Criterion) {
    let message = message();
    let trimmed = RawObject::from_protobuf(message, ManagedFields::Drop).unwrap();
    let trimmed_json = RawObject::from_json(POD_JSON, ManagedFields::Drop).unwrap();
    let mut group = c.benchmark_group("pod");
    group.bench_function("decode-serde_json", |b| {
        b.iter(|| serde_json::from_slice::<Pod>(black_box(POD_JSON)).unwrap());
    });
    group
        .bench_function("decode-prost", |b| b.iter(|| k8s_pb::api::core::v1::Pod::decode(black_box(message)).unwrap()));
    group.bench_function("decode-klient", |b| {
        b.iter(|| klient_proto::decode::<Pod>(black_box(message), ManagedFields::Drop).unwrap());
    });
    group.bench_function("decode-klient-keep", |b| {
        b.iter(|| klient_proto::decode::<Pod>(black_box(message), ManagedFields::Keep).unwrap());
    });
    group.bench_function("decode-serde_json-trimmed", |b| {
        b.iter(|| serde_json::from_slice::<Pod>(black_box(trimmed_json.bytes())).unwrap());
    });
    group.bench_function("decode-prost-trimmed", |b| {
        b.iter(|| k8s_pb::api::core::v1::Pod::decode(black_box(trimmed.bytes())).unwrap());
    });
    group.bench_function("decode-klient-trimmed", |b| b.iter(|| black_box(&trimmed).decode::<Pod>().unwrap()));
    group.finish();
}

fn encode(c: &mut Criterion) {
    let pod: Pod = klient_proto::decode(message(), ManagedFields::Drop).unwrap();
    let raw = RawObject::from_protobuf(message(), ManagedFields::Drop).unwrap();
    let prost_pod = k8s_pb::api::core::v1::Pod::decode(raw.bytes()).unwrap();
    let mut group = c.benchmark_group("pod");
    group.bench_function("encode-serde_json", |b| b.iter(|| serde_json::to_vec(black_box(&pod)).unwrap()));
    group.bench_function("encode-prost", |b| b.iter(|| black_box(&prost_pod).encode_to_vec()));
    group.bench_function("encode-klient", |b| b.iter(|| klient_proto::encode(black_box(&pod)).unwrap()));
    group.finish();
}

fn metadata_scan(c: &mut Criterion) {
    let message = message();
    let mut group = c.benchmark_group("pod");
    group.bench_function("scan-protobuf", |b| b.iter(|| Identity::of_protobuf(black_box(message))));
    group.bench_function("scan-json", |b| b.iter(|| Identity::of_json(black_box(POD_JSON))));
    group.finish();
}

fn split(body: &[u8], mut splitter: ListSplitter) -> Vec<RawObject> {
    let mut objects = Vec::with_capacity(PODS);
    // The size of HTTP/2 frames and TLS records.
    for chunk in body.chunks(16 << 10) {
        splitter.push(chunk, |item| objects.push(item.unwrap())).unwrap();
    }
    assert_eq!(splitter.finish().unwrap().items, objects.len());
    objects
}

fn list(c: &mut Criterion) {
    let (protobuf, json) = pods::list_bodies(PODS);
    let mut group = c.benchmark_group("split-trim-store-list");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(protobuf.len() as u64));
    group.bench_function("protobuf", |b| {
        b.iter(|| split(&protobuf, ListSplitter::protobuf(SplitOptions::default())));
    });
    group.throughput(Throughput::Bytes(json.len() as u64));
    group.bench_function("json", |b| b.iter(|| split(&json, ListSplitter::json(SplitOptions::default()))));
    group.finish();
}

/// Returns the pod's bare message.
fn message() -> &'static [u8] {
    klient_proto::Envelope::open(pods::POD_PROTOBUF).unwrap().raw
}

/// The same pod as JSON.
const POD_JSON: &[u8] = include_bytes!("../tests/data/pod.json");
const PODS: usize = 20_000;

criterion_group!(benches, typed_decode, encode, metadata_scan, list);
criterion_main!(benches);
