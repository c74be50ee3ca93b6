//! The proofs of shards: simulated worlds, processes on the real kube-apiserver, the throughput of several replicas, and the cost.

use std::path::Path;

use anyhow::Result;

use crate::run;

/// Runs all four, or the part that an option names. Other options are those of `klient-chaos shards`.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let mut worlds = "2000";
    let mut only = None;
    let mut others = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--worlds" => worlds = options.next().copied().unwrap_or(worlds),
            "--simulation" | "--real" | "--throughput" | "--cost" => only = Some(*option),
            other => others.push(other),
        }
    }
    let wants = |part: &str| only.is_none_or(|only| only == part);
    if wants("--simulation") {
        println!("== simulation");
        let arguments = ["test", "--locked", "-p", "klient", "--lib", "shard::tests::simulation", "--", "--nocapture"];
        // Broken rules fail on purpose, and print where.
        run::run(root, "cargo", &arguments, &[("KLIENT_SHARD_WORLDS", worlds), ("RUST_BACKTRACE", "0")])?;
    }
    for (part, option) in [("--real", None), ("--throughput", Some("--throughput"))] {
        if wants(part) {
            println!("== {}", part.trim_start_matches('-'));
            let mut arguments = vec!["run", "--locked", "--quiet", "--package", "klient-chaos", "--", "shards"];
            arguments.extend(option);
            arguments.extend(others.iter().filter(|_| part == "--real"));
            run::run(root, "cargo", &arguments, &[])?;
        }
    }
    if wants("--cost") {
        println!("== cost");
        let arguments =
            ["run", "--release", "--locked", "--quiet", "--package", "klient-chaos", "--", "shards", "--cost"];
        run::run(root, "cargo", &arguments, &[])?;
    }
    Ok(())
}
