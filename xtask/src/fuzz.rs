//! Runs the fuzz targets of `fuzz/` on stable Rust, without cargo-fuzz: the same targets, corpus and engine.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run::run as run_program;

/// The flags of cargo-fuzz, without those that need a nightly compiler.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds all targets and runs each for `seconds`, with the given seed or with a random one.
pub(crate) fn run(root: &Path, seconds: u32, seed: Option<u32>) -> Result<()> {
    build(root)?;
    let folder = root.join("fuzz");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(folder.join("fuzz_targets"))? {
        let path = entry?.path();
        targets.push(path.file_stem().context("fuzz target has no file name")?.to_string_lossy().into_owned());
    }
    targets.sort();
    // Each target uses one processor, so two run at a time.
    for pair in targets.chunks(2) {
        std::thread::scope(|scope| {
            let runs: Vec<_> =
                pair.iter().map(|target| scope.spawn(move || run_target(target, seconds, seed, root))).collect();
            runs.into_iter().try_for_each(|run| run.join().map_err(|_| anyhow::anyhow!("a fuzz run panicked"))?)
        })?;
    }
    Ok(())
}

/// Builds all targets.
pub(crate) fn build(root: &Path) -> Result<()> {
    // With an explicit target, build scripts and macros are not instrumented.
    let arguments = ["build", "--quiet", "--locked", "--target", TARGET];
    run_program(&root.join("fuzz"), "cargo", &arguments, &[("RUSTFLAGS", RUSTFLAGS)])
}

/// Runs one target for `seconds`.
fn run_target(target: &str, seconds: u32, seed: Option<u32>, root: &Path) -> Result<()> {
    let folder = root.join("fuzz");
    println!("-- fuzzing {target} for {seconds} s");
    let program = folder.join("target").join(TARGET).join("debug").join(target);
    // New inputs are written to a scratch folder. The committed corpus is only read.
    let found = folder.join("target/found").join(target);
    let artifacts = folder.join("artifacts").join(target);
    std::fs::create_dir_all(&found)?;
    std::fs::create_dir_all(&artifacts)?;
    let corpus = folder.join("corpus").join(target);
    let arguments = [
        format!("-max_total_time={seconds}"),
        // With seed zero, the engine chooses a random seed.
        format!("-seed={}", seed.unwrap_or_default()),
        "-rss_limit_mb=2048".to_owned(),
        "-timeout=10".to_owned(),
        "-verbosity=0".to_owned(),
        "-print_final_stats=0".to_owned(),
        format!("-artifact_prefix={}/", artifacts.display()),
        found.display().to_string(),
        corpus.display().to_string(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run_program(&folder, &program.to_string_lossy(), &arguments, &[])
        .with_context(|| format!("fuzz target {target} failed: the input is in {}", artifacts.display()))
}
