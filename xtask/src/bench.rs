//! Runs the benchmarks of the wire forms and prints their ratios, beside what is asked of them.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run::run;

/// Benchmarks and prints.
pub(crate) fn wire(root: &Path) -> Result<()> {
    run(root, "cargo", &["bench", "--locked", "-p", "klient-proto", "--bench", "wire"], &[])?;
    run(root, "cargo", &["bench", "--locked", "-p", "klient-proto", "--bench", "list_memory"], &[])?;
    let mean = |name: &str| mean_nanoseconds(root, name);
    let row = |what: &str, ratio: f64, asked: &str| println!("{what:62}{ratio:9.2}  {asked}");
    let (json, prost, klient) =
        (mean("typed-decode/serde_json")?, mean("typed-decode/prost")?, mean("typed-decode/klient")?);
    let kept = mean("typed-decode/klient-managed-fields-as-values")?;
    println!("\nA pod of 6.4 KB protobuf or 9.9 KB JSON, managed fields included");
    row("typed decode: serde_json / klient protobuf", json / klient, "asked: at least 4");
    row("typed decode: prost into k8s-pb / klient protobuf", prost / klient, "asked: at least 1");
    row("  the same, managed fields decoded: serde_json / klient", json / kept, "");
    row("  the same, managed fields decoded: prost (keeps bytes) / klient", prost / kept, "");
    let trimmed = mean("typed-decode/klient-trimmed")?;
    row(
        "  without managed fields in either: serde_json / klient",
        mean("typed-decode/serde_json-trimmed")? / trimmed,
        "",
    );
    row("  without managed fields in either: prost / klient", mean("typed-decode/prost-trimmed")? / trimmed, "");
    row(
        "metadata scan: prost full decode / klient protobuf",
        prost / mean("metadata-scan/klient-protobuf")?,
        "asked: over 40",
    );
    row(
        "metadata scan: serde_json full decode / klient JSON",
        json / mean("metadata-scan/klient-json")?,
        "asked: over 40",
    );
    row(
        "typed encode: serde_json / klient protobuf",
        mean("typed-encode/serde_json")? / mean("typed-encode/klient")?,
        "",
    );
    row("typed encode: prost / klient protobuf", mean("typed-encode/prost")? / mean("typed-encode/klient")?, "");
    println!(
        "\nthroughput of split-trim-store and the memory it takes are printed above, by the benchmarks themselves"
    );
    Ok(())
}

/// What criterion measured last.
fn mean_nanoseconds(root: &Path, name: &str) -> Result<f64> {
    let path = root.join("target/criterion").join(name).join("new/estimates.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: serde_json::Value = serde_json::from_str(&text)?;
    estimates["mean"]["point_estimate"].as_f64().with_context(|| format!("{name} has no estimate"))
}
