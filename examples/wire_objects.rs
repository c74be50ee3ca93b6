//! Objects in wire form: split a list while it streams in, store the bytes, decode only what is needed.
//!
//! Needs no cluster: it writes the list body that a server would send, in protobuf and in JSON, and reads both.
//!
//! ```text
//! cargo run --release -p klient-examples --example wire_objects
//! ```

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec},
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ListMeta, ManagedFieldsEntry, ObjectMeta},
};
use klient::{
    ObjectKey,
    field_path::FieldPath,
    selector::LabelSelector,
    wire::{self, ListSplitter, RawObject, SplitOptions},
};

const PODS: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let pods: Vec<Pod> = (0..PODS).map(pod).collect();
    let (protobuf, json) = (protobuf_body(&pods)?, json_body(&pods)?);
    println!("a list of {PODS} pods: {} bytes of protobuf, {} bytes of JSON\n", protobuf.len(), json.len());

    let from_protobuf = split(&protobuf, ListSplitter::protobuf(SplitOptions::default()))?;
    let from_json = split(&json, ListSplitter::json(SplitOptions::default()))?;
    report("protobuf", &from_protobuf);
    report("JSON", &from_json);

    // Metadata, and single fields, are read from the bytes: nothing is decoded here.
    let selector: LabelSelector = "app in (web,api),tier!=canary".parse()?;
    let node: FieldPath = "spec.nodeName".parse()?;
    let mut per_node: BTreeMap<String, usize> = BTreeMap::new();
    for object in &from_protobuf {
        if selector.matches(|key| object.label(key)) {
            let name = object.text_at::<Pod>(&node)?.unwrap_or_default();
            *per_node.entry(name.into_owned()).or_default() += 1;
        }
    }
    println!("\npods that match `{selector}`, by {node}:");
    for (node, count) in per_node {
        println!("  {node}  {count}");
    }

    // A typed object is decoded on request, and is the same from either form.
    let wanted = ObjectKey::namespaced("shop", "web-00042");
    let find = |objects: &[RawObject]| objects.iter().find(|object| object.key() == wanted).cloned();
    let (Some(one), Some(other)) = (find(&from_protobuf), find(&from_json)) else {
        anyhow::bail!("{wanted} is missing")
    };
    let pod: Pod = one.decode()?;
    anyhow::ensure!(pod == other.decode()?, "the two forms differ");
    let image = pod.spec.and_then(|spec| spec.containers.into_iter().next()).and_then(|container| container.image);
    println!("\n{wanted} decoded from either form is the same; its image is {}", image.unwrap_or_default());
    Ok(())
}

/// Splits a body as it would arrive: in chunks of 16 KiB.
fn split(body: &[u8], mut splitter: ListSplitter) -> anyhow::Result<Vec<RawObject>> {
    let mut objects = Vec::new();
    let mut first_error = None;
    for chunk in body.chunks(16 << 10) {
        // One bad object would be an error here, and the others would still arrive.
        splitter.push(chunk, |item| match item {
            Ok(object) => objects.push(object),
            Err(error) => first_error = first_error.take().or(Some(error)),
        })?;
    }
    let end = splitter.finish()?;
    println!("{} at version {}", end.kind, end.metadata.resource_version.unwrap_or_default());
    first_error.map_or(Ok(objects), |error| Err(error.into()))
}

fn report(form: &str, objects: &[RawObject]) {
    let bytes: usize = objects.iter().map(|object| object.bytes().len()).sum();
    println!("  stored {} objects as {form}, without managed fields: {bytes} bytes", objects.len());
}

fn protobuf_body(pods: &[Pod]) -> anyhow::Result<Vec<u8>> {
    let messages = pods.iter().map(wire::encode).collect::<Result<Vec<_>, _>>()?;
    let metadata = ListMeta { resource_version: Some("7000".into()), ..Default::default() };
    Ok(wire::encode_list_body("v1", "PodList", &metadata, messages.iter().map(Vec::as_slice)))
}

fn json_body(pods: &[Pod]) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&serde_json::json!({
        "apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7000"}, "items": pods,
    }))?)
}

fn pod(index: usize) -> Pod {
    let app = ["web", "api", "worker"][index % 3];
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("{app}-{index:05}")),
            namespace: Some("shop".into()),
            uid: Some(format!("00000000-0000-4000-8000-{index:012}")),
            resource_version: Some((6_000 + index).to_string()),
            labels: Some([("app".into(), app.into()), ("tier".into(), "stable".into())].into()),
            managed_fields: Some(vec![ManagedFieldsEntry {
                manager: Some("kubelet".into()),
                fields_v1: Some(FieldsV1(serde_json::json!({"f:status": {"f:phase": {}, "f:podIP": {}}}))),
                ..Default::default()
            }]),
            ..Default::default()
        },
        spec: Some(PodSpec {
            node_name: Some(format!("node-{}", index % 4)),
            containers: vec![Container {
                name: app.into(),
                image: Some(format!("registry.example.com/{app}:1.0")),
                ..Default::default()
            }],
            ..Default::default()
        }),
        ..Default::default()
    }
}
