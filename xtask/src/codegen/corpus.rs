//! Packs the test corpus that Kubernetes ships in `k8s.io/api/testdata`: one JSON and one protobuf form per kind.
//!
//! The packed corpus is in the repository (gzipped lines of JSON, about 140 KB per minor), so that the tests need neither
//! Go nor a network.

use std::{collections::BTreeMap, io::Write as _};

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{modules::GoModules, rust_types::RustType};

/// Returns the packed corpus, with one line for each kind of k8s-openapi: `{"apiVersion", "kind", "json", "pb"}`.
pub(crate) fn pack(modules: &GoModules, types: &BTreeMap<String, RustType>) -> Result<Vec<u8>> {
    let dir = modules.dirs["k8s.io/api"].join("testdata/HEAD");
    let mut out = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::best());
    for (api_version, kind) in types.values().filter_map(|ty| ty.resource.as_ref()) {
        let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
        let stem = format!("{group}.{version}.{kind}");
        let read = |extension: &str| std::fs::read(dir.join(format!("{stem}.{extension}")));
        // Kinds of apiextensions and kube-aggregator are not in this corpus.
        let Ok(json) = read("json") else { continue };
        let json: serde_json::Value = serde_json::from_slice(&json).with_context(|| stem.clone())?;
        let pb = read("pb").with_context(|| stem.clone())?;
        let line = json!({"apiVersion": api_version, "kind": kind, "json": json, "pb": STANDARD.encode(pb)});
        writeln!(out, "{line}")?;
    }
    Ok(out.finish()?)
}
