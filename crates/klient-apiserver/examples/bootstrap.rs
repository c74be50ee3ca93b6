//! Writes the objects that a new API server has: `cargo xtask registry` runs this.
//!
//! Left out are namespaces, leases, and config maps, whose contents differ in every cluster. Roles and bindings are written to a file of
//! their own, compressed.

#![allow(clippy::print_stdout)]

use std::{error::Error, io::Write as _};

use klient::{Client, request::media_type};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let output = std::env::args().nth(1).ok_or("usage: bootstrap <file>")?;
    let rest = Client::infer()?.rest();
    let mut lines = Vec::new();
    let mut roles = Vec::new();
    let mut seen = Vec::new();
    for path in ["/api", "/apis"] {
        let found: Value = rest.get().path(path).accept(media_type::AGGREGATED_DISCOVERY).value().await?;
        for group in list(&found["items"]) {
            let name = text(&group["metadata"]["name"]);
            for version in list(&group["versions"]) {
                let version_name = text(&version["version"]);
                for resource in list(&version["resources"]) {
                    let plural = text(&resource["resource"]);
                    let is_listed = list(&resource["verbs"]).iter().any(|verb| verb == "list");
                    if !is_listed || SKIPPED.contains(&plural) || seen.contains(&(name.to_owned(), plural.to_owned())) {
                        continue;
                    }
                    seen.push((name.to_owned(), plural.to_owned()));
                    let path = if name.is_empty() {
                        format!("/api/{version_name}/{plural}")
                    } else {
                        format!("/apis/{name}/{version_name}/{plural}")
                    };
                    let objects: Value = rest.get().path(path).value().await?;
                    for object in list(&objects["items"]) {
                        let mut object = object.clone();
                        let api_version = objects["apiVersion"].clone();
                        let kind = text(&objects["kind"]).trim_end_matches("List");
                        object["apiVersion"] = api_version;
                        object["kind"] = Value::from(kind);
                        clean(&mut object);
                        // The addresses of the recorded server, and those of the embedded server.
                        let line = object.to_string().replace("10.0.0.1", "10.96.0.1");
                        let list = if name == RBAC { &mut roles } else { &mut lines };
                        list.push(line.replace("10.0.0.0/24", "10.96.0.0/16"));
                    }
                }
            }
        }
    }
    std::fs::write(&output, format!("[\n{}\n]\n", lines.join(",\n")))?;
    println!("{output}: {} objects", lines.len());
    let output = output.replace("objects.json", "rbac.json.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(format!("[\n{}\n]\n", roles.join(",\n")).as_bytes())?;
    std::fs::write(&output, encoder.finish()?)?;
    println!("{output}: {} objects", roles.len());
    Ok(())
}

/// Removes what differs in every cluster.
fn clean(object: &mut Value) {
    // The port of the recorded server is a free one of its machine.
    for pointer in ["/spec/ports/0/targetPort", "/subsets/0/ports/0/port", "/ports/0/port"] {
        if let Some(port) = object.pointer_mut(pointer) {
            *port = Value::from(6443);
        }
    }
    for pointer in ["/subsets/0/addresses/0/ip", "/endpoints/0/addresses/0"] {
        if let Some(address) = object.pointer_mut(pointer) {
            *address = Value::from("127.0.0.1");
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(name);
        }
    }
    for (pointer, name) in [("/status/conditions", "lastTransitionTime"), ("/metadata/managedFields", "time")] {
        for entry in object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(time) = entry.get_mut(name) {
                *time = Value::from("");
            }
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// The resources that are not recorded.
const SKIPPED: &[&str] = &["namespaces", "configmaps", "secrets", "events", "leases", "componentstatuses"];
